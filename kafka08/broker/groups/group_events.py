"""The inputs and actions of a group: plain values without behaviour. They are never changed; they
are not frozen because creating a frozen one takes three times as long.

`reply` is opaque to the group: it identifies the waiting client, and comes back with the response.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from kafka08.errors import NO_ERROR
from kafka08.protocol.group_records import StoredGroup

NO_MEMBER_ID: Final = ""
"""The member id of a client that is not a member yet."""
NO_ASSIGNMENT: Final = b""

Protocols: TypeAlias = tuple[tuple[str, bytes], ...]
"""(name, metadata) of a member's supported protocols, in order of preference."""


@dataclass(slots=True)
class JoinResult:
    """A JoinGroup response. `members` is (member id, metadata) of all members for the leader, and
    empty for the others."""

    member_id: str
    generation: int = 0
    protocol: str = ""
    leader_id: str = ""
    members: tuple[tuple[str, bytes], ...] = ()
    error_code: int = NO_ERROR


JoinReply: TypeAlias = Callable[[JoinResult], object]
SyncReply: TypeAlias = Callable[[bytes, int], object]
"""Called with the assignment and the error code."""


@dataclass(slots=True)
class Join:
    """A JoinGroup request.

    member_id              NO_MEMBER_ID for a new member
    new_member_id          the id for a new member
    client_host            of a new member, for DescribeGroups: "/" and the address
    rebalance_timeout_ms   how long others wait for the member in a rebalance
    """

    member_id: str
    new_member_id: str
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    reply: JoinReply


@dataclass(slots=True)
class RespondToJoin:
    reply: JoinReply
    result: JoinResult


@dataclass(slots=True)
class RespondToSync:
    reply: SyncReply
    assignment: bytes
    error_code: int = NO_ERROR


@dataclass(slots=True)
class StartSession:
    """Call `Group.session_timer` for the member in `delay_ms`."""

    member_id: str
    delay_ms: float


@dataclass(slots=True)
class EndSession:
    """The member is gone; cancel its timer."""

    member_id: str


@dataclass(slots=True)
class StartRebalance:
    """Call `Group.rebalance_timer` in `delay_ms`."""

    delay_ms: float


@dataclass(slots=True)
class EndRebalance:
    """A rebalance is complete; cancel its timer. It has none if all members had joined when it
    began."""


END_REBALANCE: Final = EndRebalance()


@dataclass(slots=True)
class StoreGroup:
    """Append the group's record, then call `Group.stored` with this and the error code.

    assignments   member id → assignment, of every member
    """

    record: StoredGroup
    assignments: Mapping[str, bytes]

    @property
    def generation(self) -> int:
        return self.record.generation


@dataclass(slots=True)
class RemoveGroup:
    """0.9: the last member has left. Remove the group and append its tombstone."""


Action: TypeAlias = (
    RespondToJoin
    | RespondToSync
    | StartSession
    | EndSession
    | StartRebalance
    | EndRebalance
    | StoreGroup
    | RemoveGroup
)
Actions: TypeAlias = list[Action]
