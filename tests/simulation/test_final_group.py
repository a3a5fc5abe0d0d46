"""What must become true of the group at the end of a run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafka08.consumer.zookeeper.member_storage import MemberStorage
from kafka08.profile import SAFE
from kafka08.simulation.plan import Fault, PlannedFault, draw_plan, with_faults
from kafka08.simulation.run import simulate
from tests.simulation.planted.defect import PLAIN

SEED = 1


def test_3_members_confirm_the_order_of_a_migration(monkeypatch: pytest.MonkeyPatch) -> None:
    """The order that the last step has left is confirmed, unless the members forget to do it."""
    monkeypatch.setattr("kafka08.simulation.tools.MIGRATIONS", [("start",)])
    settings = {**PLAIN, "members": 1, "away": "", "late": False, "faults_seconds": 5.0}
    plan = with_faults(replace(draw_plan(SEED, SAFE), **settings), SEED, [])
    plan = replace(plan, faults=(PlannedFault(0, Fault.MIGRATE, 2.0, 0.0),))
    assert simulate(SEED, plan=plan).verdict is None
    monkeypatch.setattr(MemberStorage, "_confirm", lambda *_: None)
    verdict = simulate(SEED, plan=plan).verdict
    assert verdict is not None
    assert "in vain for members to confirm the order of the migration: g_member-0" in verdict
