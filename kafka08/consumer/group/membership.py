"""Membership: the state machine of one group member, in its client. Pure: no I/O, clock or
randomness.

    the reader calls        subscribe, unsubscribe, give_up, polling, polled, retry, take_assignment
    its threads call        joined, assigned, synced, heard, failed, refused, rejoin, progressed
    the committer calls     refused_commit
    the next action comes   from due

    OUTSIDE ─subscribe─▶ REVOKING ─give_up─▶ JOINING ─joined─▶ SYNCING ─synced─▶ STABLE
       ▲                    ▲                   ▲                 │                │
       └─unsubscribe        │                   └──27, 22, 25─────┘                │
                            └──27, 22, 25, another subscription, no poll for long──┘

In REVOKING the reader still holds its partitions: it ends its current work, and its next poll
commits and calls `give_up`. Until then the member sends heartbeats, so the group keeps it.
Times are seconds of a monotonic clock. Source: AbstractCoordinator, ConsumerCoordinator
(org.apache.kafka.clients.consumer.internals) 0.10.2.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from math import inf
from typing import Final, TypeAlias, TypeVar

from kafka08.consumer.fetching.outage import Outage
from kafka08.errors import (
    NO_ERROR,
    ApiError,
    ConsumerCoordinatorNotAvailable,
    FencedInstanceId,
    IllegalGeneration,
    InconsistentGroupProtocol,
    InvalidGroupId,
    InvalidSessionTimeout,
    KafkaError,
    MemberIdRequired,
    NotCoordinatorForConsumer,
    OffsetsLoadInProgress,
    PollIntervalExceeded,
    RebalanceInProgress,
    RequestTimedOut,
    UnknownMemberId,
    error_of,
)
from kafka08.protocol import heartbeat, join_group, sync_group
from kafka08.protocol.consumer_protocol import PROTOCOL_TYPE
from kafka08.protocol.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafka08.protocol.join_group import (
    JoinGroupMember,
    JoinGroupProtocol,
    JoinGroupRequest,
    JoinGroupResponse,
)
from kafka08.protocol.leave_group import LeaveGroupRequest
from kafka08.protocol.sync_group import SyncGroupAssignment, SyncGroupRequest, SyncGroupResponse
from kafka08.protocol.types import Buffer

NO_GENERATION: Final = -1
NO_MEMBER_ID: Final = ""
PASSING: Final = (
    OffsetsLoadInProgress.code,
    ConsumerCoordinatorNotAvailable.code,
    NotCoordinatorForConsumer.code,
    RequestTimedOut.code,
)
"""Retriable error codes. Only two mean that another broker is the coordinator: those of
client.cluster.LOST_COORDINATOR."""
FENCED: Final = (IllegalGeneration.code, UnknownMemberId.code)
"""Error codes that tell a member that the group continues without it."""
CURES: Final = {
    InconsistentGroupProtocol.code: "Its members have no assignor in common with this one: change "
    "partition.assignment.strategy or group.id",
    FencedInstanceId.code: "Another member with this group.instance.id has joined: give each its "
    "own. This one joins again only after `unsubscribe`",
    InvalidGroupId.code: "Set group.id",
    InvalidSessionTimeout.code: "Set session.timeout.ms between the brokers' "
    "group.min.session.timeout.ms and group.max.session.timeout.ms",
}
"""Error code of a refusal → what to do about it."""


class Phase(Enum):
    OUTSIDE = "outside"
    REVOKING = "revoking"
    JOINING = "joining"
    SYNCING = "syncing"
    STABLE = "stable"


@dataclass(frozen=True, slots=True)
class Timeouts:
    """All in seconds.

    session     the coordinator removes a member that is silent for so long
    heartbeat   interval of heartbeats
    poll        longest time between two polls; a rebalance waits as long for each member
    backoff     pause before a retry
    """

    session: float
    heartbeat: float
    poll: float
    backoff: float


@dataclass(frozen=True, slots=True)
class Wait:
    """Do nothing before `until`."""

    until: float


@dataclass(frozen=True, slots=True)
class Join:
    """Send a JoinGroup, made by `join_request`, and pass the response to `joined`."""


@dataclass(frozen=True, slots=True)
class Assign:
    """This member leads the group: compute the assignment and pass it to `assigned`."""

    protocol: str
    members: Sequence[JoinGroupMember]


@dataclass(frozen=True, slots=True)
class Sync:
    """Send the request and pass the response to `synced`."""

    request: SyncGroupRequest


@dataclass(frozen=True, slots=True)
class Beat:
    """Send the request and pass the response to `heard`."""

    request: HeartbeatRequest


@dataclass(frozen=True, slots=True)
class Leave:
    """Send the request; the response does not matter."""

    request: LeaveGroupRequest


R = TypeVar("R", HeartbeatRequest, JoinGroupRequest, SyncGroupRequest)
Action: TypeAlias = Wait | Join | Assign | Sync | Beat | Leave


@dataclass(frozen=True, slots=True)
class Generation:
    """The group generation and the member id, as a commit carries them."""

    id: int = NO_GENERATION
    member_id: str = NO_MEMBER_ID
    instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class Assigned:
    """The assignment of this member in a generation, as encoded bytes."""

    generation: int
    protocol: str
    data: Buffer


class Membership:
    """One member.

    phase        see the module
    generation   of the group, with this member's id; NO_GENERATION if it is in none, or the group
                 removed it
    last_generation  the same, but stays when the group removes it
    fault        why the group refuses the member; the reader takes it with `retry`
    instance_id  group.instance.id: a static member does not leave, so whoever joins under its name
                 before its session is over gets its partitions, without a rebalance
    keeps        whether the reader keeps its partitions while the member joins again
                 (cooperative): it gives up afterwards those that it is not assigned any more
    outage       retriable failures since the last success
    lost         the group removed the member, or it left because the reader did not poll: others
                 may own its partitions
    """

    def __init__(
        self,
        group: str,
        timeouts: Timeouts,
        *,
        instance_id: str | None = None,
        keeps: bool = False,
    ) -> None:
        self.group = group
        self.instance_id = instance_id
        self.keeps = keeps
        self.phase = Phase.OUTSIDE
        self.generation = self.last_generation = Generation()
        self.fault: KafkaError | None = None
        self.outage = Outage()
        self.lost = False
        self._timeouts = timeouts
        self._member_id = NO_MEMBER_ID
        self._protocol = ""
        self._members: Sequence[JoinGroupMember] | None = None
        """The members of the generation that this member leads, until `assigned`."""
        self._shares: list[SyncGroupAssignment] = []
        self._join_again = False
        """The subscription has changed since the JoinGroup in flight."""
        self._new: Assigned | None = None
        self._beat_at = -inf
        self._try_at = -inf
        self._polled_at = -inf
        self._is_polling = False
        self._leaving: list[LeaveGroupRequest] = []

    def __repr__(self) -> str:
        return (
            f"<Membership of group {self.group}: {self.phase.value}, generation "
            f"{self.generation.id}, member {self._member_id!r}>"
        )

    # ------------------------------------------------------------------------------- the reader

    def subscribe(self, now: float) -> None:
        """Join, or rejoin with another subscription."""
        self._polled_at = max(self._polled_at, now)
        if self.phase in {Phase.OUTSIDE, Phase.STABLE}:
            self._revoke()
        elif self.phase in {Phase.JOINING, Phase.SYNCING}:
            self._join_again = True
        self.fault = None

    def unsubscribe(self) -> None:
        """Leave the group, if in one. Responses to requests in flight will be ignored."""
        self._leave()
        self.last_generation = Generation()
        self.phase = Phase.OUTSIDE
        self.fault = None
        self.lost = self._join_again = False
        self._recover()

    def give_up(self) -> None:
        """The reader has given up all partitions of the previous assignment."""
        assert self.phase is Phase.REVOKING
        self.phase = Phase.JOINING
        self.lost = self._join_again = False

    def polling(self, now: float) -> None:
        """A poll has begun; max.poll.interval.ms does not run while it lasts."""
        self._is_polling = True
        self._polled_at = now

    def polled(self, now: float) -> None:
        """The poll has ended."""
        self._is_polling = False
        self._polled_at = now

    def progressed(self, now: float) -> None:
        """The reader has taken another message from its iterator, which counts as a poll."""
        self._polled_at = max(self._polled_at, now)

    def retry(self) -> KafkaError | None:
        """The fault, returned once; the next join attempt follows. A fenced instance must not: it
        would fence the other one, and so on."""
        fault = self.fault
        if not isinstance(fault, FencedInstanceId):
            self.fault = None
        return fault

    def take_assignment(self) -> Assigned | None:
        """The assignment of this member, once for each generation."""
        if self.phase is not Phase.STABLE:
            return None
        new, self._new = self._new, None
        return new

    @property
    def must_give_up(self) -> bool:
        return self.phase is Phase.REVOKING

    @property
    def must_leave(self) -> bool:
        """Whether a LeaveGroup is due."""
        return bool(self._leaving)

    # -------------------------------------------------------------------------------- what to do

    def due(self, now: float) -> Action:
        """The next action."""
        if self._leaving:
            return Leave(self._leaving.pop(0))
        if self.phase is Phase.OUTSIDE or self.fault is not None:
            return Wait(inf)
        if self.phase in {Phase.JOINING, Phase.SYNCING}:
            if now < self._try_at:
                return Wait(self._try_at)
            if self.phase is Phase.JOINING:
                return Join()
            if self._members is not None:
                return Assign(self._protocol, self._members)
            return Sync(self._sync_request())
        # The group has removed the member: the reader's next poll gives up its partitions.
        if self.generation.id == NO_GENERATION:
            return Wait(inf)
        if not self._is_polling and now >= self._polled_at + self._timeouts.poll:
            return self._exceed()
        due = max(self._beat_at, self._try_at)
        if now < due:
            return Wait(
                due if self._is_polling else min(due, self._polled_at + self._timeouts.poll)
            )
        beat = HeartbeatRequest(self.group, self.generation.id, self._member_id, self.instance_id)
        return Beat(self._at(beat, heartbeat.INSTANCE_VERSION))

    def join_request(self, protocols: Sequence[JoinGroupProtocol]) -> JoinGroupRequest:
        """`protocols`: the assignors with their subscriptions, in order of preference."""
        self._join_again = False
        request = JoinGroupRequest(
            self.group,
            round(self._timeouts.session * 1000),
            round(self._timeouts.poll * 1000),
            self._member_id,
            PROTOCOL_TYPE,
            list(protocols),
            self.instance_id,
        )
        return self._at(request, join_group.INSTANCE_VERSION)

    # ------------------------------------------------------------------------------- the responses

    def joined(self, response: JoinGroupResponse, now: float) -> None:
        if self.phase is not Phase.JOINING:
            return
        code = response.error_code
        if code == NO_ERROR:
            self._recover()
            self._member_id = response.member_id
            self.generation = self.last_generation = Generation(
                response.generation, response.member_id, self.instance_id
            )
            self._protocol = response.protocol
            leads = response.leader_id == response.member_id
            self._members = response.members if leads else None
            self._shares = []
            self.phase = Phase.SYNCING
        elif code == MemberIdRequired.code:
            self._member_id = response.member_id  # it joins with it at once
        elif code in FENCED:
            self._join_as_new()
        elif code == FencedInstanceId.code:
            self._fence()
        else:
            # Later brokers respond with 27 if the group's record was not replicated in time.
            self._refused(code, now, f"group {self.group} refused to let this member join")

    def assigned(self, shares: Mapping[str, bytes]) -> None:
        """The leader has computed the assignment: member id → encoded assignment."""
        self._members = None
        self._shares = [SyncGroupAssignment(member, data) for member, data in shares.items()]

    def synced(self, response: SyncGroupResponse, now: float) -> None:
        if self.phase is not Phase.SYNCING:
            return
        code = response.error_code
        if code == NO_ERROR:
            self._recover()
            self.phase = Phase.STABLE
            self._new = Assigned(self.generation.id, self._protocol, response.assignment)
            self._beat_at = now + self._timeouts.heartbeat
            if self._join_again:
                self._revoke()
        elif code == RebalanceInProgress.code:
            self.phase = Phase.JOINING
        elif code in FENCED:
            self._join_as_new()
        elif code == FencedInstanceId.code:
            self._fence()
        else:
            self.phase = Phase.JOINING
            self._refused(code, now, f"group {self.group} did not take the assignment")

    def heard(self, response: HeartbeatResponse, generation: int, now: float) -> None:
        """The response to a heartbeat of `generation`."""
        # Late: the member has joined again or left since it was sent.
        if generation != self.generation.id or self.phase not in {Phase.STABLE, Phase.REVOKING}:
            return
        code = response.error_code
        if code in {NO_ERROR, RebalanceInProgress.code}:
            self._recover()
            self._beat_at = now + self._timeouts.heartbeat
            if code != NO_ERROR:
                self._revoke()
        elif code in FENCED:
            self._lose()
        elif code == FencedInstanceId.code:
            self._fence()
        else:
            self._refused(code, now, f"group {self.group} refused a heartbeat")

    def failed(self, error: KafkaError, now: float) -> None:
        """A request or the search for the coordinator failed with a retriable error."""
        self.outage.failed(error, now)
        self._try_at = now + self._timeouts.backoff

    def refused(self, error: KafkaError) -> None:
        """A failure that no retry cures: an assignor failed, or there is none to join with."""
        if self.phase is Phase.SYNCING:
            self.phase = Phase.JOINING
        self.fault = error

    def refused_commit(self, code: int, generation: Generation) -> None:
        """The coordinator refused a commit of `generation` with an error about the membership."""
        if generation != self.generation or self.phase not in {Phase.STABLE, Phase.REVOKING}:
            return
        if code in FENCED:
            self._lose()
        elif code == FencedInstanceId.code:
            self._fence()
        elif code == RebalanceInProgress.code:
            self._revoke()

    def rejoin(self) -> None:
        """The assignment does not fit: there are other topics or partitions than those that it was
        computed from, or its bytes or the assignor are of no use."""
        if self.phase is Phase.STABLE:
            self._revoke()

    # --------------------------------------------------------------------------------- its parts

    def _sync_request(self) -> SyncGroupRequest:
        request = SyncGroupRequest(
            *(self.group, self.generation.id, self._member_id, self._shares, self.instance_id)
        )
        return self._at(request, sync_group.INSTANCE_VERSION)

    def _at(self, request: R, instance_version: int) -> R:
        """Only static members need the version with their name."""
        if self.instance_id is not None:
            request.version = instance_version
        return request

    def _revoke(self) -> None:
        self.phase = Phase.REVOKING

    def _lose(self) -> None:
        """The group continues without this member."""
        self._forget_member()
        self.lost = True
        self._revoke()

    def _fence(self) -> None:
        """Another member has its name."""
        self._lose()
        self._refused(FencedInstanceId.code, 0.0, f"group {self.group}, {self.instance_id}")

    def _join_as_new(self) -> None:
        """The group has removed the member while it joined."""
        if self.keeps:
            self._lose()
        else:
            self._forget_member()
            self.phase = Phase.JOINING

    def _forget_member(self) -> None:
        self._member_id = NO_MEMBER_ID
        self.generation = Generation()

    def _leave(self) -> None:
        if self._member_id != NO_MEMBER_ID and self.instance_id is None:
            self._leaving.append(LeaveGroupRequest(self.group, self._member_id))
        self._forget_member()

    def _exceed(self) -> Action:
        self._leave()
        self._lose()
        self.fault = PollIntervalExceeded(
            f"group {self.group}: no poll for max.poll.interval.ms "
            f"({round(self._timeouts.poll * 1000)} ms), so this member left the group and others "
            "have its partitions. It joins again at the next poll. Raise max.poll.interval.ms, or "
            "lower max.poll.records, if the work between two polls takes that long"
        )
        return Leave(self._leaving.pop(0)) if self._leaving else Wait(inf)

    def _recover(self) -> None:
        self.outage.end()
        self._try_at = -inf

    def _refused(self, code: int, now: float, what: str) -> None:
        cure = f". {CURES[code]}" if code in CURES else ""
        error: ApiError | None = error_of(code, f"{what}{cure}")
        assert error is not None
        if code in PASSING or code == RebalanceInProgress.code:
            self.failed(error, now)
        else:
            self.fault = error
