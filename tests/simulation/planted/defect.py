"""A planted defect, and the runs that can show it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import pytest

from kafka08.profile import SAFE
from kafka08.simulation.network import NetworkSettings
from kafka08.simulation.plan import (
    Fault,
    Plan,
    draw_plan,
    with_coordinator,
    with_faults,
    with_record_batches,
)
from kafka08.simulation.run import simulate

Patch = Callable[[pytest.MonkeyPatch], object]
Needs = Callable[[Plan], bool]
LEVEL: Final = "0.10.2"
"""Of the brokers of a group of KafkaConsumers."""
SHORT_S: Final = 20.0
"""The longest phase with faults of a short run."""
SHORT_PAUSE_S: Final = 0.1
"""The shortest mean pause between a producer's messages in a short run."""


@dataclass(frozen=True)
class Planted:
    """name      the defect in a few words
    origin    the issue or component that it comes from
    verdict   a part of the verdict of a run that finds it
    kinds     the faults without which a run cannot show it, or hardly
    seed      one whose short run finds it: see `short_plan`
    needs     whether a run with these settings can show it
    settings  of the short runs, instead of those that the seed draws
    coordinated   whether the members of its groups are KafkaConsumers
    has_records   whether its brokers are of level 0.11.0
    """

    name: str
    origin: str
    verdict: str
    kinds: tuple[Fault, ...]
    seed: int
    plant: Patch
    profile: str
    needs: Needs
    settings: Mapping[str, Any]
    coordinated: bool
    has_records: bool = False

    def drawn_plan(self, seed: int) -> Plan | None:
        """The plan of the seed; None if its run cannot show the defect."""
        plan = self._draw(seed)
        kinds = {fault.kind for fault in plan.faults}
        return plan if self.needs(plan) and kinds.issuperset(self.kinds) else None

    def short_plan(self, seed: int) -> Plan | None:
        """The plan of the seed with faults of `kinds` alone, for a shorter time and with less
        traffic. A run of it takes little time, and often finds the defect."""
        plan = self._draw(seed)
        plan = replace(
            plan,
            faults_seconds=min(plan.faults_seconds, SHORT_S),
            pause_seconds=max(plan.pause_seconds, SHORT_PAUSE_S),
        )
        plan = replace(plan, **self.settings)
        if not self.needs(plan):
            return None
        return with_faults(plan, seed, self.kinds)

    def _draw(self, seed: int) -> Plan:
        plan = draw_plan(seed, self.profile)
        if self.has_records:
            return with_record_batches(plan)
        return with_coordinator(plan, LEVEL) if self.coordinated else plan

    def found_by(self, seed: int, plan: Plan) -> str | None:
        """The verdict of a run with the defect; None if it does not find it."""
        with pytest.MonkeyPatch.context() as patch:
            self.plant(patch)
            verdict = simulate(seed, plan=plan).verdict
        return verdict if verdict is not None and self.verdict in verdict else None


PLAIN: Final[Mapping[str, Any]] = {
    "brokers": 3,
    "new_producers": 1,
    "old_producers": 0,
    "async_producers": 0,
    "members": 0,
    "disorder": 0.1,
    "network": NetworkSettings(),
    "native_seconds": 0.001,
    "pause_seconds": 0.2,
    "faults_seconds": SHORT_S,
}
"""Settings of runs in which only brokers matter."""
LONG: Final[Mapping[str, Any]] = {**PLAIN, "faults_seconds": 60.0}
"""The same for defects that need several faults, or long ones."""
LONG_WITH_GROUP: Final[Mapping[str, Any]] = {**LONG, "members": 2}
MOVES: Final[Mapping[str, Any]] = {**PLAIN, "replication_factor": 2, "partitions": 4}
"""Settings of runs whose partitions move often."""
PLANTED: Final[list[Planted]] = []


def any_plan(_: Plan) -> bool:
    return True


def planted(
    name: str,
    origin: str,
    verdict: str,
    kinds: tuple[Fault, ...],
    *,
    seed: int,
    profile: str = SAFE,
    needs: Needs = any_plan,
    settings: Mapping[str, Any] | None = None,
    coordinated: bool = False,
    has_records: bool = False,
) -> Callable[[Patch], Patch]:
    """Add the patch to the list."""

    def add(plant: Patch) -> Patch:
        PLANTED.append(
            Planted(
                name,
                origin,
                verdict,
                kinds,
                seed,
                plant,
                profile,
                needs,
                settings or {},
                coordinated,
                has_records,
            )
        )
        return plant

    return add


def replicated(plan: Plan) -> bool:
    return plan.replication_factor > 1


def movable(plan: Plan) -> bool:
    """Whether partitions have a broker to move to."""
    return plan.replication_factor < plan.brokers


def group_in_zookeeper(plan: Plan) -> bool:
    return plan.members > 0 and plan.offsets_storage == "zookeeper"


def group_in_kafka(plan: Plan) -> bool:
    return plan.members > 0 and plan.offsets_storage == "kafka"


def loses_power(plan: Plan) -> bool:
    """Whether brokers that lose power lose what they have not synced."""
    return plan.loses_writes and plan.silent_share > 0
