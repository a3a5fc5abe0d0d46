"""Group: the response to each request in each state, the transitions, and their times."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kafka08.broker.groups.group import Group
from kafka08.broker.groups.group_state import VALID_PREVIOUS, GroupState
from kafka08.levels import Level
from kafka08.protocol.group_records import StoredGroup, StoredMember
from tests.broker.groups.group_harness import (
    RANGE,
    REBALANCE_MS,
    SESSION_MS,
    GroupHarness,
)

LEVELS = (Level.V0_9_0, Level.V0_10_2)
EMPTY, PREPARING, AWAITING, STABLE, DEAD = GroupState
OTHER = (("roundrobin", b"m"),)


def empty(level: Level) -> GroupHarness:
    harness = GroupHarness(level)
    harness.settle(1)
    harness.leave("m1")
    return harness


def preparing(level: Level) -> GroupHarness:
    """Members m1 (leader) and m2 of generation 2; a third member has joined."""
    harness = stable(level)
    harness.join()
    return harness


def awaiting(level: Level) -> GroupHarness:
    """Members m1 (leader) and m2 of generation 2."""
    harness = GroupHarness(level)
    harness.join()
    harness.join()
    harness.join("m1")
    return harness


def stable(level: Level) -> GroupHarness:
    """Members m1 (leader) and m2 of generation 2."""
    harness = GroupHarness(level)
    harness.settle(2)
    return harness


def dead(level: Level) -> GroupHarness:
    harness = stable(level)
    harness.unload()
    return harness


MAKE: dict[GroupState, Callable[[Level], GroupHarness]] = {
    EMPTY: empty,
    PREPARING: preparing,
    AWAITING: awaiting,
    STABLE: stable,
    DEAD: dead,
}
STATES_OF_0_9 = (PREPARING, AWAITING, STABLE, DEAD)
EACH = [
    (level, state)
    for level in LEVELS
    for state in (GroupState if level is Level.V0_10_2 else STATES_OF_0_9)
]


@pytest.mark.parametrize(("level", "state"), EACH)
def test_the_states_are_made(level: Level, state: GroupState) -> None:
    """The states from which the tests below begin."""
    harness = MAKE[state](level)
    assert state is harness.group.state


@pytest.mark.parametrize("target", GroupState)
@pytest.mark.parametrize("source", GroupState)
def test_a_state_follows_its_valid_previous_ones_alone(
    source: GroupState, target: GroupState
) -> None:
    """A transition to a state that does not allow it is an error with the group's name, and changes
    nothing."""
    group = Group("g", Level.V0_10_2)
    group.state = source
    if source in VALID_PREVIOUS[target]:
        group._become(target)
        assert target is group.state
    else:
        with pytest.raises(AssertionError, match=f"group g .* cannot become {target.value}"):
            group._become(target)
        assert source is group.state


# What each request gets: state → error code

MEMBER, STRANGER, NOBODY = "m1", "stranger", ""


@pytest.mark.parametrize(
    ("level", "member", "generation", "codes"),
    [
        (Level.V0_10_2, MEMBER, 0, {EMPTY: 25, PREPARING: 27, AWAITING: 27, STABLE: 0, DEAD: 25}),
        (Level.V0_10_2, MEMBER, 1, {EMPTY: 25, PREPARING: 22, AWAITING: 27, STABLE: 22, DEAD: 25}),
        (Level.V0_10_2, STRANGER, 0, {EMPTY: 25, PREPARING: 25, AWAITING: 25, STABLE: 25}),
        (Level.V0_9_0, MEMBER, 0, {PREPARING: 27, AWAITING: 27, STABLE: 0, DEAD: 25}),
        (Level.V0_9_0, MEMBER, 1, {PREPARING: 27, AWAITING: 27, STABLE: 22, DEAD: 25}),
        (Level.V0_9_0, STRANGER, 0, {PREPARING: 27, AWAITING: 27, STABLE: 25, DEAD: 25}),
    ],
)
def test_heartbeat(
    level: Level, member: str, generation: int, codes: dict[GroupState, int]
) -> None:
    """The member id is checked before the generation. 0.9 checks neither unless the group is
    STABLE."""
    for state, code in codes.items():
        harness = MAKE[state](level)
        asked = harness.group.generation + generation
        assert code == harness.heartbeat(member, asked), state


@pytest.mark.parametrize("level", LEVELS)
def test_sync(level: Level) -> None:
    """The code is 25 for an unknown member, 22 for another generation, 27 while members join. In
    STABLE the response has the assignment. A follower's request waits."""
    for state in (EMPTY, DEAD) if level is Level.V0_10_2 else (DEAD,):
        assert (b"", 25) == MAKE[state](level).sync(MEMBER).response
    for state in (PREPARING, AWAITING, STABLE):
        harness = MAKE[state](level)
        assert (b"", 25) == harness.sync(STRANGER, 99).response
        assert (b"", 22) == harness.sync(MEMBER, 99).response
    assert (b"", 27) == preparing(level).sync(MEMBER).response
    assert (b"m1", 0) == stable(level).sync(MEMBER).response
    assert awaiting(level).sync("m2").parked


@pytest.mark.parametrize("level", LEVELS)
def test_leave(level: Level) -> None:
    """The code is 0 for a member and 25 for others. The remaining members join again, or the group
    ends."""
    assert 25 == dead(level).leave(MEMBER)
    after = {PREPARING: PREPARING, AWAITING: PREPARING, STABLE: PREPARING}
    for state, then in after.items():
        harness = MAKE[state](level)
        assert 25 == harness.leave(STRANGER)
        assert state is harness.group.state
        assert 0 == harness.leave(MEMBER)
        assert then is harness.group.state
        assert 25 == harness.leave(MEMBER)


@pytest.mark.parametrize(
    ("level", "member", "generation", "codes"),
    [
        (Level.V0_10_2, MEMBER, 0, {EMPTY: 25, PREPARING: 0, AWAITING: 27, STABLE: 0, DEAD: 25}),
        (Level.V0_10_2, MEMBER, 1, {EMPTY: 25, PREPARING: 22, AWAITING: 27, STABLE: 22, DEAD: 25}),
        (Level.V0_10_2, STRANGER, 0, {EMPTY: 25, PREPARING: 25, AWAITING: 27, STABLE: 25}),
        (Level.V0_10_2, NOBODY, -99, {EMPTY: 0, PREPARING: 25, AWAITING: 27, STABLE: 25, DEAD: 25}),
        (Level.V0_10_2, MEMBER, -99, {EMPTY: 0, PREPARING: 22, AWAITING: 27, STABLE: 22, DEAD: 25}),
        (Level.V0_9_0, MEMBER, 0, {PREPARING: 0, AWAITING: 27, STABLE: 0, DEAD: 25}),
        (Level.V0_9_0, MEMBER, 1, {PREPARING: 22, AWAITING: 27, STABLE: 22, DEAD: 25}),
        (Level.V0_9_0, NOBODY, -99, {PREPARING: 25, AWAITING: 27, STABLE: 25, DEAD: 25}),
    ],
)
def test_commit(level: Level, member: str, generation: int, codes: dict[GroupState, int]) -> None:
    """While members join, a commit of the previous generation is allowed; while they wait for the
    leader it is not. A commit without generation is allowed in an empty group alone."""
    for state, code in codes.items():
        harness = MAKE[state](level)
        assert code == harness.commit(member, harness.group.generation + generation), state


@pytest.mark.parametrize(("level", "state"), EACH)
def test_join_with_an_unknown_member_id(level: Level, state: GroupState) -> None:
    """The code is 25 with the same id, and no member is added."""
    harness = MAKE[state](level)
    before = dict(harness.group.members)
    result = harness.join(STRANGER).response
    assert (25, STRANGER, 0, "", "", ()) == (
        result.error_code,
        result.member_id,
        result.generation,
        result.protocol,
        result.leader_id,
        result.members,
    )
    assert before == harness.group.members


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("state", [PREPARING, AWAITING, STABLE])
def test_join_without_a_common_protocol(level: Level, state: GroupState) -> None:
    """The code is 23 for another protocol type, no common protocol, or no protocol at all. It comes
    before 25."""
    for member in (NOBODY, MEMBER, STRANGER):
        assert 23 == MAKE[state](level).join(member, protocol_type="connect").response.error_code
        assert 23 == MAKE[state](level).join(member, OTHER).response.error_code
        assert 23 == MAKE[state](level).join(member, ()).response.error_code


def test_an_empty_group_takes_another_protocol_type() -> None:
    """An empty group accepts another protocol type, as captured (join-empty-other-type). A request
    without protocols is refused."""
    harness = empty(Level.V0_10_2)
    assert 23 == harness.join(protocols=()).response.error_code
    assert EMPTY is harness.group.state
    assert 0 == harness.join(protocols=OTHER, protocol_type="connect").response.error_code
    assert ("connect", "roundrobin") == (harness.group.protocol_type, harness.group.protocol)


@pytest.mark.parametrize("level", LEVELS)
def test_a_dead_group_accepts_no_member(level: Level) -> None:
    """A new member and an old one get 25."""
    assert 25 == dead(level).join().response.error_code
    assert 25 == dead(level).join(MEMBER).response.error_code


@pytest.mark.parametrize("level", LEVELS)
def test_an_unchanged_member_gets_the_current_generation(level: Level) -> None:
    """A member that joins again unchanged gets the current generation, since it may have missed the
    response. In AWAITING_SYNC the leader gets the members too; in STABLE its join begins a
    rebalance."""
    harness = awaiting(level)
    result = harness.join("m1").response
    assert (2, "m1", (("m1", b"m"), ("m2", b"m"))) == (
        result.generation,
        result.leader_id,
        result.members,
    )
    assert () == harness.join("m2").response.members
    harness = stable(level)
    assert (2, ()) == (harness.join("m2").response.generation, harness.join("m2").response.members)
    assert STABLE is harness.group.state
    assert harness.join("m1").parked
    assert PREPARING is harness.group.state


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("state", [AWAITING, STABLE])
def test_changed_metadata_begins_a_rebalance(level: Level, state: GroupState) -> None:
    """Changed metadata begins a rebalance, also in AWAITING_SYNC, where parked syncs get 27."""
    harness = MAKE[state](level)
    parked = harness.sync("m2") if state is AWAITING else None
    assert harness.join("m1", (("range", b"changed"),)).parked
    assert PREPARING is harness.group.state
    assert parked is None or parked.response == (b"", 27)


# The course of a rebalance


@pytest.mark.parametrize("level", LEVELS)
def test_the_first_member_leads_generation_1_at_once(level: Level) -> None:
    """There is no initial delay, which is of 0.11."""
    harness = GroupHarness(level)
    result = harness.join().response
    assert ("m1", 1, "range", "m1", (("m1", b"m"),)) == (
        result.member_id,
        result.generation,
        result.protocol,
        result.leader_id,
        result.members,
    )


@pytest.mark.parametrize("level", LEVELS)
def test_joins_wait_for_every_known_member(level: Level) -> None:
    """All joins get their responses together. Only the leader gets the members."""
    harness = stable(level)
    newcomer, follower = harness.join(), harness.join("m2")
    assert newcomer.parked
    assert follower.parked
    leader = harness.join("m1")
    assert {3} == {asked.response.generation for asked in (newcomer, follower, leader)}
    assert {"m1", "m2", "m3"} == {member for member, _ in leader.response.members}
    assert () == newcomer.response.members


@pytest.mark.parametrize("level", LEVELS)
def test_syncs_wait_for_the_append_of_the_record(level: Level) -> None:
    """STABLE and the responses follow the append. A member without assignment gets zero bytes; an
    assignment of an unknown member is dropped."""
    harness = awaiting(level)
    harness.appends_at_once = False
    follower = harness.sync("m2")
    leader = harness.sync("m1", plan={"m1": b"all", STRANGER: b"x"})
    assert (follower.parked, leader.parked) == (True, True)
    assert AWAITING is harness.group.state
    assert {"m1": b"all", "m2": b""} == harness.appends[0].assignments
    harness.finish_append()
    assert ((b"", 0), (b"all", 0)) == (follower.response, leader.response)
    assert STABLE is harness.group.state


@pytest.mark.parametrize("level", LEVELS)
def test_a_failed_append_begins_a_rebalance(level: Level) -> None:
    """The syncs get the code of the failed append, and a rebalance begins."""
    harness = awaiting(level)
    harness.appends_at_once = False
    leader = harness.sync("m1")
    harness.finish_append(15)
    assert (b"", 15) == leader.response
    assert PREPARING is harness.group.state


@pytest.mark.parametrize("level", LEVELS)
def test_a_rebalance_wins_over_an_append_under_way(level: Level) -> None:
    """After a rebalance has begun, the syncs have 27, and the end of the append changes nothing,
    also in the next AWAITING_SYNC."""
    harness = awaiting(level)
    harness.appends_at_once = False
    leader = harness.sync("m1", plan={"m1": b"old"})
    harness.join()
    assert (b"", 27) == leader.response
    harness.join("m2")
    harness.join("m1")
    assert AWAITING is harness.group.state
    harness.finish_append()
    assert AWAITING is harness.group.state
    harness.sync("m1", plan={"m1": b"new"})
    harness.finish_append()
    assert (b"new", 0) == harness.sync("m1").response


@pytest.mark.parametrize("level", LEVELS)
def test_the_leader_stays_until_it_is_removed(level: Level) -> None:
    """After the leader is removed, another member leads."""
    harness = stable(level)
    harness.join()
    harness.join("m1")
    assert "m1" == harness.join("m2").response.leader_id
    harness.leave("m1")
    harness.join("m3")
    assert "m2" == harness.join("m2").response.leader_id


def test_the_last_member_leaves_an_empty_generation_behind() -> None:
    """From 0.10.2 on an empty group is stored with its generation, and the next one follows it."""
    harness = empty(Level.V0_10_2)
    assert (EMPTY, 2, None, None) == (
        harness.group.state,
        harness.group.generation,
        harness.group.protocol,
        harness.group.leader_id,
    )
    assert StoredGroup("consumer", 2, None, None, []) == harness.records[-1].record
    assert 3 == harness.join().response.generation


def test_the_last_leave_of_0_9_ends_the_group() -> None:
    """In 0.9 the group becomes DEAD and is removed with a tombstone."""
    harness = empty(Level.V0_9_0)
    assert (DEAD, True) == (harness.group.state, harness.removed)
    assert 1 == len(harness.records)


@pytest.mark.parametrize("level", LEVELS)
def test_a_removed_member_hears_so(level: Level) -> None:
    """The parked join or sync of a removed member gets 25. The JVM broker sends no response."""
    harness = stable(level)
    join = harness.join()
    harness.leave("m3")
    assert 25 == join.response.error_code
    harness = awaiting(level)
    sync = harness.sync("m2")
    harness.leave("m2")
    assert (b"", 25) == sync.response


@pytest.mark.parametrize("level", LEVELS)
def test_the_older_of_two_clients_with_one_member_id_hears_so(level: Level) -> None:
    """A second join or sync of a member takes the place of the parked one, which gets 25: that
    client then joins as a new member. The JVM broker never responds to it."""
    harness = preparing(level)
    older = harness.join("m1")
    newer = harness.join("m1")
    assert 25 == older.response.error_code
    assert newer.parked
    harness.join("m2")
    assert 0 == newer.response.error_code

    harness = awaiting(level)
    first = harness.sync("m2")
    second = harness.sync("m2")
    assert (b"", 25) == first.response
    harness.sync("m1", plan={"m2": b"a"})
    assert (b"a", 0) == second.response


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("members", [[], ["m1", "m2"]])
def test_a_loaded_leader_is_a_member(level: Level, members: list[str]) -> None:
    """The record names a leader that is no member. Whoever joins would be told to wait for its
    assignment, so the first member leads."""
    stored = [StoredMember(m, "c", "/h", 1000, 1000, b"s", b"a") for m in members]
    record = StoredGroup("consumer", 3, "range", "gone", stored)
    group, _ = Group.loaded("g", level, record, 0.0)
    assert (members[0] if members else None) == group.leader_id


# Time


@pytest.mark.parametrize("level", LEVELS)
def test_a_member_that_does_not_join_in_time_is_removed(level: Level) -> None:
    """A member that does not join in time is removed. The timeout is the longest rebalance timeout
    of the members at the start of the rebalance."""
    harness = GroupHarness(level)
    harness.join(rebalance_ms=2000, session_ms=60_000)
    newcomer = harness.join(rebalance_ms=500, session_ms=60_000)
    harness.join(rebalance_ms=90_000, session_ms=60_000)
    harness.advance(1999)
    assert newcomer.parked
    harness.advance(1)
    result = newcomer.response
    assert (2, "m2", ["m2", "m3"]) == (
        result.generation,
        result.leader_id,
        [member for member, _ in result.members],
    )
    assert {"m2", "m3"} == harness.sessions.keys()


@pytest.mark.parametrize("level", LEVELS)
def test_a_silent_member_is_removed_after_its_session(level: Level) -> None:
    """A member is removed when its session timeout has passed since its last request, to the
    millisecond."""
    harness = stable(level)
    harness.advance(SESSION_MS - 1)
    assert 0 == harness.heartbeat("m1")
    harness.advance(1)
    assert ["m1"] == list(harness.group.members)
    assert PREPARING is harness.group.state
    harness.advance(SESSION_MS - 2)
    assert ["m1"] == list(harness.group.members)
    harness.advance(1)
    assert [] == list(harness.group.members)


@pytest.mark.parametrize(
    ("level", "renews"), [(Level.V0_9_0, False), (Level.V0_10_2, True)], ids=str
)
def test_requests_that_renew_a_session_differ(level: Level, renews: bool) -> None:
    """In 0.10.2 a commit and a heartbeat while members join renew the session; in 0.9 they do
    not."""
    for sign in (GroupHarness.heartbeat, GroupHarness.commit):
        harness = preparing(level)
        harness.group.members["m1"].rebalance_timeout_ms = 1_000_000
        harness.advance(SESSION_MS - 1)
        sign(harness, "m1")
        harness.advance(2)
        assert renews == ("m1" in harness.group.members)


@pytest.mark.parametrize("level", LEVELS)
def test_a_parked_request_keeps_its_member(level: Level) -> None:
    """A member with a parked request does not expire. Its session begins with the response."""
    harness = GroupHarness(level)
    harness.join(rebalance_ms=50_000, session_ms=49_000)
    newcomer = harness.join(session_ms=6000)
    harness.advance(48_999)
    assert newcomer.parked
    harness.advance(1)
    assert 0 == newcomer.response.error_code
    harness.advance(5999)
    assert ["m2"] == list(harness.group.members)
    harness.advance(1)
    assert [] == list(harness.group.members)


def test_a_member_that_joins_again_does_not_expire_while_it_waits() -> None:
    """The timer of an earlier session of a member that waits ends without effect."""
    harness = preparing(Level.V0_10_2)
    again = harness.join("m1")
    harness.advance(SESSION_MS - 1)
    harness.heartbeat("m2")
    harness.advance(2)
    assert again.parked
    assert "m1" in harness.group.members
    harness.join("m2")
    assert 3 == again.response.generation
    assert harness.sessions["m1"] == harness.now + SESSION_MS


@pytest.mark.parametrize("level", LEVELS)
def test_a_leader_that_never_syncs_is_removed(level: Level) -> None:
    """A leader that never syncs is removed after its session. The syncs of followers get 27."""
    harness = awaiting(level)
    follower = harness.sync("m2")
    harness.advance(SESSION_MS)
    assert (b"", 27) == follower.response
    assert ["m2"] == list(harness.group.members)


@pytest.mark.parametrize("level", LEVELS)
def test_all_members_missing_ends_the_group(level: Level) -> None:
    """If the rebalance times out without a parked member, the group ends."""
    harness = stable(level)
    harness.join()
    harness.leave("m3")
    for _ in range(4):
        harness.advance(REBALANCE_MS / 4)
        for member in list(harness.group.members):
            harness.heartbeat(member)
    assert (EMPTY if level is Level.V0_10_2 else DEAD) is harness.group.state
    assert {} == harness.sessions


# The log


@pytest.mark.parametrize("level", LEVELS)
def test_a_loaded_group_continues(level: Level) -> None:
    """A loaded group has generation, leader, members and assignments, and every session begins."""
    before = stable(level)
    harness = GroupHarness(level)
    harness.group, actions = Group.loaded("g", level, before.records[-1].record, harness.now)
    harness.run(actions)
    assert (STABLE, 2, "m1", "consumer", "range") == (
        harness.group.state,
        harness.group.generation,
        harness.group.leader_id,
        harness.group.protocol_type,
        harness.group.protocol,
    )
    assert 0 == harness.heartbeat("m2")
    assert (b"m2", 0) == harness.sync("m2").response
    assert {"m1": SESSION_MS, "m2": SESSION_MS} == harness.sessions
    assert () == harness.join("m2").response.members


def test_a_loaded_member_supports_the_protocol_of_the_record_alone() -> None:
    """A loaded member supports only the protocol in the record, as captured
    (mig-join-other-proto-after-load)."""
    member = StoredMember("m1", "c", "/h", 1, SESSION_MS, b"m", b"a")
    record = StoredGroup("consumer", 7, "range", "m1", [member])
    harness = GroupHarness()
    harness.group, actions = Group.loaded("g", Level.V0_10_2, record, 0.0)
    harness.run(actions)
    assert 23 == harness.join(protocols=OTHER).response.error_code
    assert 8 == harness.join("m1", (*RANGE, *OTHER)).response.generation
    assert harness.join(protocols=OTHER).parked


def test_a_loaded_group_without_members_is_empty() -> None:
    """An empty group loads without its protocol type, as captured (gv-before), and with its
    generation."""
    record = StoredGroup("consumer", 7, None, None, [])
    group, actions = Group.loaded("g", Level.V0_10_2, record, 0.0)
    assert (EMPTY, "", 7, []) == (group.state, group.protocol_type, group.generation, actions)


@pytest.mark.parametrize("level", LEVELS)
def test_unloading_completes_parked_requests(level: Level) -> None:
    """When a group is unloaded, parked joins and syncs get 16, and no timer remains."""
    harness = preparing(level)
    join = harness.join("m2")
    harness.unload()
    assert 16 == join.response.error_code
    assert ({}, None) == (harness.sessions, harness.rebalance_due)
    harness = awaiting(level)
    sync = harness.sync("m2")
    harness.unload()
    assert (b"", 16) == sync.response
    assert {} == harness.sessions


def test_only_an_empty_group_without_offsets_expires() -> None:
    """A group becomes DEAD when it is empty and has no offsets."""
    assert not stable(Level.V0_10_2).group.expire(has_offsets=False)
    harness = empty(Level.V0_10_2)
    assert not harness.group.expire(has_offsets=True)
    assert EMPTY is harness.group.state
    assert harness.group.expire(has_offsets=False)
    assert DEAD is harness.group.state
