"""Leader balance: finds brokers that lead too few of the partitions that prefer them. Pure.

The preferred replica of a partition is the first of its assignment. Source:
checkAndTriggerPartitionRebalance of kafka.controller.KafkaController 0.8.2.2.
"""

from __future__ import annotations

from kafka08.broker.controller.context import ControllerContext
from kafka08.structs import TopicPartition


def imbalanced(context: ControllerContext, percentage: int) -> list[TopicPartition]:
    """The partitions for a preferred election, sorted: for each live broker that is the preferred
    replica of some, if others lead more than `percentage` percent of these."""
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
