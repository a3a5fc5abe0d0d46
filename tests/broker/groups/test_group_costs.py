"""The cost of groups in function calls, not in time, so that load on the machine does not
matter."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from kafka08.protocol.heartbeat import HeartbeatRequest
from tests.broker.groups.group_harness import GroupHarness
from tests.broker.groups.test_group_coordinator import Broker

SESSION_MS = 30_000


def calls(run: Callable[[], object]) -> int:
    """The number of functions that `run` enters, generators included."""
    count = 0

    def note(frame: FrameType, event: str, arg: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return count


def test_a_rebalance_costs_as_much_as_it_has_members() -> None:
    """Four times the members cost about four times the calls: no step compares each member with
    each other."""

    def rebalance(members: int) -> int:
        harness = GroupHarness()
        ids = harness.settle(members)

        def run() -> None:
            for member_id in ids:
                harness.join(member_id)
            for member_id in reversed(ids):
                harness.sync(member_id)

        return calls(run)

    assert rebalance(400) < 5 * rebalance(100)


def test_a_growing_group_costs_as_much_as_its_joins() -> None:
    """Five hundred members join one by one while one member is missing."""

    def grow(members: int) -> int:
        harness = GroupHarness()
        harness.settle(1)
        return calls(lambda: [harness.join() for _ in range(members)])

    assert grow(400) < 5 * grow(100)


def test_idle_groups_cost_their_heartbeats_and_a_timer_each_session(tmp_path: Path) -> None:
    """A heartbeat sets no timer. It moves a deadline, which the running timer reads when it
    ends."""
    broker = Broker(tmp_path)
    members = {
        name: broker.join(group=name, session_ms=SESSION_MS)
        for name in (f"group-{number}" for number in range(50))
    }
    for name, joined in members.items():
        broker.sync(joined, name)
    heap = broker.world.timer._heap
    slots = len(heap)
    for name, joined in members.items():
        # A rebalance without anybody to wait for has no timer either.
        broker.sync(broker.join(joined.member_id, name, SESSION_MS), name)
        members[name].generation += 1
    assert slots == len(heap)
    for name, joined in members.items():
        request = HeartbeatRequest(name, joined.generation, joined.member_id)
        assert 0 == broker.call(request).error_code
    assert slots == len(heap)
