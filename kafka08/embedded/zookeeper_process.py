"""One ZooKeeper server as a child process: what Apache's (zookeeper.py) and ours for tests
(embedded_zookeeper.py) have in common."""

from __future__ import annotations

import shutil
import socket
import time
from abc import abstractmethod
from pathlib import Path
from typing import ClassVar, Final

from kafka08.config import escape_property
from kafka08.embedded.directories import make_directory, make_temporary, temporary_path
from kafka08.embedded.guard import Guard
from kafka08.embedded.ports import free_ports, kept_port, listen_fault
from kafka08.embedded.process import ManagedProcess
from kafka08.errors import ZooKeeperError
from kafka08.lifecycle import Startable

START_S: Final = 30.0
ATTEMPTS: Final = 4
NAME: Final = "ZooKeeper"
TICK_MS: Final = 500
"""The minimum of a session timeout is two ticks."""
MAX_SESSION_MS: Final = 60_000
DATA: Final = "data"
"""What Apache's server keeps its data in."""
JOURNAL: Final = "journal"
"""What ours keeps its state in (zk/server/journal.py)."""


class ZooKeeperProcess(Startable):
    """One server on `host` and `port`. With port 0 it takes that of an earlier server on the same
    directory if possible, else a free one.

    preferred_port  for port 0 without an earlier server, if it is free
    data_dir        the directory of data, configuration and log; None: a temporary one, removed at
                    stop
    """

    poll_seconds: ClassVar[float]
    """Between two questions whether it serves."""
    keeps: ClassVar[str]
    """What has its data: DATA or JOURNAL."""

    def __init__(
        self,
        data_dir: Path | str | None = None,
        port: int = 0,
        host: str = "127.0.0.1",
        *,
        preferred_port: int = 0,
        guard: Guard | None = None,
    ) -> None:
        self.host = host
        self.port = port
        self._wanted_port = port
        self._preferred_port = preferred_port
        self._temporary = data_dir is None
        self._directory = (
            temporary_path("kafka08-zookeeper-") if data_dir is None else Path(data_dir).absolute()
        )
        self._check_directory()
        self._own_guard = None if guard else Guard(self._directory if self._temporary else None)
        if self._temporary:
            make_temporary(self._directory)
        else:
            make_directory(self._directory)
        self._guard = guard or self._own_guard
        self._log = self._directory / "zookeeper.log"
        self._config = self._directory / "zoo.cfg"
        self._process: ManagedProcess | None = None

    @abstractmethod
    def _make_process(self, attempt: int, log: Path, guard: Guard) -> ManagedProcess:
        """The process that serves at `port`; `attempt` counts from 0. Called once `zoo.cfg` is
        written."""

    def _config_text(self) -> str:
        """The content of `zoo.cfg`."""
        return (
            f"dataDir={escape_property(str(self._served_directory))}\n"
            f"clientPort={self.port}\n"
            f"clientPortAddress={self.host}\n"
        )

    @property
    def _served_directory(self) -> Path:
        """The directory that the server itself names, in `conf`."""
        return self._directory

    @classmethod
    def has_data_in(cls, directory: Path) -> bool:
        """Whether an earlier server of this kind has left its data there."""
        return (directory / cls.keeps).exists()

    def _check_directory(self) -> None:
        """ConfigError for one that the server cannot use."""

    @property
    def connect_string(self) -> str:
        """`host:port`, for zookeeper.connect."""
        return f"{self.host}:{self.port}"

    @property
    def process(self) -> ManagedProcess:
        assert self._process is not None, "the server has not been started"
        return self._process

    @property
    def running(self) -> bool:
        """False before it is started, too."""
        return self._process is not None and self._process.running

    def start(self) -> None:
        """Start and wait until it serves. ConfigError: no Java or no jars; ZooKeeperError, with the
        end of its log: it does not start."""
        self.begin_start()
        self.await_ready()

    def begin_start(self) -> None:
        """Start and return at once; call `await_ready` afterwards. ZooKeeperError if the given port
        is taken."""
        if self._wanted_port and (fault := listen_fault(self.host, self._wanted_port)) is not None:
            raise ZooKeeperError(
                f"ZooKeeper cannot listen on {self.host}:{self._wanted_port}: {fault}"
            )
        self._launch(attempt=0)

    def await_ready(self) -> None:
        """Wait until it serves requests. If it cannot start (its port was taken, say), retry."""
        deadline = time.monotonic() + START_S
        attempt = 0
        while not self._serves():
            if time.monotonic() > deadline:
                raise ZooKeeperError(
                    f"ZooKeeper is not ready after {START_S:.0f} s: {self._failure()}"
                )
            if not self.process.running:
                attempt += 1
                if attempt == ATTEMPTS:
                    raise ZooKeeperError(f"ZooKeeper does not start: {self._failure()}")
                self._launch(attempt)
            time.sleep(self.poll_seconds)

    def stop(self) -> None:
        """Stop the server; remove its directory if it is temporary. May be called twice."""
        if self._process is not None:
            self._process.stop(timeout=10.0)
        if self._own_guard is not None:
            self._own_guard.close()
        if self._temporary:
            shutil.rmtree(self._directory, ignore_errors=True)

    def restart(self) -> None:
        """Stop, if it runs, and start again on the same port with the same data; sessions may
        survive."""
        self.process.stop(timeout=10.0)
        self.process.start()
        self.await_ready()

    def kill(self) -> None:
        """SIGKILL; `restart` starts it again, with all that it has acknowledged."""
        self.process.kill()

    def pause(self) -> None:
        """SIGSTOP: it keeps its connections and does not respond until `resume`."""
        self.process.pause()

    def resume(self) -> None:
        self.process.resume()

    def check_alive(self) -> None:
        """ZooKeeperError, with the end of its log, if it ended unexpectedly."""
        if not self.process.running:
            raise ZooKeeperError(self._failure())

    def _launch(self, attempt: int) -> None:
        if self._wanted_port == 0:
            kept = None
            if attempt == 0:
                kept = kept_port(self._config, "clientPort", [self._preferred_port], self.host)
            self.port = kept or free_ports(1, self.host)[0]
        self._config.write_text(self._config_text())
        assert self._guard is not None
        if self._process is not None:
            self._process.kill()
        self._process = self._make_process(attempt, self._log, self._guard)
        self._process.start()

    def _serves(self) -> bool:
        """Whether this server serves requests. It answers `ruok` before that, `srvr` only then.
        Another server may have taken the port; `conf` returns the directory of the one there."""
        ours = f"dataDir={self._served_directory}/"
        return "Mode:" in self._ask("srvr") and ours in self._ask("conf")

    def _ask(self, word: str) -> str:
        """The response to a four-letter word; "" if there is none."""
        try:
            with socket.create_connection((self.host, self.port), timeout=1.0) as connection:
                connection.sendall(word.encode())
                reply = b""
                while chunk := connection.recv(4096):
                    reply += chunk
        except OSError:
            return ""
        return reply.decode(errors="replace")

    def _failure(self) -> str:
        return self.process.describe_failure()
