"""ControllerContext: the gauges of the controller's view of the cluster, and its first states."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from kafka08.broker.controller.context import ControllerContext
from kafka08.structs import NO_LEADER, Broker, LeaderAndIsr, TopicPartition

EPOCH = 1


def state(leader: int) -> LeaderAndIsr:
    return LeaderAndIsr(leader, 0, (1, 2), 0, EPOCH)


def test_offline_and_imbalanced_partitions_are_counted() -> None:
    """A partition is offline if it has no leader, a dead one, or no state yet; imbalanced if its
    first replica does not lead it. Topics that are being deleted count as neither."""
    leaders = {"preferred": 1, "other": 2, "dead": 3, "none": NO_LEADER, "deleted": NO_LEADER}
    context = ControllerContext(
        epoch=EPOCH,
        brokers={1: Broker(1, "a", 9092), 2: Broker(2, "b", 9092)},
        assignments={TopicPartition(name, 0): (1, 2, 3) for name in [*leaders, "new"]},
        leadership={TopicPartition(name, 0): state(leader) for name, leader in leaders.items()},
        topics_to_delete={"deleted"},
    )
    offline, imbalanced = {"dead", "none", "new"}, {"other", "dead", "none", "new"}
    assert (len(offline), len(imbalanced)) == context.offline_and_imbalanced()


def test_a_partition_without_replicas_is_offline() -> None:
    """It prefers no leader, so it is not imbalanced. 0.10.2.2 creates such a topic by request."""
    context = ControllerContext(assignments={TopicPartition("empty", 0): ()})
    assert (1, 0) == context.offline_and_imbalanced()


def test_the_first_states_are_set_in_turns() -> None:
    """A new controller of ten thousand partitions lets others run between them."""
    context = ControllerContext()
    context.assignments.update({TopicPartition("t", number): (1, 2) for number in range(3)})
    seen: list[tuple[TopicPartition, int]] = []

    def in_turns(items: Iterable[Any]) -> Iterator[Any]:
        for item in items:
            yield item
            seen.append((item[0], len(context.replica_states)))

    context.initialize_states(in_turns)
    assert [(TopicPartition("t", number), 2 * number + 2) for number in range(3)] == seen
    assert 3 == len(context.partition_states)
