"""EmbeddedZooKeeper: our own ZooKeeper server (kafka08/zk/server) as a child process, for tests.

It needs no Java, starts in a tenth of a second, and has faults on command. A kill, pause or restart
of its process keeps znodes and sessions, as a real one's disk does; a crash of the machine does
not: for data that must last there is `ZooKeeperServer`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

from kafka08.embedded.fork_server import ForkedProcess
from kafka08.embedded.guard import Guard
from kafka08.embedded.process import ManagedProcess
from kafka08.embedded.zookeeper_process import (
    DATA,
    JOURNAL,
    MAX_SESSION_MS,
    NAME,
    TICK_MS,
    ZooKeeperProcess,
)
from kafka08.errors import ConfigError, ZooKeeperError
from kafka08.runtime.sockets import is_loopback
from kafka08.zk.server.limits import NOT_LOOPBACK


class EmbeddedZooKeeper(ZooKeeperProcess):
    """As ZooKeeperProcess. In the faults, session None stands for all sessions.

    any_address   allow a `host` that other machines reach: they may do anything with the server.
                  ConfigError without it
    """

    poll_seconds: ClassVar = 0.005
    keeps: ClassVar = JOURNAL

    def __init__(
        self,
        data_dir: Path | str | None = None,
        port: int = 0,
        host: str = "127.0.0.1",
        *,
        any_address: bool = False,
        preferred_port: int = 0,
        guard: Guard | None = None,
    ) -> None:
        if not (any_address or is_loopback(host)):
            raise ConfigError(NOT_LOOPBACK.format(host=host))
        super().__init__(data_dir, port, host, preferred_port=preferred_port, guard=guard)
        self._any_address = any_address

    def expire_session(self, session: int | None) -> None:
        """End it now, as if its timeout had passed: its znodes go, its connection is closed."""
        self._order(do="expire", session=session)

    def disconnect(self, session: int | None = None) -> None:
        """Close its connection; the client may come back at once."""
        self._order(do="disconnect", session=session)

    def delay_replies(self, seconds: float, session: int | None = None) -> None:
        """Send its replies and events so much later from now on; 0: as usual."""
        self._order(do="delay", session=session, ms=round(seconds * 1000))

    def lose_replies(self, count: int = 1, session: int | None = None) -> None:
        """Apply each of the next `count` requests (heartbeats aside), and close the connection
        instead of its reply: the client cannot know whether it was applied."""
        self._order(do="lose", session=session, count=count)

    def sessions(self) -> dict[int, int]:
        """The id of each live session → its timeout in ms."""
        return {s["id"]: s["timeout_ms"] for s in self._order(do="sessions")["sessions"]}

    def _order(self, **command: Any) -> dict[str, Any]:
        """Send one command to the server (zk/server/faults.py); its response. ZooKeeperError if it
        refuses, or does not answer."""
        reply = self._ask(f"ctrl{json.dumps(command)}\n")
        if not reply:
            raise ZooKeeperError(f"ZooKeeper at {self.connect_string} did not answer: {command}")
        response: dict[str, Any] = json.loads(reply)
        if "error" in response:
            raise ZooKeeperError(f"ZooKeeper at {self.connect_string}: {response['error']}")
        return response

    def _make_process(self, attempt: int, log: Path, guard: Guard) -> ManagedProcess:
        arguments = [
            f"--host={self.host}",
            f"--port={self.port}",
            f"--data-dir={self._directory}",
            f"--tick-ms={TICK_MS}",
            f"--max-session-ms={MAX_SESSION_MS}",
            *(["--any-address"] if self._any_address else []),
        ]
        return ForkedProcess(NAME, "zookeeper", arguments, log=log, guard=guard)

    def _check_directory(self) -> None:
        if (self._directory / DATA).exists():
            raise ConfigError(
                f"{self._directory} has the data of Apache's ZooKeeper, which the embedded one "
                'cannot read. Use Apache\'s (EmbeddedCluster: zookeeper="java"; `kafka08 up`: '
                "--zookeeper java), or another directory"
            )
