"""Runs kafka08 as processes on the session's cluster: its output, and its exit code."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from kafka08.cli import main
from kafka08.client import parse_bootstrap
from kafka08.consumer import SimpleConsumer
from kafka08.embedded import EmbeddedCluster
from kafka08.observe.trees import read_commits
from kafka08.stop_signals import stop_signals
from kafka08.structs import TopicPartition
from kafka08.zk.client import ZkClient
from kafka08.zk.store import ClusterStore
from tests.waiting import until

DEADLINE_S = 60.0
WORKING = re.compile(rb"^Working \(\d+ s\)\n", re.MULTILINE)
"""The line of a command that takes long, as every command does on a busy machine."""
COMMAND = (sys.executable, "-m", "kafka08.cli")


class Done(NamedTuple):
    """The exit code and the output of a command."""

    code: int
    out: bytes
    err: str


class Running:
    """A command in the background, with its output in files."""

    def __init__(self, popen: subprocess.Popen[bytes], out: Path, err: Path) -> None:
        self.popen = popen
        self._out = out
        self._err = err

    @property
    def out(self) -> bytes:
        return self._out.read_bytes()

    @property
    def err(self) -> str:
        return self._err.read_text()

    def await_out(self, lines: int) -> None:
        """Waits until the command has printed this number of lines."""
        until(lambda: self.out.count(b"\n") >= lines or self.popen.poll() is not None)
        assert self.out.count(b"\n") >= lines, self.err

    def stop(self, number: int = signal.SIGTERM) -> Done:
        self.popen.send_signal(number)
        return self.wait()

    def wait(self) -> Done:
        return Done(self.popen.wait(DEADLINE_S), self.out, self.err)


class Commands:
    """Runs kafka08 with KAFKA08_ZOOKEEPER and KAFKA08_BOOTSTRAP set to the cluster."""

    def __init__(self, cluster: EmbeddedCluster, directory: Path) -> None:
        self.cluster = cluster
        self.directory = directory
        self.environ = {
            **os.environ,
            "KAFKA08_ZOOKEEPER": cluster.zookeeper.connect_string,
            "KAFKA08_BOOTSTRAP": cluster.bootstrap,
        }
        self.started: list[subprocess.Popen[bytes]] = []

    def __call__(self, *arguments: object, stdin: bytes = b"", code: int = 0) -> Done:
        """Runs a command to its end. It must exit with `code` and print no traceback."""
        done = subprocess.run(
            [*COMMAND, *map(str, arguments)],
            input=stdin,
            capture_output=True,
            env=self.environ,
            timeout=DEADLINE_S,
            check=False,
        )
        err = WORKING.sub(b"", done.stderr).decode()
        assert "Traceback" not in err, err
        assert code == done.returncode, err
        return Done(done.returncode, done.stdout, err)

    def refused(self, *arguments: object) -> Done:
        """Runs a command in this process, for one that is refused at its start: a new process costs
        more."""
        out, err = io.BytesIO(), io.BytesIO()
        stdout, stderr = (io.TextIOWrapper(raw, "utf-8", write_through=True) for raw in (out, err))
        handlers = {number: signal.getsignal(number) for number in stop_signals()}
        loggers = logging.getLogger().handlers[:]
        with (
            pytest.MonkeyPatch.context() as patch,
            contextlib.redirect_stdout(stdout),
            contextlib.redirect_stderr(stderr),
        ):
            patch.setattr(sys, "argv", ["kafka08", *map(str, arguments)])
            for name in ("KAFKA08_ZOOKEEPER", "KAFKA08_BOOTSTRAP"):
                patch.setenv(name, self.environ[name])
            with pytest.raises(SystemExit) as ended:
                main()
        for number, handler in handlers.items():
            signal.signal(number, handler)
        logging.getLogger().handlers[:] = loggers
        assert isinstance(ended.value.code, int)
        return Done(ended.value.code, out.getvalue(), err.getvalue().decode())

    def shell(self, line: str) -> Done:
        """Runs a line of bash in which `kafka08` is the command."""
        program = f'kafka08() {{ "{COMMAND[0]}" -m kafka08.cli "$@"; }}\n{line}'
        done = subprocess.run(
            ["bash", "-c", program],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=self.environ,
            timeout=DEADLINE_S,
            check=False,
        )
        assert b"Traceback" not in done.stderr, done.stderr.decode()
        return Done(done.returncode, done.stdout, WORKING.sub(b"", done.stderr).decode())

    def start(self, *arguments: object, stdin: int = subprocess.DEVNULL) -> Running:
        """Starts a command in the background. It ends with the test."""
        number = len(self.started)
        out, err = (self.directory / f"{number}.{name}" for name in ("out", "err"))
        with out.open("wb") as stdout, err.open("wb") as stderr:
            popen = subprocess.Popen(
                [*COMMAND, *map(str, arguments)],
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                env=self.environ,
            )
        self.started.append(popen)
        return Running(popen, out, err)


@pytest.fixture
def kafka08(kafka08_cluster: EmbeddedCluster, tmp_path: Path) -> Iterator[Commands]:
    commands = Commands(kafka08_cluster, tmp_path)
    yield commands
    for popen in commands.started:
        if popen.poll() is None:
            popen.kill()
            popen.wait(DEADLINE_S)


@pytest.fixture(scope="session")
def coordinating(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    """kafka08 with the one broker of a cluster of 0.10.2, and without its ZooKeeper."""
    # Messages of 2017 are older than the retention.ms of a topic.
    config = {"offsets.topic.num.partitions": 3, "log.retention.ms": "-1"}
    with EmbeddedCluster(brokers=1, level="0.10.2", config=config) as cluster:
        commands = Commands(cluster, tmp_path_factory.mktemp("commands"))
        del commands.environ["KAFKA08_ZOOKEEPER"]
        yield commands


class Inspector:
    """Reads what is in the cluster without the commands."""

    def __init__(self, cluster: EmbeddedCluster, zk: ZkClient) -> None:
        self._cluster = cluster
        self.zk = zk
        self.store = ClusterStore(zk)

    def create_topic(self, name: str, partitions: int = 1) -> str:
        self._cluster.create_topic(name, partitions)
        return name

    def messages(self, topic: str, partition: int = 0) -> list[tuple[bytes | None, bytes | None]]:
        """(key, value) of each message of a partition."""
        tp = TopicPartition(topic, partition)
        leader = self.store.leader_and_isr([tp])[tp].leader
        host, port = parse_bootstrap(self._cluster.bootstrap)[leader]
        with SimpleConsumer(host, port) as consumer:
            return [(m.key, m.value) for m in consumer.read_range(tp, 0)]

    def committed(self, group: str) -> dict[int, int]:
        """partition → offset in ZooKeeper, of the one topic of the group."""
        offsets = read_commits(self.store.zk, [group])[group].values
        return {tp.partition: committed.offset for tp, committed in offsets.items()}


@pytest.fixture
def inspect(kafka08_cluster: EmbeddedCluster) -> Iterator[Inspector]:
    with ZkClient(kafka08_cluster.zookeeper.connect_string, name="inspector") as zk:
        yield Inspector(kafka08_cluster, zk)


@pytest.fixture
def lifeless(kafka08_cluster: EmbeddedCluster, inspect: Inspector) -> Iterator[ClusterStore]:
    """A cluster in a chroot of ZooKeeper in which no broker runs, so states of partitions stay as
    they are written. `store.zk` has its address."""
    inspect.zk.create("/lifeless", None)
    with ZkClient(f"{kafka08_cluster.zookeeper.connect_string}/lifeless", name="lifeless") as zk:
        yield ClusterStore(zk)
    inspect.zk.delete_recursive("/lifeless")
