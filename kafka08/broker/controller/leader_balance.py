"""Leader balance: whether brokers lead what they are meant to. Pure.

A broker is meant to lead the partitions whose assignment it heads. Source:
checkAndTriggerPartitionRebalance of kafka.controller.KafkaController 0.8.2.2.
"""

from __future__ import annotations

from kafka08.broker.controller.context import ControllerContext
from kafka08.structs import TopicPartition


def imbalanced(context: ControllerContext, percentage: int) -> list[TopicPartition]:
    """The partitions to give back to their preferred replicas, sorted: those of each live broker of
    which more than `percentage` percent are led by another."""
    preferred: dict[int, list[TopicPartition]] = {}
    for tp, replicas in sorted(context.assignments.items()):
        if replicas and not context.is_queued_for_deletion(tp.topic):
            preferred.setdefault(replicas[0], []).append(tp)
    found: list[TopicPartition] = []
    for broker_id, partitions in preferred.items():
        elsewhere = [
            tp
            for tp in partitions
            if tp in context.leadership and context.leadership[tp].leader != broker_id
        ]
        if broker_id in context.live and len(elsewhere) * 100 > percentage * len(partitions):
            found += elsewhere
    return sorted(found)
