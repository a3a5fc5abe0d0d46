"""A planted defect, and the conditions under which a run can show it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import pytest

from kafka08.profile import SAFE
from kafka08.simulation.plan import Fault, Plan, draw_plan
from kafka08.simulation.run import simulate

Patch = Callable[[pytest.MonkeyPatch], object]
Needs = Callable[[Plan], bool]


@dataclass(frozen=True)
class Planted:
    """name      the defect in a few words
    origin    the issue or component that it comes from
    verdict   a part of the verdict of a run that finds it
    seed      the first seed that finds it; None if none of those tried does
    needs     whether a run of this plan can show it
    """

    name: str
    origin: str
    verdict: str
    seed: int | None
    plant: Patch
    profile: str
    needs: Needs


PLANTED: Final[list[Planted]] = []


def any_plan(_: Plan) -> bool:
    return True


def planted(
    name: str,
    origin: str,
    verdict: str,
    seed: int | None,
    profile: str = SAFE,
    needs: Needs = any_plan,
) -> Callable[[Patch], Patch]:
    """Add the patch to the list."""

    def add(plant: Patch) -> Patch:
        PLANTED.append(Planted(name, origin, verdict, seed, plant, profile, needs))
        return plant

    return add


def has(plan: Plan, *kinds: Fault) -> bool:
    """Whether the plan has faults of each of these kinds."""
    return set(kinds) <= {fault.kind for fault in plan.faults}


def replicated(plan: Plan) -> bool:
    return plan.replication_factor > 1


def group_in_zookeeper(plan: Plan) -> bool:
    return plan.members > 0 and plan.offsets_storage == "zookeeper"


def group_in_kafka(plan: Plan) -> bool:
    return plan.members > 0 and plan.offsets_storage == "kafka"


def loses_power(plan: Plan) -> bool:
    """Whether brokers lose power, and with it what they have not synced."""
    return plan.loses_writes and plan.silent_share > 0 and has(plan, Fault.KILL)


def found_by(one: Planted, seed: int) -> str | None:
    """The verdict of a run with the defect; None if it finds nothing, or cannot."""
    if not one.needs(draw_plan(seed, one.profile)):
        return None
    with pytest.MonkeyPatch.context() as patch:
        one.plant(patch)
        return simulate(seed, profile=one.profile).verdict
