"""The first rebalance of a group waits for more members, as from 0.11 on."""

from __future__ import annotations

import pytest

from kafka08.broker.groups.group_state import GroupState
from kafka08.levels import Level
from tests.broker.groups.group_harness import GroupHarness

DELAY_MS = 3000


def group(delay_ms: float = DELAY_MS) -> GroupHarness:
    return GroupHarness(Level.V0_11_0, initial_delay_ms=delay_ms)


def test_the_first_member_waits() -> None:
    """group.initial.rebalance.delay.ms, not longer."""
    harness = group()
    join = harness.join()
    harness.advance(DELAY_MS - 1)
    assert join.parked
    harness.advance(1)
    assert 0 == join.response.error_code


def test_members_that_come_meanwhile_are_in_the_first_generation() -> None:
    """Each of them extends the wait by the same time."""
    harness = group()
    joins = [harness.join()]
    for _ in range(3):
        harness.advance(DELAY_MS - 1)
        joins.append(harness.join())
        harness.advance(1)
        assert all(join.parked for join in joins)
    harness.advance(DELAY_MS)
    assert [1] * 4 == [join.response.generation for join in joins]
    assert 4 == len(joins[0].response.members)


def test_the_wait_ends_at_the_rebalance_timeout() -> None:
    """Members that come for ever do not delay a group for ever. (The original counts each wait when
    the next one begins, so that the last one is extra.)"""
    harness = group()
    first = harness.join(rebalance_ms=10_000)
    while first.parked:
        harness.advance(1000)
        if first.parked:
            harness.join(rebalance_ms=10_000)
    assert 10_000 <= harness.now <= 10_000 + DELAY_MS


def test_later_rebalances_do_not_wait() -> None:
    """A group with members gets a new one at once."""
    harness = group()
    harness.join()
    harness.advance(DELAY_MS)
    harness.sync("m1")
    second = harness.join()
    again = harness.join("m1")
    assert [2, 2] == [join.response.generation for join in (again, second)]


def test_a_group_that_is_empty_again_waits_again() -> None:
    """But then a member does not extend it: the original extends only the wait of a group without a
    generation."""
    harness = group()
    harness.join()
    harness.advance(DELAY_MS)
    harness.leave("m1")
    assert GroupState.EMPTY is harness.group.state
    second = harness.join()
    harness.advance(DELAY_MS - 1)
    third = harness.join()
    assert second.parked
    harness.advance(1)
    assert second.response.generation == third.response.generation


def test_a_member_that_leaves_during_the_wait_leaves_no_group() -> None:
    """The group is empty when the wait is over, and the next member begins it anew."""
    harness = group()
    harness.join()
    harness.leave("m1")
    harness.advance(DELAY_MS)
    assert GroupState.EMPTY is harness.group.state
    join = harness.join()
    harness.advance(DELAY_MS)
    assert 0 == join.response.error_code


def test_a_coordinator_that_changes_answers_those_who_wait() -> None:
    """16, and the timer does nothing."""
    harness = group()
    join = harness.join()
    harness.unload()
    assert 16 == join.response.error_code
    harness.advance(DELAY_MS)


@pytest.mark.parametrize("level", [Level.V0_9_0, Level.V0_10_2, Level.V0_11_0])
def test_without_a_delay_the_first_generation_begins_at_once(level: Level) -> None:
    """As in older releases, which have no such key."""
    harness = GroupHarness(level)
    assert 1 == harness.join().response.generation
