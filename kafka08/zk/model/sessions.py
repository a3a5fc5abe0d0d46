"""The live sessions, and when each expires without a message of its client.

Sessions expire in buckets of one tick: after a message at `now`, a session lives until the first
multiple of the tick after now + its timeout. Sessions of one bucket expire in the order of their
ids.

Source: SessionTrackerImpl and ExpiryQueue 3.9; generatePasswd of ZooKeeperServer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_SUPER_SECRET: Final = 0xB3415C00


@dataclass(slots=True)
class Session:
    """timeout_ms: as its newest connection negotiated it. connection: None while it has none."""

    id: int
    timeout_ms: int
    deadline_ms: int
    connection: int | None


class Sessions:
    """tick_ms: the unit of expiry. Timeouts are granted between min_ms and max_ms."""

    def __init__(self, *, tick_ms: int, min_ms: int, max_ms: int, first_id: int) -> None:
        self._tick_ms = tick_ms
        self._min_ms = min_ms
        self._max_ms = max_ms
        self._next_id = first_id
        self._live: dict[int, Session] = {}

    def open(self, timeout_ms: int, connection: int, now_ms: int) -> Session:
        session = Session(self._next_id, self.granted(timeout_ms), 0, connection)
        self._next_id += 1
        self._live[session.id] = session
        self.touch(session, now_ms)
        return session

    def load(self, session_id: int, timeout_ms: int, now_ms: int) -> None:
        """Continue a stored session."""
        session = self._live[session_id] = Session(session_id, timeout_ms, 0, None)
        self._next_id = max(self._next_id, session_id + 1)
        self.touch(session, now_ms)

    def all(self) -> list[Session]:
        return [self._live[session_id] for session_id in sorted(self._live)]

    def granted(self, timeout_ms: int) -> int:
        return min(max(timeout_ms, self._min_ms), self._max_ms)

    def find(self, session_id: int) -> Session | None:
        return self._live.get(session_id)

    def touch(self, session: Session, now_ms: int) -> None:
        """A request or heartbeat of its client arrived."""
        session.deadline_ms = ((now_ms + session.timeout_ms) // self._tick_ms + 1) * self._tick_ms

    def hear_all(self, now_ms: int) -> None:
        for session in self._live.values():
            self.touch(session, now_ms)

    def end(self, session: Session) -> None:
        del self._live[session.id]

    def overdue(self, now_ms: int) -> list[Session]:
        """The sessions whose timeout has passed, in the order in which they expire."""
        late = [session for session in self._live.values() if session.deadline_ms <= now_ms]
        return sorted(late, key=lambda session: (session.deadline_ms, session.id))

    def next_deadline_ms(self) -> int | None:
        return min((session.deadline_ms for session in self._live.values()), default=None)


def password_of(session_id: int) -> bytes:
    """The 16 bytes that a client needs to take a session over.

    Source: `new java.util.Random(id ^ superSecret).nextBytes`.
    """
    mask = (1 << 48) - 1
    state = ((session_id ^ _SUPER_SECRET) ^ 0x5DEECE66D) & mask
    password = bytearray()
    for _ in range(4):
        state = (state * 0x5DEECE66D + 0xB) & mask
        password += (state >> 16).to_bytes(4, "little")
    return bytes(password)
