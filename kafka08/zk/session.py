"""The life of a ZooKeeper session as its owner sees it, from the states its adapter reports.

    (start) ── CONNECTED ──▶ connected ── SUSPENDED ──▶ suspended
                                ▲  ▲                       │   │
                                │  └────── RECONNECTED ────┘   │ the server says: expired
                                └───────── EXPIRED ─────── gone ◀┘

EXPIRED comes when a new session exists, never before, and once for each session that ended: by then
every ephemeral znode of the old session is gone, and the owner registers again. Between SUSPENDED
and the next event the state of the session is unknown; an owner that depends on it (a controller)
pauses. After the client is closed there are no more events.
"""

from __future__ import annotations

import enum
import logging
from collections import Counter
from collections.abc import Callable

from kafka08.zk.zookeeper import ConnectionState

logger = logging.getLogger(__name__)


class SessionEvent(enum.Enum):
    CONNECTED = "the first connection is established"
    SUSPENDED = "the connection is lost; the session may still live"
    RECONNECTED = "connected again, in the same session"
    EXPIRED = "the old session ended and a new one began"


class SessionState(enum.Enum):
    NEW = "not connected yet"
    CONNECTED = "connected"
    SUSPENDED = "not connected; the session may still live"
    GONE = "the session ended; the next connection is a new one"
    CLOSED = "closed by its owner"


SessionListener = Callable[[SessionEvent], None]
"""Called in the adapter's connection loop: it may only post the event to its owner's queue."""


class SessionTracker:
    """Turns connection states into session events, each exactly once."""

    def __init__(self) -> None:
        self.state = SessionState.NEW
        self.sessions_ended = 0
        self.told: Counter[SessionEvent] = Counter()
        self._listeners: list[SessionListener] = []

    def add_listener(self, listener: SessionListener) -> None:
        self._listeners.append(listener)

    def close(self) -> None:
        self.state = SessionState.CLOSED

    def on_connection_state(self, state: ConnectionState) -> None:
        """Process one state; called by the adapter's connection loop."""
        if self.state is SessionState.CLOSED:
            return
        if state is ConnectionState.CONNECTED:
            event = {
                SessionState.NEW: SessionEvent.CONNECTED,
                SessionState.SUSPENDED: SessionEvent.RECONNECTED,
                SessionState.GONE: SessionEvent.EXPIRED,
            }.get(self.state)
            self.state = SessionState.CONNECTED
            if event is not None:
                self._notify(event)
        elif state is ConnectionState.SUSPENDED and self.state is SessionState.CONNECTED:
            self.state = SessionState.SUSPENDED
            self._notify(SessionEvent.SUSPENDED)
        elif state is ConnectionState.LOST and self.state is not SessionState.NEW:
            self.sessions_ended += self.state is not SessionState.GONE
            self.state = SessionState.GONE

    def _notify(self, event: SessionEvent) -> None:
        self.told[event] += 1
        logger.log(
            logging.INFO if event is SessionEvent.CONNECTED else logging.WARNING,
            "ZooKeeper session: %s",
            event.value,
        )
        for listener in self._listeners:
            listener(event)
