"""Member: a coordinator's view of a group member. Source:
kafka.coordinator.MemberMetadata 0.10.2.2."""

from __future__ import annotations

from dataclasses import dataclass, field

from kafka08.broker.groups.group_events import (
    NO_ASSIGNMENT,
    JoinReply,
    Protocols,
    SyncReply,
)


@dataclass(slots=True)
class Member:
    """The timeouts are those of its first join; a later join replaces only `protocols`.

    assignment       of the stored generation; NO_ASSIGNMENT until then
    parked_join      the client that waits for the rebalance to complete
    parked_sync      the client that waits for the leader's assignment
    expires_ms       when the session expires, unless it is renewed before
    has_timer        whether a session timer runs; it may fire before `expires_ms`, never after
    """

    member_id: str
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: Protocols
    assignment: bytes = NO_ASSIGNMENT
    parked_join: JoinReply | None = None
    parked_sync: SyncReply | None = None
    expires_ms: float = 0.0
    has_timer: bool = field(default=False)

    @property
    def is_parked(self) -> bool:
        """Whether one of its requests is parked, which keeps its session alive."""
        return self.parked_join is not None or self.parked_sync is not None

    def renew_session(self, now_ms: float) -> None:
        self.expires_ms = now_ms + self.session_timeout_ms

    def metadata(self, protocol: str) -> bytes:
        """Its metadata for a protocol that it supports."""
        for name, data in self.protocols:
            if name == protocol:
                return data
        raise KeyError(protocol)
