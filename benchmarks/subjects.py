"""The two brokers that are compared: a JVM 0.8.2.2 and ours, each with a ZooKeeper chroot."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from benchmarks.load import CLIENT_ID, connect, exchange
from kafka08.embedded.ports import free_ports
from kafka08.embedded.process import ManagedProcess
from kafka08.protocol import codec
from kafka08.protocol.metadata import MetadataRequest, MetadataResponse
from tests.interop.jvm import POM, JvmBroker, guard

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
CPUCLOCK_SCHED = 2
MAIN = "kafka08.broker.process.main"
SETTINGS = {
    "num.partitions": "4",
    "log.segment.bytes": str(1 << 30),
    "log.retention.bytes": str(1 << 28),
    "log.retention.check.interval.ms": "1000",
    "log.segment.delete.delay.ms": "100",
    "delete.topic.enable": "true",
    "controlled.shutdown.enable": "false",
    "offsets.topic.num.partitions": "5",
}


class Subject(Protocol):
    """A broker under load."""

    name: str
    address: str
    log_dir: Path

    @property
    def pid(self) -> int | None: ...
    def start(self) -> None: ...
    def kill(self) -> None: ...


def server_flags(heap: str = "1G") -> tuple[str, ...]:
    """Those of a server under load, in place of the tests': both compilers, G1, and the heap of
    Kafka's own start script."""
    return (
        f"-Xmx{heap}",
        f"-Xms{heap}",
        "-XX:TieredStopAtLevel=4",
        "-XX:-UseSerialGC",
        "-XX:+UseG1GC",
        "-XX:MaxGCPauseMillis=20",
    )


class JvmSubject(JvmBroker):
    """A JVM broker, with the heap of 0.8.2.2's own start script unless told otherwise."""

    def __init__(
        self,
        directory: Path,
        zookeeper: str,
        properties: Mapping[str, str] | None = None,
        *,
        broker_id: int = 1,
        heap: str = "1G",
        pom: Path = POM,
    ) -> None:
        keys = {**SETTINGS, **(properties or {})}
        flags = server_flags(heap)
        super().__init__(directory, broker_id, zookeeper, keys, flags=flags, pom=pom)
        self.name = "jvm"


class OurSubject(ManagedProcess):
    """One of our brokers as a process of its own.

    turns   the long turns of its event loop, if `records_turns` (turns.py)
    """

    def __init__(
        self,
        directory: Path,
        zookeeper: str,
        properties: Mapping[str, str] | None = None,
        *,
        broker_id: int = 1,
        records_turns: bool = False,
    ) -> None:
        [port] = free_ports(1)
        self.address = f"127.0.0.1:{port}"
        self.log_dir = directory / "logs"
        directory.mkdir(parents=True, exist_ok=True)
        config = directory / "server.properties"
        keys = {
            **SETTINGS,
            "broker.id": str(broker_id),
            "host.name": "127.0.0.1",
            "port": str(port),
            "log.dirs": str(self.log_dir),
            "zookeeper.connect": zookeeper,
            **(properties or {}),
        }
        config.write_text("".join(f"{name}={value}\n" for name, value in keys.items()))
        self.turns = directory / "turns" if records_turns else None
        runs = ["benchmarks.turns", str(self.turns)] if records_turns else [MAIN]
        command = [sys.executable, "-m", *runs, str(config)]
        super().__init__("ours", command, log=directory / "broker.out", guard=guard())

    def start(self) -> None:
        """Start and wait until it says that it has."""
        said = self.log_size
        super().start()
        while "], started" not in self.logged_since(said, lines=sys.maxsize):
            assert self.running, self.describe_failure()
            time.sleep(0.01)


def cpu_seconds(pid: int | None) -> float:
    """User and system time of a process and all its threads so far, to the nanosecond: Linux has a
    clock for each process (MAKE_PROCESS_CPUCLOCK)."""
    assert pid is not None
    return time.clock_gettime(~pid << 3 | CPUCLOCK_SCHED)


def resident_megabytes(pid: int | None) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise AssertionError(f"no VmRSS of process {pid}")


def wait_for_port(address: str, timeout_s: float = 60) -> None:
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            connect(address).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.005)


def await_leaders(subject: Subject, topic: str, partitions: int, timeout_s: float = 30) -> None:
    """Ask for the topic's metadata (which may create it) until every partition has a leader."""
    frame = codec.encode_request(MetadataRequest([topic]), 1, CLIENT_ID)
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        with connect(subject.address) as connection:
            response_frame = exchange(connection, frame)
        response = codec.decode_response(MetadataRequest, memoryview(response_frame)[4:])[1]
        assert isinstance(response, MetadataResponse)
        found = response.topics[0].partitions
        if len(found) == partitions and all(partition.leader >= 0 for partition in found):
            return
        time.sleep(0.05)
    raise AssertionError(f"{topic} has no leaders on {subject.name}")
