"""`kafka08 up --detach | status | down` as a user types them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka08.admin import AdminClient
from kafka08.cli.up import keys_for_all
from kafka08.embedded.standing import ClusterDirectory
from tests.embedded.test_process import state_of


class Commands:
    """kafka08 in an environment whose default directory is the test's."""

    def __init__(self, state_home: Path) -> None:
        self._environ = {**os.environ, "XDG_STATE_HOME": str(state_home)}
        self._environ.pop("KAFKA08_DATA_DIR", None)

    def __call__(self, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "kafka08.cli", *arguments],
            env=self._environ,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert done.returncode == code, done.stderr
        return done


@pytest.fixture
def kafka08(tmp_path: Path) -> Iterator[Commands]:
    commands = Commands(tmp_path)
    yield commands
    commands("down")


def test_a_cluster_that_stays(kafka08: Commands, tmp_path: Path) -> None:
    """up --detach returns when it can be used, a second up names it, down keeps its data."""
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

    assert "Stopped the cluster" in kafka08("down").stderr
    assert not state_of(standing["pid"])
    assert "No cluster runs in" in kafka08("status", code=1).stderr
    assert "No cluster runs in" in kafka08("down").stderr

    kafka08("up", "--detach", "--brokers", "1")
    lines = kafka08("status", "--env").stdout.splitlines()
    assert lines == [
        f"export KAFKA08_ZOOKEEPER={standing['zookeeper']}",
        f"export KAFKA08_BOOTSTRAP={standing['bootstrap']}",
    ]
    with AdminClient(standing["zookeeper"]) as admin:
        assert admin.list_topics() == ["kept"]


def test_a_cluster_that_was_killed_does_not_count(kafka08: Commands) -> None:
    """The lock ends with its owner, so nothing has to be cleaned up before the next up."""
    kafka08("up", "--detach", "--brokers", "1")
    os.kill(json.loads(kafka08("status", "--json").stdout)["pid"], 9)
    kafka08("status", code=1)
    kafka08("up", "--detach", "--brokers", "1")


def test_a_cluster_that_cannot_start_says_why(kafka08: Commands) -> None:
    """The end of the broker's log is in the error, and nothing is left."""
    failed = kafka08("up", "--detach", "--brokers", "1", "--override", "num.partitions=0", code=1)
    assert "num.partitions: '0' is outside the range" in failed.stderr
    kafka08("status", code=1)


def test_a_cluster_that_died_says_why(kafka08: Commands, tmp_path: Path) -> None:
    """To whoever asks for it afterwards, from the log of the process that it belonged to."""
    log = tmp_path / "kafka08" / "cluster" / "up.log"
    log.parent.mkdir(parents=True)
    log.write_text("ZooKeeper  localhost:2181\nError: broker 0 ended:\n  its last line\n")
    for verb, code in (("status", 1), ("down", 0)):
        said = kafka08(verb, code=code).stderr
        assert f"{log} says of the last one: Error: broker 0 ended\n" in said


def test_ctrl_c_while_it_starts_leaves_nothing(kafka08: Commands, tmp_path: Path) -> None:
    """No process of the cluster, not even one that was just being started, outlives the command."""
    directory = ClusterDirectory(tmp_path / "cluster")
    starting = subprocess.Popen(
        [sys.executable, "-m", "kafka08.cli", "up", "--detach", "--brokers=1"],
        env={**os.environ, "KAFKA08_DATA_DIR": str(directory.path)},
        stderr=subprocess.DEVNULL,
    )
    while not directory.path.exists() or directory.running() is None:
        assert starting.poll() is None
        time.sleep(0.02)
    starting.send_signal(signal.SIGINT)
    assert starting.wait(60) == 1
    assert directory.running() is None
    running = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    assert str(directory.path) not in running.stdout


@pytest.mark.parametrize("key", ["broker.id", "port", "advertised.port", "zookeeper.connect"])
def test_keys_of_one_broker_are_refused(kafka08: Commands, key: str) -> None:
    """Rather than left unheard; nothing is started."""
    refused = kafka08("up", "--detach", "--override", f"{key}=15555", code=2)
    assert f"`up` sets {key} for each broker; use `kafka08 broker start`" in refused.stderr


def test_the_file_of_one_broker_is_for_all(tmp_path: Path) -> None:
    """Without what is that broker's own, which would be refused where the cluster is run."""
    file = tmp_path / "server.properties"
    file.write_text("broker.id=7\nport=15555\nzookeeper.connect=h:1\nnum.partitions=2\n")
    assert keys_for_all(str(file), (), None) == {"num.partitions": "2"}


def test_ping_tells_the_broker_that_is_silent(kafka08: Commands) -> None:
    """Each broker is asked by itself; one that does not answer makes it fail."""
    kafka08("up", "--detach", "--brokers", "1")
    address = json.loads(kafka08("status", "--json").stdout)["bootstrap"]
    assert kafka08("broker", "ping", address).stdout.startswith(f"{address} brokers ")
    failed = kafka08("broker", "ping", f"{address},127.0.0.1:1", code=1)
    assert "127.0.0.1:1 does not answer" in failed.stderr
    assert failed.stdout.startswith(f"{address} brokers ")
