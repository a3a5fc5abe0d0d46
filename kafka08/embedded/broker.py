"""One broker of an embedded cluster: its process, properties file and log."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from kafka08.config import escape_property
from kafka08.embedded.broker_state import BrokerState, Condition
from kafka08.embedded.directories import make_directory
from kafka08.embedded.fork_server import ForkedProcess
from kafka08.embedded.guard import Guard
from kafka08.errors import KafkaError
from kafka08.structs import Broker

PROPERTIES = "server.properties"
OWN_KEYS = ("broker.id", "port", "advertised.port", "zookeeper.connect")
"""Keys that the cluster sets for each broker, overriding `config`."""
LISTENER_KEYS = ("listeners", "advertised.listeners")
"""Keys that no cluster takes: each broker has a port of its own. Their hosts may be given as
host.name and advertised.host.name."""
ALL_INTERFACES = ("0.0.0.0", "")
DONE: dict[Condition, str] = {"running": "starts", "stopped": "stops", "killed": "kills"}
"""The words for what leads to a condition."""


class EmbeddedBroker:
    """A broker process. It keeps its id, port and directory over stop, kill and start.

    port         the port that clients get
    listen_port  the port that it listens on, if that differs (behind a relay)
    host         its host.name, unless `config` has one. Where it listens on all interfaces, it is
                 reached at 127.0.0.1
    directory    holds server.properties, server.log and logs/ (log.dirs)
    faults       the directory of the cluster's fault rules (fault_rules.py), if it has any
    config       Kafka keys; those that identify this broker are added here
    note         is told what is done to it, for the story of a test
    may_halt     whether its end is no surprise until the next start: its disk was broken
    started_ms   when its process was last started, in ms since 1970; 0: never
    """

    def __init__(
        self,
        broker_id: int,
        port: int,
        *,
        listen_port: int | None = None,
        host: str,
        directory: Path,
        zookeeper_connect: str,
        config: Mapping[str, str],
        guard: Guard,
        faults: Path | None = None,
        note: Callable[[str], object] = lambda text: None,
    ) -> None:
        self.id = broker_id
        host = config.get("host.name", host)
        self.host = "127.0.0.1" if host in ALL_INTERFACES else host
        self.port = port
        self.listen_port = listen_port or port
        self.directory = directory
        self.config = {
            "host.name": host,
            "log.dirs": str(directory / "logs"),
            **config,
            "broker.id": str(broker_id),
            "port": str(self.listen_port),
            "advertised.port": str(port),
            "zookeeper.connect": zookeeper_connect,
        }
        self._note = note
        self.expected_running = False
        self.may_halt = False
        self._condition: Condition = "stopped"
        self._since = time.time()
        self.started_ms = 0
        self._properties = directory / PROPERTIES
        self.process = ForkedProcess(
            f"broker {broker_id}",
            "broker",
            [str(self._properties), *([str(faults)] if faults else [])],
            log=directory / "server.log",
            guard=guard,
        )

    @property
    def address(self) -> Broker:
        """The address on this machine. It registers advertised.host.name, if there is one."""
        return Broker(self.id, self.host, self.port)

    @property
    def running(self) -> bool:
        return self.process.running

    @property
    def is_paused(self) -> bool:
        return self.process.is_paused

    @property
    def log_dirs(self) -> Path:
        """The directory of its partitions."""
        return Path(self.config["log.dirs"])

    def start(self) -> None:
        """Start the process and return at once; `EmbeddedCluster.await_ready` waits for it."""
        make_directory(self.directory)
        lines = (f"{key}={escape_property(value)}\n" for key, value in self.config.items())
        self._properties.write_text("".join(lines), encoding="ascii")
        self.started_ms = int(time.time() * 1000)
        self.process.start()
        self.expected_running = True
        self.may_halt = False
        self._become("running")

    def begin_stop(self) -> None:
        self.expected_running = False
        self.process.begin_stop()
        self._become("stopped")

    def stop(self) -> int | None:
        """A clean stop by SIGTERM (SIGKILL if that takes too long); the exit code."""
        self.begin_stop()
        return self.process.finish_stop()

    def kill(self) -> None:
        """SIGKILL. Its znode stays until its ZooKeeper session times out."""
        self.expected_running = False
        self.process.kill()
        self._become("killed")

    def pause(self) -> None:
        """SIGSTOP: its TCP connections stay open, but it does not respond."""
        self.process.pause()
        self._note(f"pauses broker {self.id}")

    def resume(self) -> None:
        self.process.resume()
        self._note(f"resumes broker {self.id}")

    def accepts_connections(self) -> bool:
        try:
            socket.create_connection((self.host, self.listen_port), timeout=1.0).close()
        except OSError:
            return False
        return True

    def partition_directory(self, topic: str, partition: int) -> Path:
        """The directory of a partition. KafkaError if it has none."""
        for log_dir in self.config["log.dirs"].split(","):
            directory = Path(log_dir) / f"{topic}-{partition}"
            if directory.is_dir():
                return directory
        raise KafkaError(f"broker {self.id} has no directory of [{topic},{partition}]")

    def check_alive(self) -> None:
        """KafkaError, with the end of its log, if its process ended unexpectedly."""
        if self.expected_running and not self.running and not self.may_halt:
            raise KafkaError(self.process.describe_failure())

    def note_death(self) -> bool:
        """Whether its process ended unexpectedly. True once: from then on it is not expected to run
        until the next start."""
        if not self.expected_running or self.running:
            return False
        self.expected_running = False
        self._become("died")
        return True

    @property
    def state(self) -> BrokerState:
        """Its current state."""
        died = self.expected_running and not self.running
        condition = "died" if died else self._condition
        return BrokerState(
            self.id,
            f"{self.host}:{self.port}",
            condition,
            self.process.pid if condition == "running" else None,
            self.process.exit_code,
            self._since,
            str(self.process.log),
        )

    def _become(self, condition: Condition) -> None:
        self._condition = condition
        self._since = time.time()
        if condition != "died":
            self._note(f"{DONE[condition]} broker {self.id}")
