"""A topic that the members of a group have subscribed to before it exists."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from kafka08.consumer.zookeeper.znode_cache import ZnodeCache
from kafka08.profile import SAFE
from kafka08.simulation.late_topic import drawn_subscription
from kafka08.simulation.plan import Plan, draw_plan, with_coordinator, with_faults
from kafka08.simulation.run import simulate
from tests.simulation.planted.defect import PLAIN

SEED = 3


def calm_plan(*, coordinated: bool) -> Plan:
    """A run without faults whose two members subscribe to the topic."""
    settings = {**PLAIN, "members": 2, "away": "", "late": True, "faults_seconds": 2.0}
    plan = with_faults(replace(draw_plan(SEED, SAFE), **settings), SEED, [])
    return with_coordinator(plan, "0.10.2") if coordinated else plan


@pytest.mark.parametrize("coordinated", [False, True])
def test_its_messages_are_processed(*, coordinated: bool) -> None:
    """Groups of both kinds read it once it exists, though nothing else happens."""
    lines: list[str] = []
    plan = calm_plan(coordinated=coordinated)
    assert simulate(SEED, plan=plan, on_line=lines.append).verdict is None
    assert any("the late topic is made" in line for line in lines)


def test_a_group_that_does_not_hear_of_it_breaks_the_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    """The verdict says which messages wait."""
    refresh = ZnodeCache.refresh
    monkeypatch.setattr(
        ZnodeCache, "refresh", lambda self, paths, **_absent_too: refresh(self, paths)
    )
    verdict = simulate(SEED, plan=calm_plan(coordinated=False)).verdict
    assert verdict is not None
    assert "a topic made late: [late,0] offset 0 and 4 more" in verdict


def test_members_subscribe_in_several_ways() -> None:
    """At once by names or by a pattern, or to both topics only later."""
    drawn = {drawn_subscription(Random(seed)) for seed in range(20)}
    assert len(drawn) == 3
    assert {one.first == one.later for one in drawn} == {True, False}
