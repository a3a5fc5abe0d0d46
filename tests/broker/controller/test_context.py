"""The controller's own gauges, from its view of the cluster."""

from __future__ import annotations

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
