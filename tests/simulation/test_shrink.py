"""Failing runs are made smaller, tried on runs that need no simulation."""

from __future__ import annotations

from dataclasses import replace

from kafka08.profile import SAFE
from kafka08.simulation.plan import Fault, Plan, PlannedFault, draw_plan
from kafka08.simulation.run import Outcome
from kafka08.simulation.shrink import Shrinker, kind_of

FAULTS = tuple(PlannedFault(number, Fault.KILL, float(number), 1.0) for number in range(20))
PLAN = replace(
    draw_plan(1, SAFE), faults=FAULTS, brokers=3, members=2, disorder=0.5, faults_seconds=60.0
)


def outcome(verdict: str | None) -> Outcome:
    return Outcome(1, verdict, "", 30.0, 0.1, 100, 20, 0, 0, True, [])


def shrunk(plan: Plan, needs: set[int], runs_max: int = 10_000) -> tuple[Plan, int]:
    """The rest of a plan that fails if it has these faults and a group, and how many runs it
    took."""
    runs: list[Plan] = []

    def run(smaller: Plan, _until: float | None) -> Outcome:
        runs.append(smaller)
        numbers = {fault.number for fault in smaller.faults}
        fails = needs <= numbers and smaller.members > 0
        return outcome(f"lost: {len(runs)}" if fails else None)

    found = Shrinker(plan, outcome("lost: 0"), run, lambda: len(runs) < runs_max).shrink()
    assert len(runs) == found.runs
    return found.plan, found.runs


def test_unneeded_parts_are_removed() -> None:
    """A failure that needs two distant faults and the group shrinks to these with one member, plain
    order and two brokers."""
    small, _ = shrunk(PLAN, {3, 16})
    assert {3, 16} == {fault.number for fault in small.faults}
    assert (1, 2, 0.0, 1) == (small.members, small.brokers, small.disorder, small.partitions)
    assert small.faults_seconds < PLAN.faults_seconds


def test_a_run_that_needs_no_fault_keeps_none() -> None:
    """A failure that needs no fault shrinks to a plan without faults."""
    small, _ = shrunk(PLAN, set())
    assert () == small.faults


def test_it_ends_in_time_with_its_best_plan() -> None:
    """The search ends in time and keeps the smallest plan so far, however large that is."""
    small, runs = shrunk(PLAN, {3, 16}, runs_max=5)
    assert 5 == runs
    assert {3, 16} <= {fault.number for fault in small.faults}


def test_order_is_needed_in_some_windows_alone() -> None:
    """Disorder is kept in the windows where the run fails only with it."""

    def run(plan: Plan, _until: float | None) -> Outcome:
        within = plan.windows is None or any(start <= 12.0 < end for start, end in plan.windows)
        return outcome("waited" if plan.disorder and within else None)

    found = Shrinker(PLAN, outcome("waited"), run, lambda: True).shrink()
    assert found.plan.windows is not None
    [(start, end)] = found.plan.windows
    assert start <= 12.0 < end


def test_another_failure_is_no_smaller_one() -> None:
    """Verdicts are of one kind if they differ only in names, numbers and messages."""
    assert kind_of("lost: [t,3] offset 23 b'p/46'") == kind_of("lost: [t,0] offset 1 b'x'")
    assert kind_of("lost: [t,3] offset 23") != kind_of("vanished: [t,3] offset 23")


def test_a_plan_comes_back_from_its_file() -> None:
    """The file has every field of the plan."""
    plan = replace(PLAN, windows=((0.0, 1.5), (3.0, float("inf"))), salt=3)
    assert (1, plan) == Plan.from_json(plan.to_json(1))
