"""Plans: what a seed draws."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from kafka08.profile import SAFE
from kafka08.simulation.plan import (
    ADDED,
    ADDED_COUNTS,
    FURTHER,
    FURTHER_COUNTS,
    SUNDRY,
    SUNDRY_COUNTS,
    TOPIC_COUNTS,
    Fault,
    draw_plan,
    with_added,
    with_faults,
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
    """Faults of whole clusters, limits, strangers and others, and changes of topics are added to a
    plan in the order of their times; its own faults stay as they are. Some plans get none of a
    kind, and each kind is in some."""
    own = with_faults(draw_plan(1, SAFE), 1, [Fault.KILL]).faults
    counts: dict[Fault, Counter[int]] = {}
    for seed in range(40):
        faults = with_added(own, seed, 10.0)
        assert own == tuple(fault for fault in faults if fault.kind is Fault.KILL)
        assert sorted(fault.at for fault in faults) == [fault.at for fault in faults]
        assert len({fault.number for fault in faults}) == len(faults)
        drawn = Counter(fault.kind for fault in faults)
        for kind in (*ADDED, *SUNDRY, *FURTHER, Fault.TOPIC):
            counts.setdefault(kind, Counter())[drawn[kind]] += 1
    for kind, drawn_counts in (
        *((kind, ADDED_COUNTS) for kind in ADDED),
        *((kind, SUNDRY_COUNTS) for kind in SUNDRY),
        *((kind, FURTHER_COUNTS) for kind in FURTHER),
        (Fault.TOPIC, TOPIC_COUNTS),
    ):
        assert counts[kind].keys() == {*drawn_counts}
