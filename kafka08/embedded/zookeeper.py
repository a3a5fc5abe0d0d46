"""A real ZooKeeper server as a child process, ready in well under a second.

It runs `org.apache.zookeeper.server.ZooKeeperServerMain` from the jars that java.py finds: one
server, not an ensemble, for tests, the demo and a cluster on one machine.
"""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
import time
from pathlib import Path

from kafka08.config import escape_property
from kafka08.embedded.directories import make_directory
from kafka08.embedded.guard import Guard
from kafka08.embedded.java import find_java, zookeeper_classpath
from kafka08.embedded.ports import free_ports, is_free, listen_fault, written_port
from kafka08.embedded.process import ManagedProcess
from kafka08.errors import ConfigError, ZooKeeperError
from kafka08.lifecycle import Startable

START_SECONDS = 30.0
ATTEMPTS = 4
TICK_MS = 500
"""The minimum of a session timeout is two ticks."""
MAX_SESSION_MS = 60_000
_POLL_SECONDS = 0.02

_JVM_FLAGS = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-XX:-UsePerfData",
    "-Xshare:auto",
    "-Xmx256m",
    "-Dzookeeper.jmx.log4j.disable=true",
    "-Dzookeeper.admin.enableServer=false",
    "-Dzookeeper.preAllocSize=256",
)


class ZooKeeperServer(Startable):
    """One server on `host` and `port`. With port 0 it takes that of an earlier server on the same
    directory if possible, else a free one.

    preferred_port  for port 0 without an earlier server, if it is free
    data_dir        the directory of data, configuration and log; None: a temporary one, removed at
                    stop. ConfigError if its path is not UTF-8
    durable         fsync every write (None: only in a given directory). Without it, a crash of the
                    machine LOSES data; a crash of the process does not
    """

    def __init__(
        self,
        data_dir: Path | str | None = None,
        port: int = 0,
        host: str = "127.0.0.1",
        *,
        preferred_port: int = 0,
        durable: bool | None = None,
        guard: Guard | None = None,
    ) -> None:
        self.host = host
        self.port = port
        self._wanted_port = port
        self._preferred_port = preferred_port
        self._temporary = data_dir is None
        self._durable = not self._temporary if durable is None else durable
        self._directory = Path(data_dir or tempfile.mkdtemp(prefix="kafka08-zookeeper-")).absolute()
        _check_encoding(self._directory)
        make_directory(self._directory)
        self._own_guard = None if guard else Guard(self._directory if self._temporary else None)
        self._guard = guard or self._own_guard
        self._log = self._directory / "zookeeper.log"
        self._config = self._directory / "zoo.cfg"
        self._process: ManagedProcess | None = None

    @property
    def connect_string(self) -> str:
        """`host:port`, for zookeeper.connect."""
        return f"{self.host}:{self.port}"

    @property
    def process(self) -> ManagedProcess:
        assert self._process is not None, "the server has not been started"
        return self._process

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

    def await_ready(self, timeout: float = START_SECONDS) -> None:
        """Wait until it serves requests. If it cannot start (its port was taken, say), retry."""
        deadline = time.monotonic() + timeout
        attempt = 0
        while not self._serves():
            if time.monotonic() > deadline:
                raise ZooKeeperError(
                    f"ZooKeeper is not ready after {timeout:.0f} s: {self._failure()}"
                )
            if not self.process.running:
                attempt += 1
                if attempt == ATTEMPTS:
                    raise ZooKeeperError(f"ZooKeeper does not start: {self._failure()}")
                self._launch(attempt)
            time.sleep(_POLL_SECONDS)

    def stop(self) -> None:
        """Stop the server; remove its directory if it is temporary. May be called twice."""
        if self._process is not None:
            self._process.stop(timeout=10.0)
        if self._own_guard is not None:
            self._own_guard.close()
        if self._temporary:
            shutil.rmtree(self._directory, ignore_errors=True)

    def restart(self) -> None:
        """Stop and start again on the same port with the same data; sessions may survive."""
        self.process.stop(timeout=10.0)
        self.process.start()
        self.await_ready()

    def check_alive(self) -> None:
        """ZooKeeperError, with the end of its log, if it ended unexpectedly."""
        if not self.process.running:
            raise ZooKeeperError(self._failure())

    def _launch(self, attempt: int) -> None:
        # The first attempt logs nothing and is fast; a later one logs why it fails.
        if self._wanted_port == 0:
            self.port = self._earlier_port() if attempt == 0 else 0
            self.port = self.port or free_ports(1, self.host)[0]
        self._write_config()
        classpath = zookeeper_classpath(logging=attempt > 0)
        command = [
            str(find_java()),
            *_JVM_FLAGS,
            f"-Dzookeeper.forceSync={'yes' if self._durable else 'no'}",
            "-cp",
            ":".join(map(str, classpath)),
            "org.apache.zookeeper.server.ZooKeeperServerMain",
            str(self._config),
        ]
        assert self._guard is not None
        if self._process is not None:
            self._process.kill()
        self._process = ManagedProcess(
            "ZooKeeper",
            command,
            log=self._log,
            guard=self._guard,
            environ={**os.environ, "LC_ALL": "C.UTF-8"},  # in which Java decodes paths
        )
        self._process.start()

    def _earlier_port(self) -> int:
        """The port of an earlier server on this directory, else the preferred one, if it is free;
        else 0."""
        candidates = [self._preferred_port]
        if (earlier := written_port(self._config, "clientPort")) is not None:
            candidates.insert(0, earlier)
        return next((port for port in candidates if port and is_free(self.host, port)), 0)

    def _write_config(self) -> None:
        self._config.write_text(
            f"dataDir={escape_property(str(self._directory / 'data'))}\n"
            f"clientPort={self.port}\n"
            f"clientPortAddress={self.host}\n"
            f"tickTime={TICK_MS}\n"
            f"maxSessionTimeout={MAX_SESSION_MS}\n"
            "maxClientCnxns=0\n"
            "4lw.commands.whitelist=ruok,srvr,conf,stat,mntr,cons,dump,wchs\n"
        )

    def _serves(self) -> bool:
        """Whether this server serves requests. It answers `ruok` before that, `srvr` only then.
        Another server may have taken the port; `conf` returns the directory of the one there."""
        ours = f"dataDir={self._directory / 'data'}/"
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


def _check_encoding(directory: Path) -> None:
    """ConfigError for a path that Java cannot open."""
    try:
        str(directory).encode()
    except UnicodeEncodeError as error:
        raise ConfigError(
            f"the path of the directory {str(directory)!r} is not UTF-8, which ZooKeeper needs. "
            "Use another directory"
        ) from error
