"""Plans: what a seed draws."""

from __future__ import annotations

from dataclasses import replace

from kafka08.profile import SAFE
from kafka08.simulation.plan import Fault, draw_plan, with_faults


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
