"""Plans: what a seed draws."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from kafka08.profile import SAFE
from kafka08.simulation.plan import (
    ADDED,
    Fault,
    draw_plan,
    with_added,
    with_faults,
    with_topics,
)


def test_faults_of_chosen_kinds_alone() -> None:
    """A run with chosen kinds of faults has faults of each of them and of no other; the rest of its
    plan is the same."""
    plan = draw_plan(1, SAFE)
    kinds = {Fault.KILL, Fault.CUT}
    chosen = with_faults(plan, 1, kinds)
    assert kinds == {fault.kind for fault in chosen.faults}
    assert chosen == with_faults(plan, 1, kinds)
    assert () == with_faults(plan, 1, []).faults
    assert plan == replace(chosen, faults=plan.faults)


def test_added_faults_leave_the_others() -> None:
    """Faults of whole clusters are added to a plan in the order of their times; the plan's own
    faults stay as they are. Some plans get none, and each kind is in some."""
    own = with_faults(draw_plan(1, SAFE), 1, [Fault.KILL]).faults
    counts = dict.fromkeys(ADDED, 0)
    for seed in range(40):
        faults = with_added(own, Random(seed), 10.0)
        assert own == tuple(fault for fault in faults if fault.kind not in ADDED)
        assert sorted(fault.at for fault in faults) == [fault.at for fault in faults]
        assert len({fault.number for fault in faults}) == len(faults)
        for kind in {fault.kind for fault in faults} & {*ADDED}:
            counts[kind] += 1
    assert all(0 < count < 20 for count in counts.values()), counts


def test_changes_of_topics_leave_the_other_faults() -> None:
    """Some plans have changes of topics among their faults, which stay as they are."""
    own = draw_plan(1, SAFE).faults
    own = tuple(fault for fault in own if fault.kind is not Fault.TOPIC)
    counts = []
    for seed in range(40):
        faults = with_topics(own, Random(seed), 10.0)
        assert own == tuple(fault for fault in faults if fault.kind is not Fault.TOPIC)
        assert sorted(fault.at for fault in faults) == [fault.at for fault in faults]
        assert len({fault.number for fault in faults}) == len(faults)
        counts.append(len(faults) - len(own))
    assert {0, 4, 10} == {*counts}
