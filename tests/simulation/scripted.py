"""Runs with a script instead of faults: their plan, and the wait for a step of the script."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from kafka08.profile import SAFE
from kafka08.simulation.network import NetworkSettings
from kafka08.simulation.plan import Plan, draw_plan
from kafka08.simulation.run import Run


def quiet_plan(level: str, properties: dict[str, str], **others: Any) -> Plan:
    """A plan without faults, disorder or members: three brokers of `level` with these properties,
    one partition with three replicas, one KafkaProducer. `others`: fields with other values."""
    drawn = draw_plan(1, SAFE)
    own = {"api.level": level, "zookeeper.session.timeout.ms": "6000", **properties}
    plan = replace(
        drawn,
        brokers=3,
        partitions=1,
        replication_factor=3,
        new_producers=1,
        old_producers=0,
        async_producers=0,
        disorder=0.0,
        native_seconds=0.001,
        network=NetworkSettings(),
        level=level,
        broker_properties={**drawn.broker_properties, **own},
        faults=(),
        members=0,
        away="",
    )
    return replace(plan, **others)


def wait_until(run: Run, happens: Callable[[], bool], seconds: float) -> None:
    """Let the run go on until `happens()`. AssertionError after so many simulated seconds."""
    latest = run.scheduler.now + seconds
    while not happens():
        assert run.scheduler.now < latest, "a step of the script does not happen"
        run.director.sleep(0.1)
