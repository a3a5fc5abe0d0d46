"""ZooKeeper as this room sees it: a session that takes Operation values.

`ZkClient` adds what Kafka needs; below it an adapter holds the session: `kazoo_adapter` (a real
ensemble) or `model` (pure, for tests and simulation).

Guarantees of an adapter:

- Replies come in the order in which operations were sent.
- A watch's event comes before any reply that shows the change; its callback runs elsewhere,
  perhaps after the caller has read that reply.
- When the connection is lost, outstanding operations fail with ConnectionLost, listeners hear
  SUSPENDED, and every watcher is called and forgotten. When the session ends it is SessionExpired
  and LOST. After `close` every reply is SessionLost.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from kafka08.clock import SYSTEM_CLOCK, Clock
from kafka08.zk.operations import Operation


class ConnectionState(enum.Enum):
    CONNECTED = "a server holds the session"
    SUSPENDED = "no connection; the session may still live"
    LOST = "the session ended"


StateListener: TypeAlias = Callable[[ConnectionState], None]
"""Called by the adapter's connection loop: it must not wait."""


class Event(Protocol):
    """A flag to wait for, in the adapter's kind of waiting (threads, greenlets, simulated)."""

    def set(self) -> None: ...

    def clear(self) -> None: ...

    def is_set(self) -> bool: ...

    def wait(self, timeout: float | None = None) -> Any: ...


class Pending(Protocol):
    """The reply of one operation, which might not be there yet."""

    def ready(self) -> bool: ...

    def wait(self, seconds: float, /) -> object:
        """Wait until it is ready, at most `seconds`."""

    def outcome(self) -> Any:
        """The operation's result, or the ZooKeeperError it met (given, not raised). Only when
        ready."""


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """Parameters of a session.

    hosts        `host:port,host:port`
    chroot       prefix of every path: "" or `/a/b`
    timeout_ms   session timeout to request; the server grants one within its own bounds
    attach_to    id and password of a session to take over, instead of a new one
    """

    hosts: str
    chroot: str = ""
    timeout_ms: int = 6000
    clock: Clock = SYSTEM_CLOCK
    attach_to: tuple[int, bytes] | None = None


class ZooKeeper(Protocol):
    """One client's session; a new one follows when it ends, until `close`."""

    @property
    def session_id(self) -> int | None:
        """None while there is no session."""

    @property
    def session_password(self) -> bytes:
        """The password with which another client may take the session over
        (`SessionSettings.attach_to`)."""

    @property
    def granted_timeout_ms(self) -> int:
        """The timeout that the server granted; before the first connection the requested one."""

    @property
    def last_heard(self) -> float:
        """The time at which the newest request with a reply was sent, in monotonic
        seconds."""

    @property
    def requests_sent(self) -> int:
        """Requests in all sessions, heartbeats left out; a Multi is one."""

    def add_state_listener(self, listener: StateListener) -> None: ...

    def start(self) -> None:
        """Begin to connect; does not wait. Listeners hear CONNECTED."""

    def close(self) -> None:
        """End the session at the server, if there is a connection, and stop."""

    def send(self, operation: Operation) -> Pending:
        """Send it behind those sent before; does not wait. While there is no connection it waits
        for one. One that path_check.py refuses is not sent, and its reply is there at once."""

    def event(self) -> Event: ...

    def why_unreachable(self) -> str:
        """The outcome of a connection to each host, for an error. May wait some seconds for
        each."""

    def is_refused(self) -> bool:
        """Whether no host can start a session at this moment: each refuses the connection, or
        closes it without a reply. May wait some seconds for each."""


Adapter: TypeAlias = Callable[[SessionSettings], ZooKeeper]
"""Makes sessions of one kind."""
