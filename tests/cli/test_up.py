"""`kafka08 up --detach | status | down`, as users type them."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import NoReturn

import click
import pytest

from kafka08.admin import AdminClient
from kafka08.cli.up import (
    broker_count,
    check_level,
    check_ports,
    keys_for_all,
    run,
    say_running,
    up,
    up_command,
)
from kafka08.embedded.detached import ClusterDirectory, default_directory
from kafka08.embedded.ports import free_ports
from kafka08.errors import KafkaError
from kafka08.levels import NEWEST
from tests.embedded.test_process import state_of
from tests.waiting import until

COMMAND = (sys.executable, "-m", "kafka08.cli")


class Commands:
    """kafka08 in an environment with the test's own default directory."""

    def __init__(self, state_home: Path) -> None:
        self._environ = {**os.environ, "XDG_STATE_HOME": str(state_home)}
        self._environ.pop("KAFKA08_DATA_DIR", None)

    def __call__(self, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = self._run(*arguments)
        assert done.returncode == code, done.stderr
        return done

    def said(self, *arguments: str) -> str:
        """Runs a command with any exit code, and returns its stdout."""
        return self._run(*arguments).stdout

    def start(self, *arguments: str, stderr: int | None = None) -> subprocess.Popen[bytes]:
        """In the background."""
        return subprocess.Popen(
            [*COMMAND, *arguments], env=self._environ, stdout=subprocess.PIPE, stderr=stderr
        )

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*COMMAND, *arguments],
            env=self._environ,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )


@pytest.fixture
def kafka08(tmp_path: Path) -> Iterator[Commands]:
    commands = Commands(tmp_path)
    yield commands
    commands("down")


def test_a_cluster_that_stays(kafka08: Commands, tmp_path: Path) -> None:
    """up --detach returns when the cluster is ready. A second up names the cluster, and down keeps
    its data."""
    up = kafka08("up", "--detach", "--brokers", "1")
    standing = json.loads(kafka08("status", "--json").stdout)
    assert standing["directory"] == str(tmp_path / "kafka08" / "cluster")
    assert f"ZooKeeper  {standing['zookeeper']}\n" in up.stdout
    assert f"brokers    {standing['bootstrap']}\n" in up.stdout
    assert kafka08("status").stdout == up.stdout
    with AdminClient(standing["zookeeper"]) as admin:
        admin.create_topic("kept")

    for again in (["--detach"], ["--data-dir", standing["directory"]]):
        second = kafka08("up", *again)
        assert second.stdout == up.stdout
        assert "nothing was started" in second.stderr
        assert "WARNING" not in second.stderr
        other = kafka08("up", *again, "--brokers", "2", "--override", "num.partitions=3")
        assert "WARNING: --brokers, --override had no effect" in other.stderr

    assert "Stopped the cluster" in kafka08("down").stderr
    assert not state_of(standing["pid"])
    absent = kafka08("status", code=1).stderr
    assert "No cluster runs in" in absent
    assert absent.endswith("Start one: kafka08 up --detach\n")
    assert absent == kafka08("up", "restart", "0", code=1).stderr
    assert "No cluster runs in" in kafka08("down").stderr

    kafka08("up", "--detach", "--brokers", "1")
    lines = kafka08("status", "--env").stdout.splitlines()
    assert lines == [
        f"export KAFKA08_ZOOKEEPER={standing['zookeeper']}",
        f"export KAFKA08_BOOTSTRAP={standing['bootstrap']}",
    ]
    with AdminClient(standing["zookeeper"]) as admin:
        assert admin.list_topics() == ["kept"]


def test_it_continues_without_a_broker_that_died(kafka08: Commands, tmp_path: Path) -> None:
    """The owner and `status` report the dead broker. up restart, kill and stop act on one
    broker."""
    kafka08("up", "--detach", "--brokers", "2")
    before = json.loads(kafka08("status", "--json").stdout)
    os.kill(before["brokers"][1]["pid"], signal.SIGKILL)
    until(lambda: "Broker 1 died at" in kafka08("status").stdout, "status says it")
    said = kafka08("status").stdout
    assert "Broker 0 runs at" in said
    assert "(SIGKILL); its log is" in said
    assert "Start it again: kafka08 up restart 1\n" in said
    log = tmp_path / "kafka08" / "cluster" / "up.log"
    until(lambda: "Broker 1 died at" in log.read_text(), "its log says it")

    assert "Broker 1 runs at" in kafka08("up", "restart", "1").stdout
    with AdminClient(before["zookeeper"]) as admin:
        admin.create_topic("both", replication_factor=2)
        admin.await_leaders("both")
    assert "Broker 0 was killed at" in kafka08("up", "kill", "0").stdout
    assert "Broker 0 runs at" in kafka08("up", "restart", "0").stdout
    assert "Broker 0 was stopped at" in kafka08("up", "stop", "0").stdout
    refused = kafka08("up", "stop", "2", code=1).stderr
    assert "there is no broker 2; the cluster has: 0, 1" in refused
    after = json.loads(kafka08("status", "--json").stdout)
    assert [broker["condition"] for broker in after["brokers"]] == ["stopped", "running"]
    assert after["pid"] == before["pid"]


def test_it_ends_with_its_last_broker(kafka08: Commands) -> None:
    """The cluster ends with its last broker, and other commands name that broker and the reason."""
    kafka08("up", "--detach", "--brokers", "1")
    [broker] = json.loads(kafka08("status", "--json").stdout)["brokers"]
    os.kill(broker["pid"], signal.SIGKILL)
    directory = ClusterDirectory(Path(broker["log"]).parent.parent)
    until(lambda: directory.running() is None, "the cluster ended")
    reason = "no broker is running: broker 0 ended with exit code -9"
    assert f"\nStopping the cluster: {reason}\n" in directory.log.read_text()
    said = kafka08("status", code=1).stderr
    assert f"Error: {reason}" in said
    assert "No cluster runs in" in kafka08("up", "restart", "0", code=1).stderr


def test_the_reason_is_told_before_the_directory_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A command that finds no cluster finds the reason in its log."""
    told: list[str] = []

    class Directory(ClusterDirectory):
        def release(self) -> None:
            told.append(capsys.readouterr().err)
            super().release()

    def end(*_: object) -> NoReturn:
        raise KafkaError("no broker is running")

    monkeypatch.setattr("kafka08.embedded.detached.ClusterDirectory", Directory)
    monkeypatch.setattr("kafka08.embedded.EmbeddedCluster", lambda *_, **keys: nullcontext())
    monkeypatch.setattr("kafka08.cli.up.supervise", end)
    with pytest.raises(SystemExit):
        run(1, None, {}, tmp_path, threading.Event())
    assert told == ["Error: no broker is running\n"]


def test_one_in_the_foreground_is_found(kafka08: Commands, tmp_path: Path) -> None:
    """Commands without a directory find a cluster in the foreground, and `down` ends it as Ctrl-C
    does."""
    running = kafka08.start("up", "--brokers", "1")
    until(lambda: "Broker 0 runs" in kafka08.said("status"), "it is up")
    killed = kafka08("up", "kill", "0").stdout
    assert killed.startswith("Broker 0 was killed at")
    assert killed in kafka08("status").stdout
    assert "its data was temporary" in kafka08("down").stderr
    running.communicate(timeout=60)
    assert running.returncode == 0


def test_a_cluster_that_was_killed_does_not_count(kafka08: Commands) -> None:
    """After kill -9 the lock is free, so the next up works without a clean-up."""
    kafka08("up", "--detach", "--brokers", "1")
    os.kill(json.loads(kafka08("status", "--json").stdout)["pid"], 9)
    kafka08("status", code=1)
    kafka08("up", "--detach", "--brokers", "1")


def test_a_cluster_that_cannot_start_says_why(kafka08: Commands) -> None:
    """The error has the end of the broker's log, and no process remains."""
    elsewhere = ("--override", "host.name=203.0.113.1")
    failed = kafka08("up", "--detach", "--brokers", "1", *elsewhere, code=1)
    assert "cannot listen on 203.0.113.1" in failed.stderr
    kafka08("status", code=1)


@pytest.mark.parametrize(
    "command", [["up"], ["up", "--detach"], ["zookeeper", "start"]], ids=" ".join
)
def test_a_directory_that_cannot_be_made_is_named(
    kafka08: Commands, tmp_path: Path, command: list[str]
) -> None:
    """The error has the directory and the system's reason, and no process is left."""
    (tmp_path / "file").touch()
    failed = kafka08(*command, "--data-dir", str(tmp_path / "file" / "x"), code=2)
    assert f"cannot create the directory {tmp_path}/file/x: not a directory" in failed.stderr


def test_keys_are_checked_before_anything_starts(kafka08: Commands) -> None:
    """An unknown key is an error with its place and the nearest key. A value that brokers refuse is
    an error."""
    words = ("--override", "num.partitons=3", "--override", "num.partitions=0")
    failed = kafka08("up", "--detach", "--brokers", "1", *words, code=2)
    assert "num.partitions: '0' is outside the range" in failed.stderr
    kafka08("status", code=1)
    said = kafka08("up", "--detach", "--brokers", "1", *words[:2]).stderr
    assert "num.partitons is not valid; did you mean num.partitions?" in said


def test_a_kept_cluster_gets_all_its_brokers(kafka08: Commands, tmp_path: Path) -> None:
    """Without --brokers it has as many as before. Fewer are refused before anything starts: a
    partition may have all its in-sync replicas on the missing ones."""
    directory = ClusterDirectory(tmp_path / "cluster")
    assert broker_count(None, directory) == 3
    for number in range(5):
        (directory.path / f"broker-{number}").mkdir(parents=True)
    assert broker_count(None, directory) == 5
    assert broker_count(6, directory) == 6
    for detach in ((), ("--detach",)):
        place = ("--data-dir", str(directory.path), *detach)
        failed = kafka08("up", "--brokers", "4", *place, code=2)
        assert f"the cluster in {directory.path} has 5 brokers" in failed.stderr
    assert directory.running() is None


def test_a_level_that_is_kept_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """If no other is given, and a new cluster would have another one."""
    directory = ClusterDirectory(tmp_path)
    properties = tmp_path / "broker-0" / "server.properties"
    properties.parent.mkdir()
    properties.write_text("api.level=0.9.0\n")
    check_level(directory, {"api.level": "0.10.2"})
    assert not capsys.readouterr().err
    check_level(directory, {})
    assert "stay at level 0.9.0, that of their data" in capsys.readouterr().err
    properties.write_text(f"api.level={NEWEST}\n")
    check_level(directory, {})
    assert not capsys.readouterr().err


def test_a_level_is_never_lowered(tmp_path: Path) -> None:
    """Brokers of 0.10.2 were started on logs of 0.11.0, which they cannot read."""
    properties = tmp_path / "broker-0" / "server.properties"
    properties.parent.mkdir()
    properties.write_text("api.level=0.11.0\n")
    with pytest.raises(click.BadParameter, match=r"have data of level 0\.11\.0, which an"):
        check_level(ClusterDirectory(tmp_path), {"api.level": "0.10.2"})
    check_level(ClusterDirectory(tmp_path), {"api.level": "0.11.0"})


def test_the_first_port_can_be_chosen(tmp_path: Path) -> None:
    """A port that is taken, and one that a broker of the directory would have to change, are
    refused before anything starts."""
    directory = ClusterDirectory(tmp_path)
    properties = tmp_path / "broker-1" / "server.properties"
    properties.parent.mkdir()
    port, other = free_ports(2)
    properties.write_text(f"advertised.port={port}\n")
    with pytest.raises(click.BadParameter, match=f"broker 1 .* keeps its port {port}"):
        check_ports(other, 2, directory)
    check_ports(port - 1, 2, directory)
    check_ports(other, 1, None)
    with (
        socket.create_server(("127.0.0.1", other)),
        pytest.raises(click.BadParameter, match=f"port {other}: "),
    ):
        check_ports(other, 1, None)


def test_a_cluster_that_died_says_why(kafka08: Commands, tmp_path: Path) -> None:
    """Later commands get the reason from the log of the process that failed."""
    log = tmp_path / "kafka08" / "cluster" / "up.log"
    log.parent.mkdir(parents=True)
    log.write_text("ZooKeeper  localhost:2181\nError: broker 0 ended:\n  more\n  its last line\n")
    for verb, code in (("status", 1), ("down", 0)):
        said = kafka08(verb, code=code).stderr
        assert f"The last error in {log}: Error: broker 0 ended\n  its last line\n" in said


def test_down_while_it_starts_is_no_start(kafka08: Commands, tmp_path: Path) -> None:
    """A `down` during `up --detach` makes it fail, and it prints no address."""
    directory = ClusterDirectory(tmp_path / "kafka08" / "cluster")
    starting = kafka08.start("up", "--detach", "--brokers", "1", stderr=subprocess.PIPE)
    # Not by the command: on a busy machine its process may start later than the cluster.
    until(lambda: directory.path.exists() and directory.stop(), "it starts")
    said, complained = starting.communicate(timeout=60)
    assert starting.returncode == 1
    assert b"the cluster did not start:\nStopped while it was starting." in complained
    assert said == b""


def test_two_at_once_start_one_cluster(kafka08: Commands) -> None:
    """Two `up` at once start one cluster, and both print its address."""
    both = [kafka08.start("up", "--detach", "--brokers", "1") for _ in range(2)]
    first, second = (one.communicate(timeout=60)[0] for one in both)
    assert [one.returncode for one in both] == [0, 0]
    assert first == second != b""


def test_the_suggested_command_has_the_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The suggested command has the directory if that is needed, also for a user without a default
    one."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert up_command("up restart 1", default_directory()) == "kafka08 up restart 1"
    assert up_command("up restart 1", Path("/a b")) == "kafka08 up restart 1 --data-dir '/a b'"
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert up_command("up restart 1", Path("/a")) == "kafka08 up restart 1 --data-dir /a"


def test_the_command_that_stops_it_has_the_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`up` with other options names the command that stops this cluster, not the default one."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with up.make_context("up", ["--brokers", "2"]):
        say_running(ClusterDirectory(tmp_path / "other"))
    assert f"stop it first: kafka08 down --data-dir {tmp_path}/other\n" in capsys.readouterr().err


def test_ctrl_c_while_it_starts_leaves_nothing(kafka08: Commands, tmp_path: Path) -> None:
    """Ctrl-C during the start leaves no process of the cluster, also none that was just being
    started."""
    directory = ClusterDirectory(tmp_path / "cluster")
    starting = subprocess.Popen(
        [sys.executable, "-m", "kafka08.cli", "up", "--detach", "--brokers=1"],
        env={**os.environ, "KAFKA08_DATA_DIR": str(directory.path)},
        stderr=subprocess.DEVNULL,
    )
    until(lambda: starting.poll() is not None or (directory.path.exists() and directory.running()))
    assert starting.poll() is None
    starting.send_signal(signal.SIGINT)
    assert starting.wait(60) == 1
    assert directory.running() is None
    running = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    assert str(directory.path) not in running.stdout


@pytest.mark.parametrize("key", ["broker.id", "port", "advertised.port", "zookeeper.connect"])
def test_keys_of_one_broker_are_refused(kafka08: Commands, key: str) -> None:
    """A key for one broker is refused instead of being ignored, and nothing is started."""
    refused = kafka08("up", "--detach", "--override", f"{key}=15555", code=2)
    assert f"`up` sets {key} for each broker; use `kafka08 broker start`" in refused.stderr


@pytest.mark.parametrize("key", ["listeners", "advertised.listeners"])
def test_listeners_are_refused(kafka08: Commands, key: str) -> None:
    """Listeners have ports, which `up` chooses. The error has the keys for clients on other
    machines, and nothing is started."""
    override = f"{key}=PLAINTEXT://0.0.0.0:9092"
    refused = kafka08("up", "--detach", "--override", override, code=2)
    assert "use host.name and advertised.host.name" in refused.stderr


def test_an_empty_directory_is_refused(kafka08: Commands) -> None:
    """`--data-dir "$UNSET"` does not fill the current directory, nor look for a cluster there."""
    for words in (["up", "--detach"], ["status"], ["down"], ["zookeeper", "start"]):
        said = kafka08(*words, "--data-dir", "", code=2).stderr
        assert "'--data-dir'" in said
        assert "it is empty; give a directory, . for the current one" in said


def test_the_file_of_one_broker_is_for_all(tmp_path: Path) -> None:
    """The file of one broker is applied to all, without that broker's own keys, which would be
    refused."""
    file = tmp_path / "server.properties"
    own = "broker.id=7\nport=15555\nlisteners=PLAINTEXT://:15555\nzookeeper.connect=h:1\n"
    file.write_text(f"{own}num.partitions=2\n")
    assert keys_for_all(str(file), (), None) == {"num.partitions": "2"}


def test_the_level_is_a_key_for_all() -> None:
    """api.level in the file applies to all brokers, and an option overrides it."""
    assert keys_for_all(None, (), None, "0.10.2") == {"api.level": "0.10.2"}
    assert keys_for_all(None, ("api.level=0.9.0",), None, "0.10.2") == {"api.level": "0.9.0"}


def test_ping_names_a_silent_broker(kafka08: Commands) -> None:
    """ping asks every broker by itself, and fails if one does not respond."""
    kafka08("up", "--detach", "--brokers", "1")
    address = json.loads(kafka08("status", "--json").stdout)["bootstrap"]
    assert kafka08("broker", "ping", address).stdout.startswith(f"{address} brokers ")
    failed = kafka08("broker", "ping", f"{address},127.0.0.1:1", code=1)
    assert "127.0.0.1:1 does not respond" in failed.stderr
    assert failed.stdout.startswith(f"{address} brokers ")
