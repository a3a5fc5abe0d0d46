"""The state machine of a static member, and of one that keeps its partitions."""

from __future__ import annotations

from math import inf

import pytest

from kafka08.consumer.group.membership import (
    NO_GENERATION,
    Beat,
    Join,
    Membership,
    Phase,
    Sync,
    Timeouts,
    Wait,
)
from kafka08.errors import FencedInstanceId, PollIntervalExceeded, UnknownMemberId
from kafka08.protocol.heartbeat import HeartbeatResponse
from kafka08.protocol.join_group import JoinGroupResponse
from kafka08.protocol.sync_group import SyncGroupResponse

FENCED = FencedInstanceId.code


def stable(*, keeps: bool = False, instance_id: str | None = "one") -> Membership:
    member = Membership(
        "g",
        Timeouts(session=10.0, heartbeat=3.0, poll=300.0, backoff=0.1),
        instance_id=instance_id,
        keeps=keeps,
    )
    member.subscribe(0.0)
    member.give_up()
    member.joined(JoinGroupResponse(0, 1, "range", "other", "me", []), 1.0)
    member.synced(SyncGroupResponse(0, b"mine"), 1.0)
    return member


def test_its_requests_have_its_name() -> None:
    """In the versions that have a place for it."""
    member = stable()
    member.polling(1.0)
    beat = member.due(9.0)
    assert isinstance(beat, Beat)
    assert (beat.request.instance_id, beat.request.version) == ("one", 3)
    join = member.join_request([])
    assert (join.instance_id, join.version) == ("one", 5)
    assert member.generation.instance_id == "one"
    member.rejoin()
    member.give_up()
    member.joined(JoinGroupResponse(0, 2, "range", "other", "me", []), 9.0)
    sync = member.due(9.0)
    assert isinstance(sync, Sync)
    assert (sync.request.instance_id, sync.request.version) == ("one", 3)


def test_it_does_not_leave() -> None:
    """Neither when it is closed nor when its reader does not poll."""
    closed = stable()
    closed.unsubscribe()
    assert not closed.must_leave
    idle = stable()
    assert idle.due(301.0) == Wait(inf)
    assert isinstance(idle.fault, PollIntervalExceeded)
    assert idle.lost


@pytest.mark.parametrize("by", ["heartbeat", "commit", "join", "sync"])
def test_a_fenced_member_does_not_join_again(by: str) -> None:
    """Its fault stays; its partitions are lost. Only another subscription begins anew."""
    member = stable()
    if by == "heartbeat":
        member.heard(HeartbeatResponse(FENCED), 1, 2.0)
    elif by == "commit":
        member.refused_commit(FENCED, member.generation)
    else:
        member.rejoin()
        member.give_up()
        code = FENCED if by == "join" else 0
        member.joined(JoinGroupResponse(code, 2, "range", "other", "me", []), 2.0)
        if by == "sync":
            member.synced(SyncGroupResponse(FENCED, b""), 2.0)
    assert member.lost
    assert member.generation.id == NO_GENERATION
    for _ in range(2):
        assert isinstance(member.retry(), FencedInstanceId)
    member.give_up()
    assert member.due(9.0) == Wait(inf)
    member.unsubscribe()
    member.subscribe(9.0)
    member.give_up()
    assert member.due(9.0) == Join()


def test_a_member_that_keeps_its_partitions_can_lose_them_while_it_joins() -> None:
    """An eager member has none then."""
    for keeps in (True, False):
        member = stable(keeps=keeps, instance_id=None)
        member.rejoin()
        member.give_up()
        response = JoinGroupResponse(UnknownMemberId.code, -1, "", "", "", [])
        member.joined(response, 2.0)
        assert member.lost is keeps
        assert member.phase is (Phase.REVOKING if keeps else Phase.JOINING)
