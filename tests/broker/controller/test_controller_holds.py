"""A controller does not hold the event loop while it brings thousands of partitions from one state
to another: it yields between them, and where it waits for ZooKeeper.

Measured is its CPU time between two such switches.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection

import pytest

from kafka08.broker.controller.context import ControllerContext
from kafka08.structs import TopicPartition
from kafka08.zk import nodes, paths
from tests.broker.controller.conftest import Cluster
from tests.broker.controller.holds import Holds
from tests.cpu_speed import slowdown
from tests.waiting import until

PARTITIONS = 3000
HOLD_S = 0.05


def test_thousands_of_partitions(
    cluster: Cluster, holds: Holds, caplog: pytest.LogCaptureFixture
) -> None:
    """They are created, moved, lose their leader, get a new controller, and are deleted."""
    one, _ = cluster.broker(1), cluster.broker(2)
    caplog.set_level(logging.INFO)  # a line for each election takes longest
    steps: dict[str, float] = {}
    keys = {"delete_topic_enable": True, "auto_leader_rebalance_enable": False}
    controller = cluster.active_controller(1, runtime=holds, **keys)

    def measured(step: str, done: Callable[[], bool]) -> None:
        before = slowdown()
        until(done, step)
        steps[step], holds.longest = holds.longest / max(before, slowdown()), 0.0

    def led_by(leader: int) -> bool:
        context = controller.context
        states = dict(context.leadership) if context is not None else {}
        return len(states) == PARTITIONS and all(
            state.leader == leader for state in states.values()
        )

    cluster.create_topic("wide", dict.fromkeys(range(PARTITIONS), (1, 2)))
    measured("created", lambda: led_by(1))
    moves = {TopicPartition("wide", number): (2, 1) for number in range(PARTITIONS)}
    cluster.zk.create(paths.REASSIGN_PARTITIONS, nodes.encode_reassignment(moves))
    measured("moved", lambda: not cluster.zk.exists(paths.REASSIGN_PARTITIONS))
    one.leave()
    measured("elected", lambda: led_by(2))
    cluster.stop(controller)
    controller = cluster.controller(2, runtime=holds, **keys)
    measured("taken over", lambda: controller.epoch is not None)
    one.register()
    cluster.zk.create(paths.delete_topic("wide"), "")
    measured("deleted", lambda: controller.context is not None and not controller.context.topics)
    assert max(steps.values()) < HOLD_S, steps


def test_deletion_is_linear(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker's response does not look at all replicas of the topic."""
    cluster.broker(1)
    controller = cluster.active_controller(1, delete_topic_enable=True)
    cluster.create_topic("t", dict.fromkeys(range(100), (1,)))
    until(lambda: (context := controller.context) is not None and len(context.leadership) == 100)
    looks = 0
    partitions_of = ControllerContext.partitions_of

    def counted(context: ControllerContext, topics: Collection[str]) -> list[TopicPartition]:
        nonlocal looks
        looks += 1
        return partitions_of(context, topics)

    monkeypatch.setattr(ControllerContext, "partitions_of", counted)
    cluster.zk.create(paths.delete_topic("t"), "")
    until(lambda: (context := controller.context) is not None and not context.topics)
    assert looks < 20
