"""Group: the state machine of one coordinated group. Pure: no I/O, no clock, no random source.

    requests   join, sync, heartbeat, leave, check_commit
    timers     session_timer (of a member), rebalance_timer
    log        stored (the record was appended, or not), Group.loaded, unload, expire

    EMPTY ──join──▶ PREPARING_REBALANCE ──all joined, or time is up──▶ AWAITING_SYNC
      ▲                │        ▲                                          │
      └──no members────┘        └──join, leave, expiry── STABLE ◀──stored──┘

Each event changes the state first and returns the actions to execute, in order. Times are ms of a
monotonic clock. GroupState documents the result of each request in each state.

Differences from the original: a join without protocols is refused with 23 (0.10.2 returns -1 and
the group is stuck). A parked join or sync gets 25 if its member is removed, or when another client
with the same member id is parked in its place (the original never responds). Source:
kafka.coordinator.GroupCoordinator, GroupMetadata 0.9.0.1 and 0.10.2.2,
kafka.coordinator.group.InitialDelayedJoin 0.11.0.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter

from kafka08.broker.groups.group_events import (
    END_REBALANCE,
    NO_ASSIGNMENT,
    NO_MEMBER_ID,
    Action,
    Actions,
    EndSession,
    Join,
    JoinReply,
    JoinResult,
    RemoveGroup,
    RespondToJoin,
    RespondToSync,
    StartRebalance,
    StartSession,
    StoreGroup,
    SyncReply,
)
from kafka08.broker.groups.group_member import Member
from kafka08.broker.groups.group_state import VALID_PREVIOUS, GroupState
from kafka08.broker.groups.protocol_votes import ProtocolVotes
from kafka08.errors import (
    NO_ERROR,
    IllegalGeneration,
    InconsistentGroupProtocol,
    NotCoordinatorForConsumer,
    RebalanceInProgress,
    UnknownMemberId,
)
from kafka08.levels import Level
from kafka08.protocol.group_records import StoredGroup, StoredMember

PROTOCOLS = attrgetter("protocols")
# Each GroupState.STABLE would search the class.
EMPTY, PREPARING_REBALANCE, AWAITING_SYNC, STABLE, DEAD = GroupState
CAN_REBALANCE = VALID_PREVIOUS[PREPARING_REBALANCE]


@dataclass(slots=True)
class InitialWait:
    """The wait of an EMPTY group's first rebalance.

    delay_ms        how long it is
    remaining_ms    how much longer later waits may take together, as the original counts
    has_new_member  whether a member came meanwhile
    """

    delay_ms: float
    remaining_ms: float
    has_new_member: bool = False


class Group:
    """One group.

    state            changed by `_become` only
    generation       number of completed rebalances; only grows
    protocol_type    of its members, such as "consumer"; "" if no member has ever joined
    protocol         chosen for this generation; None in EMPTY
    leader_id        the member that assigns partitions; None without members
    members          by member id, in the order of their first joins

    `initial_delay_ms`: how long the first rebalance of an EMPTY group waits, although all members
    have joined. Each wait in which a member came to a new group is followed by another, up to the
    members' rebalance timeout.
    """

    def __init__(self, name: str, level: Level, initial_delay_ms: float = 0) -> None:
        self.name = name
        self.state = EMPTY
        self.generation = 0
        self.protocol_type = ""
        self.protocol: str | None = None
        self.leader_id: str | None = None
        self.members: dict[str, Member] = {}
        self._level = level
        self._votes = ProtocolVotes()
        self._parked_joins = 0
        self._initial_delay_ms = initial_delay_ms
        self._initial_wait: InitialWait | None = None

    def __str__(self) -> str:
        return f"group {self.name} generation {self.generation} ({self.state.value})"

    @classmethod
    def loaded(
        cls,
        name: str,
        level: Level,
        record: StoredGroup,
        now_ms: float,
        initial_delay_ms: float = 0,
    ) -> tuple[Group, Actions]:
        """The group of a record: STABLE, or EMPTY without members, whose protocol type is lost.
        Every session starts now. A member supports only the record's protocol until it joins
        again. A leader that is no member would be the leader of all who join, and never assign
        them anything: then the first member leads."""
        group = cls(name, level, initial_delay_ms)
        group.generation = record.generation
        group.protocol = record.protocol
        actions: Actions = []
        if record.members:
            group.protocol_type = record.protocol_type
            group.state = STABLE
        for stored in record.members:
            member = Member(
                stored.member_id,
                stored.client_id,
                stored.client_host,
                stored.rebalance_timeout_ms,
                stored.session_timeout_ms,
                ((record.protocol or "", bytes(stored.subscription)),),
                bytes(stored.assignment),
            )
            group.members[member.member_id] = member
            group._votes.add(member.protocols)
            group._renew_session(member, now_ms, actions)
        is_member = record.leader in group.members
        group.leader_id = record.leader if is_member else next(iter(group.members), None)
        return group, actions

    # Requests

    def join(self, request: Join, now_ms: float) -> Actions:
        """A JoinGroup request with a legal session timeout."""
        error_code = self._refuse_join(request)
        if error_code:
            refused = JoinResult(request.member_id, error_code=error_code)
            return [RespondToJoin(request.reply, refused)]
        member = self.members.get(request.member_id)
        if member is None:
            member = self._add(request)
        elif self._keeps_generation(member, request):
            return [RespondToJoin(request.reply, self._join_result(member))]
        else:
            self._votes.replace(member.protocols, request.protocols)
            member.protocols = request.protocols
        actions: Actions = []
        if member.parked_join is None:
            self._parked_joins += 1
        else:  # another client with this member id
            replaced = JoinResult(member.member_id, error_code=UnknownMemberId.code)
            actions.append(RespondToJoin(member.parked_join, replaced))
        member.parked_join = request.reply
        return [*actions, *self._rebalance(now_ms)]

    def _refuse_join(self, request: Join) -> int:
        is_new = request.member_id == NO_MEMBER_ID
        if self.state is DEAD:
            return UnknownMemberId.code
        if not self._votes.accepts(request.protocols) or (
            self.members and request.protocol_type != self.protocol_type
        ):
            return InconsistentGroupProtocol.code
        if not is_new and request.member_id not in self.members:
            return UnknownMemberId.code
        return NO_ERROR

    def _keeps_generation(self, member: Member, request: Join) -> bool:
        """Whether a member that joins again gets the current generation. The leader of a STABLE
        group joins in order to rebalance: it may have noticed new partitions."""
        if self.state is AWAITING_SYNC:
            return member.protocols == request.protocols
        if self.state is STABLE:
            is_leader = member.member_id == self.leader_id
            return not is_leader and member.protocols == request.protocols
        return False

    def abandon_join(self, reply: JoinReply, now_ms: float) -> Actions:
        """The client of a new member is gone before the response to its first join, which has the
        member's id: nobody can be that member. The original keeps it, with its metadata, until its
        session expires, and every rebalance until then has it."""
        for member in self.members.values():
            if member.parked_join is reply:
                return self._fail(member, now_ms)
        return []

    def sync(
        self,
        member_id: str,
        generation: int,
        assignments: Mapping[str, bytes],
        reply: SyncReply,
        now_ms: float,
    ) -> Actions:
        """A SyncGroup request. Those of the leader's `assignments` for unknown members are dropped;
        a member without one gets NO_ASSIGNMENT."""
        member = self.members.get(member_id)
        if self.state is DEAD or member is None:
            return [RespondToSync(reply, NO_ASSIGNMENT, UnknownMemberId.code)]
        if generation != self.generation:
            return [RespondToSync(reply, NO_ASSIGNMENT, IllegalGeneration.code)]
        if self.state is PREPARING_REBALANCE:
            return [RespondToSync(reply, NO_ASSIGNMENT, RebalanceInProgress.code)]
        if self.state is STABLE:
            actions: Actions = [RespondToSync(reply, member.assignment)]
            self._renew_session(member, now_ms, actions)
            return actions
        actions = []
        if member.parked_sync is not None:  # another client with this member id
            unknown = UnknownMemberId.code
            actions.append(RespondToSync(member.parked_sync, NO_ASSIGNMENT, unknown))
        member.parked_sync = reply
        if member_id == self.leader_id:
            whole = {known: assignments.get(known, NO_ASSIGNMENT) for known in self.members}
            actions.append(StoreGroup(self._record(whole), whole))
        return actions

    def heartbeat(self, member_id: str, generation: int, now_ms: float) -> int:
        """The error code of a Heartbeat request. 0.9 checks member and generation only in STABLE,
        and renews the session only there."""
        state = self.state
        if state is DEAD or state is EMPTY:
            return UnknownMemberId.code
        if self._level < Level.V0_10_2 and state is not STABLE:
            return RebalanceInProgress.code
        member = self.members.get(member_id)
        if member is None:
            return UnknownMemberId.code
        # Without a check of the generation or a renewed session, as in 0.10.2.2.
        if state is AWAITING_SYNC:
            return RebalanceInProgress.code
        if generation != self.generation:
            return IllegalGeneration.code
        member.renew_session(now_ms)
        return NO_ERROR if state is STABLE else RebalanceInProgress.code

    def leave(self, member_id: str, now_ms: float) -> tuple[int, Actions]:
        """A LeaveGroup request: its error code, and the resulting actions."""
        member = self.members.get(member_id)
        if self.state is DEAD or member is None:
            return UnknownMemberId.code, []
        return NO_ERROR, self._fail(member, now_ms)

    def check_commit(self, member_id: str, generation: int, now_ms: float) -> int:
        """Whether an OffsetCommit may be stored: its error code. A generation below 0 means that
        the group only stores offsets in Kafka, which is allowed while it has no members."""
        if self.state is DEAD:
            return UnknownMemberId.code
        if generation < 0 and self.state is EMPTY:
            return NO_ERROR
        if self.state is AWAITING_SYNC:
            return RebalanceInProgress.code
        member = self.members.get(member_id)
        if member is None:
            return UnknownMemberId.code
        if generation != self.generation:
            return IllegalGeneration.code
        if self._level >= Level.V0_10_2:
            # From 0.10 on a commit counts as a heartbeat.
            member.renew_session(now_ms)
        return NO_ERROR

    # Timers

    def session_timer(self, member_id: str, now_ms: float) -> Actions:
        """The timer of StartSession. A session with a parked request does not expire; its timer
        starts again with the response."""
        member = self.members.get(member_id)
        if member is None or self.state is DEAD:
            return []
        member.has_timer = False
        if member.is_parked:
            return []
        # Renewed since: one timer serves all renewals, so a heartbeat changes no timer.
        if now_ms < member.expires_ms:
            member.has_timer = True
            return [StartSession(member_id, member.expires_ms - now_ms)]
        return self._fail(member, now_ms)

    def rebalance_timer(self, now_ms: float) -> Actions:
        """The timer of StartRebalance: members that have not joined are removed."""
        actions: Actions = []
        if self.state is PREPARING_REBALANCE:
            wait = self._initial_wait
            if wait is not None and wait.has_new_member and wait.remaining_ms > 0:
                delay_ms = min(self._initial_delay_ms, wait.remaining_ms)
                left_ms = max(0, wait.remaining_ms - wait.delay_ms)
                self._initial_wait = InitialWait(delay_ms, left_ms)
                return [StartRebalance(delay_ms)]
            self._complete_rebalance(now_ms, actions)
        return actions

    # The log

    def stored(self, request: StoreGroup, error_code: int, now_ms: float) -> Actions:
        """The result of a StoreGroup. Ignored if the group has rebalanced meanwhile."""
        generation = request.record.generation
        if self.state is not AWAITING_SYNC or generation != self.generation:
            return []
        if error_code:
            return [*self._respond_to_syncs(error_code, now_ms), *self._rebalance(now_ms)]
        for member in self.members.values():
            member.assignment = request.assignments.get(member.member_id, NO_ASSIGNMENT)
        self._become(STABLE)
        return self._respond_to_syncs(NO_ERROR, now_ms)

    def unload(self) -> Actions:
        """Another broker now coordinates the group: parked requests get 16."""
        actions: Actions = [END_REBALANCE] if self.state is PREPARING_REBALANCE else []
        self._become(DEAD)
        for member in self.members.values():
            actions.append(EndSession(member.member_id))
            actions += self._release(member, NotCoordinatorForConsumer.code)
        return actions

    def expire(self, has_offsets: bool) -> bool:
        """Make an EMPTY group without offsets DEAD; returns whether it is."""
        if self.state is not EMPTY or has_offsets:
            return False
        self._become(DEAD)
        return True

    # Inside

    def _become(self, state: GroupState) -> None:
        assert self.state in VALID_PREVIOUS[state], f"{self} cannot become {state.value}"
        self.state = state

    def _add(self, request: Join) -> Member:
        member = Member(
            request.new_member_id,
            request.client_id,
            request.client_host,
            request.rebalance_timeout_ms,
            request.session_timeout_ms,
            request.protocols,
        )
        if self._initial_wait is not None and self.generation == 0:
            self._initial_wait.has_new_member = True
        if not self.members:
            self.protocol_type = request.protocol_type
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        self._votes.add(member.protocols)
        return member

    def _fail(self, member: Member, now_ms: float) -> Actions:
        """The member has left or its session has expired."""
        return [*self._remove(member), *self._rebalance(now_ms)]

    def _remove(self, member: Member) -> Iterator[Action]:
        del self.members[member.member_id]
        self._votes.remove(member.protocols)
        if member.member_id == self.leader_id:
            self.leader_id = next(iter(self.members), None)
        yield EndSession(member.member_id)
        yield from self._release(member, UnknownMemberId.code)

    def _release(self, member: Member, error_code: int) -> Iterator[Action]:
        """Respond to a member's parked requests."""
        if member.parked_join is not None:
            self._parked_joins -= 1
            result = JoinResult(member.member_id, error_code=error_code)
            yield RespondToJoin(member.parked_join, result)
        if member.parked_sync is not None:
            yield RespondToSync(member.parked_sync, NO_ASSIGNMENT, error_code)
        member.parked_join = member.parked_sync = None

    def _rebalance(self, now_ms: float) -> Actions:
        """Start a rebalance unless one is in progress, and complete it if all members joined."""
        actions: Actions = []
        # Also true without members: the group is empty at once.
        have_all_joined = self._parked_joins == len(self.members)
        if self.state in CAN_REBALANCE:
            if self.state is AWAITING_SYNC:
                actions += self._respond_to_syncs(RebalanceInProgress.code, now_ms)
            begins = self.state is EMPTY and self._initial_delay_ms > 0
            self._become(PREPARING_REBALANCE)
            if begins:
                delay_ms = self._initial_delay_ms
                timeout_ms = max(member.rebalance_timeout_ms for member in self.members.values())
                self._initial_wait = InitialWait(delay_ms, max(0, timeout_ms - delay_ms))
                actions.append(StartRebalance(delay_ms))
            elif not have_all_joined:
                delay_ms = max(member.rebalance_timeout_ms for member in self.members.values())
                actions.append(StartRebalance(delay_ms))
        if have_all_joined and self._initial_wait is None:
            self._complete_rebalance(now_ms, actions)
        return actions

    def _complete_rebalance(self, now_ms: float, actions: Actions) -> None:
        self._initial_wait = None
        actions.append(END_REBALANCE)
        if self._parked_joins < len(self.members):
            for member in list(self.members.values()):
                if member.parked_join is None:
                    actions += self._remove(member)
        if self.members:
            self._begin_generation(now_ms, actions)
        elif self._level < Level.V0_10_2:
            self._become(DEAD)
            actions.append(RemoveGroup())
        else:
            self.generation += 1
            self.protocol = None
            self._become(EMPTY)
            actions.append(StoreGroup(self._record({}), {}))

    def _begin_generation(self, now_ms: float, actions: Actions) -> None:
        self.generation += 1
        self.protocol = self._votes.choose(map(PROTOCOLS, self.members.values()))
        self._become(AWAITING_SYNC)
        for member in self.members.values():
            assert member.parked_join is not None, f"{self}: {member.member_id} has not joined"
            actions.append(RespondToJoin(member.parked_join, self._join_result(member)))
            member.parked_join = None
            self._renew_session(member, now_ms, actions)
        self._parked_joins = 0

    def _join_result(self, member: Member) -> JoinResult:
        """A member's view of the current generation."""
        protocol = self.protocol
        assert protocol is not None, f"{self} has no protocol"
        assert self.leader_id is not None, f"{self} has no leader"
        members: tuple[tuple[str, bytes], ...] = ()
        # In STABLE a leader's join starts a rebalance, and never gets here.
        if member.member_id == self.leader_id:
            members = tuple([(m.member_id, m.metadata(protocol)) for m in self.members.values()])
        return JoinResult(member.member_id, self.generation, protocol, self.leader_id, members)

    def _respond_to_syncs(self, error_code: int, now_ms: float) -> Actions:
        """Respond to parked syncs with the assignments, or with the error and none."""
        actions: Actions = []
        for member in self.members.values():
            if error_code:
                member.assignment = NO_ASSIGNMENT
            if member.parked_sync is not None:
                actions.append(RespondToSync(member.parked_sync, member.assignment, error_code))
                member.parked_sync = None
                self._renew_session(member, now_ms, actions)
        return actions

    def _renew_session(self, member: Member, now_ms: float, actions: Actions) -> None:
        """Renew the session, and start a timer if none runs."""
        member.expires_ms = now_ms + member.session_timeout_ms
        if not member.has_timer:
            member.has_timer = True
            actions.append(StartSession(member.member_id, member.session_timeout_ms))

    def _record(self, assignments: Mapping[str, bytes]) -> StoredGroup:
        protocol = self.protocol
        members = [
            StoredMember(
                member.member_id,
                member.client_id,
                member.client_host,
                member.rebalance_timeout_ms,
                member.session_timeout_ms,
                member.metadata(protocol),
                assignments[member.member_id],
            )
            for member in self.members.values()
            if protocol is not None
        ]
        leader = self.leader_id
        return StoredGroup(self.protocol_type, self.generation, protocol, leader, members)
