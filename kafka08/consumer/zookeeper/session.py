"""How long a member may deliver and commit: as long as no other member can own its partitions.

ZooKeeper reassigns a member's partitions when its session expires, which is the granted timeout
after ZooKeeper last heard from it. So a member stops a margin before that moment by its own clock,
whether or not it has noticed a problem; a stopped process or a stuck thread notices nothing. A
suspended connection stops it at once.
"""

from __future__ import annotations

from math import inf
from typing import Final

from kafka08.clock import Clock
from kafka08.errors import SessionLost
from kafka08.zk.client import ZkClient
from kafka08.zk.session import SessionState

MARGIN: Final = 0.1
"""The share of the session timeout left for clock drift and for messages in processing."""


class SessionGate:
    """Tells until when the member's session is certain to live. Cheap to call, and never waits.

    clock   the one that `zk` was made with
    """

    def __init__(self, zk: ZkClient, clock: Clock) -> None:
        self._zk = zk
        self._clock = clock
        self._session_id: int | None = None

    def admit_session(self, session_id: int | None) -> None:
        """Open for this session only; called when the member has registered in it and owns nothing
        of an earlier one."""
        self._session_id = session_id

    def deadline(self) -> float:
        """The monotonic time until which the admitted session certainly lives; -inf if it is not
        connected, or over. It stays the same until ZooKeeper is heard from: a reader that calls it
        twice must not take a moment in between for the end of the session."""
        if self._zk.state is not SessionState.CONNECTED:
            return -inf
        if self._session_id is None or self._zk.session_id != self._session_id:
            return -inf
        timeout_s = self._zk.granted_timeout_ms / 1000
        return self._zk.last_contact + timeout_s * (1 - MARGIN)

    @property
    def is_open(self) -> bool:
        return self._clock.monotonic() < self.deadline()

    def check(self) -> None:
        """SessionLost unless it is open. Call it directly before each write of a commit."""
        if not self.is_open:
            raise SessionLost(
                "the ZooKeeper session may have expired; commits continue when it is confirmed or "
                "replaced"
            )
