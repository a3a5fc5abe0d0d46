"""The state machine of a member: every event in every phase that matters, on a paper clock."""

from __future__ import annotations

from math import inf

import pytest

from kafka08.consumer.group.membership import (
    NO_GENERATION,
    Assign,
    Beat,
    Generation,
    Join,
    Leave,
    Membership,
    Phase,
    Sync,
    Timeouts,
    Wait,
)
from kafka08.errors import (
    ConnectionFailed,
    ConsumerCoordinatorNotAvailable,
    IllegalGeneration,
    InconsistentGroupProtocol,
    InvalidSessionTimeout,
    KafkaError,
    MemberIdRequired,
    OffsetsLoadInProgress,
    PollIntervalExceeded,
    RebalanceInProgress,
    UnknownError,
    UnknownMemberId,
)
from kafka08.protocol.heartbeat import HeartbeatResponse
from kafka08.protocol.join_group import JoinGroupMember, JoinGroupProtocol, JoinGroupResponse
from kafka08.protocol.leave_group import LeaveGroupRequest
from kafka08.protocol.sync_group import SyncGroupResponse

TIMEOUTS = Timeouts(session=10.0, heartbeat=3.0, poll=300.0, backoff=0.1)
PROTOCOLS = [JoinGroupProtocol("range", b"what I want")]


def new() -> Membership:
    return Membership("g", TIMEOUTS)


def join_response(
    *, code: int = 0, generation: int = 1, leader: str = "other", members: int = 0
) -> JoinGroupResponse:
    listed = [JoinGroupMember(f"m{n}", b"") for n in range(members)]
    return JoinGroupResponse(code, generation, "range", leader, "me", listed)


def joining() -> Membership:
    member = new()
    member.subscribe(0.0)
    member.give_up()
    return member


def syncing() -> Membership:
    member = joining()
    member.join_request(PROTOCOLS)
    member.joined(join_response(), 1.0)
    return member


def stable(now: float = 2.0) -> Membership:
    member = syncing()
    member.synced(SyncGroupResponse(0, b"mine"), now)
    member.take_assignment()
    member.polled(now)
    return member


def test_a_new_member_joins_again_with_the_id_that_it_gets() -> None:
    """Brokers from 2.2 on refuse the first JoinGroup with an id, which is no failure. So a member
    that leaves during its first rebalance can say who it is."""
    member = joining()
    assert member.join_request(PROTOCOLS).member_id == ""
    member.joined(join_response(code=MemberIdRequired.code, generation=-1), 1.0)
    assert isinstance(member.due(1.0), Join)
    assert member.fault is None
    assert member.join_request(PROTOCOLS).member_id == "me"
    member.unsubscribe()
    leaving = member.due(1.0)
    assert isinstance(leaving, Leave)
    assert leaving.request == LeaveGroupRequest("g", "me")


def test_a_member_waits_for_its_reader_then_joins_syncs_and_beats() -> None:
    """The whole way of a follower, with what is due on it."""
    member = new()
    assert member.due(0.0) == Wait(inf)
    member.subscribe(0.0)
    assert member.must_give_up
    assert member.due(0.0) == Wait(inf)
    member.give_up()
    assert member.due(0.0) == Join()
    request = member.join_request(PROTOCOLS)
    assert (request.member_id, request.session_timeout_ms) == ("", 10_000)
    assert (request.rebalance_timeout_ms, request.protocols) == (300_000, PROTOCOLS)
    member.joined(join_response(), 1.0)
    sync = member.due(1.0)
    assert isinstance(sync, Sync)
    assert (sync.request.generation, sync.request.member_id) == (1, "me")
    assert sync.request.assignments == []
    member.synced(SyncGroupResponse(0, b"mine"), 2.0)
    assigned = member.take_assignment()
    assert assigned is not None
    assert (assigned.generation, assigned.protocol, assigned.data) == (1, "range", b"mine")
    assert member.take_assignment() is None
    assert member.due(2.0) == Wait(5.0)
    beat = member.due(5.0)
    assert isinstance(beat, Beat)
    assert (beat.request.generation, beat.request.member_id) == (1, "me")


def test_a_leader_assigns_before_it_syncs() -> None:
    """The members of the response are given out, and their shares are sent."""
    member = joining()
    member.joined(join_response(leader="me", members=2), 1.0)
    action = member.due(1.0)
    assert isinstance(action, Assign)
    assert [one.member_id for one in action.members] == ["m0", "m1"]
    member.assigned({"m0": b"a", "m1": b"b"})
    sync = member.due(1.0)
    assert isinstance(sync, Sync)
    shares = {one.member_id: one.assignment for one in sync.request.assignments}
    assert shares == {"m0": b"a", "m1": b"b"}


def test_a_rebalance_leaves_the_reader_its_time() -> None:
    """After error 27 heartbeats continue until the reader gives its partitions up; then the member
    joins with its old id."""
    member = stable()
    member.heard(HeartbeatResponse(RebalanceInProgress.code), 1, 5.0)
    assert member.must_give_up
    assert not member.lost
    assert member.generation == Generation(1, "me")
    assert isinstance(member.due(8.0), Beat)
    member.heard(HeartbeatResponse(RebalanceInProgress.code), 1, 8.0)
    member.give_up()
    assert member.due(8.0) == Join()
    assert member.join_request(PROTOCOLS).member_id == "me"


def test_lost_partitions_stay_lost_until_the_reader_gave_them_up() -> None:
    """Partitions of the next generation may be committed when they are given up in turn."""
    member = stable()
    member.heard(HeartbeatResponse(UnknownMemberId.code), 1, 5.0)
    assert member.lost
    member.give_up()
    assert not member.lost


@pytest.mark.parametrize("error", [IllegalGeneration, UnknownMemberId])
def test_a_fenced_member_lost_its_partitions(
    error: type[IllegalGeneration] | type[UnknownMemberId],
) -> None:
    """After 22 or 25 to a heartbeat or a commit it has no generation to commit in, and a new id."""
    for told_by_commit in (False, True):
        member = stable()
        if told_by_commit:
            member.refused_commit(error.code, Generation(1, "me"))
        else:
            member.heard(HeartbeatResponse(error.code), 1, 5.0)
        assert member.must_give_up
        assert member.lost
        assert member.generation.id == NO_GENERATION
        assert member.due(9.0) == Wait(inf)
        member.give_up()
        assert member.join_request(PROTOCOLS).member_id == ""


def test_an_old_response_does_not_throw_it_out() -> None:
    """A commit or heartbeat of the last generation is refused after the next one began."""
    member = stable()
    member.refused_commit(UnknownMemberId.code, Generation(0, "me"))
    member.heard(HeartbeatResponse(UnknownMemberId.code), 0, 5.0)
    assert member.phase is Phase.STABLE


@pytest.mark.parametrize(
    "error", [OffsetsLoadInProgress, ConsumerCoordinatorNotAvailable], ids=lambda e: e.__name__
)
def test_a_passing_refusal_is_tried_again_after_the_backoff(error: type[KafkaError]) -> None:
    """To Join, Sync and Heartbeat; the trouble is over with the first response."""
    code = error.code  # type: ignore[attr-defined]
    member = joining()
    member.joined(join_response(code=code), 1.0)
    assert member.due(1.0) == Wait(1.1)
    assert (type(member.outage.error), member.outage.since) == (error, 1.0)
    assert member.due(1.2) == Join()
    member.joined(join_response(code=code), 1.2)
    assert member.outage.since == 1.0
    member.joined(join_response(), 1.4)
    assert member.outage.error is None
    member.synced(SyncGroupResponse(code, b""), 2.0)
    assert member.due(2.1) == Join()
    beating = stable()
    beating.heard(HeartbeatResponse(code), 1, 5.0)
    assert beating.due(5.05) == Wait(5.1)
    assert isinstance(beating.due(5.1), Beat)


def test_a_join_during_a_rebalance_is_tried_again_after_the_backoff() -> None:
    """Error 27, as later brokers may send it, does not reach the user; the member keeps its id."""
    member = syncing()
    member.synced(SyncGroupResponse(RebalanceInProgress.code, b""), 2.0)
    member.joined(join_response(code=RebalanceInProgress.code), 2.0)
    assert member.due(2.0) == Wait(2.1)
    assert member.due(2.1) == Join()
    assert member.retry() is None
    assert member.join_request(PROTOCOLS).member_id == "me"


def test_a_lost_connection_is_tried_again_after_the_backoff() -> None:
    """This holds in each phase, and a stable member stays stable."""
    member = stable()
    member.failed(ConnectionFailed("gone"), 6.0)
    assert member.phase is Phase.STABLE
    assert member.due(6.0) == Wait(6.1)
    assert isinstance(member.due(6.1), Beat)


def test_a_sync_that_meets_a_new_rebalance_joins_again() -> None:
    """27 keeps the id, 22 and 25 forget it; the reader has nothing to give up."""
    for code, member_id in (
        (RebalanceInProgress.code, "me"),
        (IllegalGeneration.code, ""),
        (UnknownMemberId.code, ""),
    ):
        member = syncing()
        member.synced(SyncGroupResponse(code, b""), 2.0)
        assert member.due(2.0) == Join()
        assert member.join_request(PROTOCOLS).member_id == member_id


def test_a_join_with_an_id_that_is_forgotten_goes_on_without_one() -> None:
    """25 to a Join: at once, as a new member."""
    member = stable()
    member.heard(HeartbeatResponse(RebalanceInProgress.code), 1, 5.0)
    member.give_up()
    member.joined(join_response(code=UnknownMemberId.code), 5.0)
    assert member.due(5.0) == Join()
    assert member.join_request(PROTOCOLS).member_id == ""


@pytest.mark.parametrize("error", [InconsistentGroupProtocol, InvalidSessionTimeout, UnknownError])
def test_each_refused_attempt_is_reported_once(error: type[KafkaError]) -> None:
    """The member sends no request before the reader has taken the error."""
    member = joining()
    for _ in range(2):
        assert member.due(1.0) == Join()
        member.joined(join_response(code=error.code), 1.0)  # type: ignore[attr-defined]
        assert member.due(1.0) == Wait(inf)
        assert isinstance(member.retry(), error)
        assert member.retry() is None


@pytest.mark.parametrize(
    ("error", "key"),
    [
        (InconsistentGroupProtocol, "partition.assignment.strategy"),
        (InvalidSessionTimeout, "session.timeout.ms"),
    ],
)
def test_a_refusal_names_the_key(error: type[KafkaError], key: str) -> None:
    """The error has the configuration key."""
    member = joining()
    member.joined(join_response(code=error.code), 1.0)  # type: ignore[attr-defined]
    assert key in str(member.retry())


def test_a_reader_that_does_not_poll_leaves_the_group() -> None:
    """At max.poll.interval.ms after its last poll, and says so; not before, and not in a poll."""
    member = stable(now=2.0)
    member._beat_at = inf
    assert member.due(301.9) == Wait(302.0)
    leaving = member.due(302.0)
    assert isinstance(leaving, Leave)
    assert leaving.request.member_id == "me"
    assert member.lost
    assert member.generation.id == NO_GENERATION
    assert member.last_generation == Generation(1, "me"), "others must not take it for none"
    assert isinstance(member.fault, PollIntervalExceeded)


def test_a_reader_in_a_poll_or_an_iteration_stays_in_the_group() -> None:
    """It stays however long that takes."""
    member = stable(now=2.0)
    member.polling(3.0)
    assert isinstance(member.due(1000.0), Beat)
    member.polled(1000.0)
    member.progressed(1200.0)
    assert isinstance(member.due(1400.0), Beat)


def test_another_subscription_during_a_join_is_joined_with_afterwards() -> None:
    """The response to the join under way is for the old one."""
    member = joining()
    member.join_request(PROTOCOLS)
    member.subscribe(1.0)
    member.joined(join_response(), 1.0)
    member.synced(SyncGroupResponse(0, b""), 1.0)
    assert member.must_give_up
    assert member.take_assignment() is None


def test_an_assignor_that_fails_is_tried_in_another_generation() -> None:
    """The member joins again only after the reader has taken the error."""
    member = joining()
    member.joined(join_response(leader="me", members=2), 1.0)
    assert isinstance(member.due(1.0), Assign)
    member.refused(KafkaError("assign failed"))
    assert member.due(1.0) == Wait(inf)
    assert member.retry() is not None
    assert member.due(1.0) == Join()


def test_a_member_that_unsubscribes_leaves() -> None:
    """It leaves in every phase, and responses in flight change nothing."""
    for member in (joining(), syncing(), stable()):
        in_group = member.generation.id != NO_GENERATION
        member.unsubscribe()
        assert isinstance(member.due(5.0), Leave) == in_group
        assert member.generation == member.last_generation == Generation()
        member.joined(join_response(), 5.0)
        member.synced(SyncGroupResponse(0, b""), 5.0)
        member.heard(HeartbeatResponse(UnknownMemberId.code), 1, 5.0)
        assert member.phase is Phase.OUTSIDE
        assert member.due(5.0) == Wait(inf)


def test_a_commit_in_a_rebalance_reports_it() -> None:
    """Error 27 has the effect that it has for a heartbeat."""
    member = stable()
    member.refused_commit(RebalanceInProgress.code, Generation(1, "me"))
    assert member.must_give_up
    assert not member.lost
    assert member.generation == Generation(1, "me")


def test_a_response_ends_a_trouble() -> None:
    """To a Sync and to a heartbeat, which is the last one for its interval."""
    member = syncing()
    member.failed(ConnectionFailed("gone"), 1.0)
    member.synced(SyncGroupResponse(0, b"mine"), 2.0)
    assert member.outage.error is None
    member.failed(ConnectionFailed("gone"), 5.0)
    member.heard(HeartbeatResponse(0), 1, 6.0)
    assert member.outage.error is None
    member.polled(6.0)
    assert member.due(6.0) == Wait(9.0)


def test_a_member_that_subscribes_again_begins_afresh() -> None:
    """Neither its lost partitions nor an earlier error counts: it joins at once."""
    member = stable()
    member.heard(HeartbeatResponse(UnknownMemberId.code), 1, 5.0)
    member.failed(ConnectionFailed("gone"), 5.0)
    member.unsubscribe()
    assert (member.lost, member.outage.error, member.outage.since) == (False, None, inf)
    member.subscribe(5.0)
    member.give_up()
    assert member.due(5.0) == Join()


def test_a_member_whose_reader_has_never_polled_leaves_the_group() -> None:
    """The poll interval begins with the subscription, and the member has no partition to lose."""
    assert not new().lost
    member = syncing()
    member.synced(SyncGroupResponse(0, b"mine"), 2.0)
    assert isinstance(member.due(299.0), Beat)
    assert isinstance(member.due(300.0), Leave)


def test_a_leader_that_knows_of_new_partitions_rebalances() -> None:
    """It joins again once it is stable; before that its assignment will have them."""
    member = stable()
    member.rejoin()
    assert member.must_give_up
    early = syncing()
    early.rejoin()
    assert early.phase is Phase.SYNCING
