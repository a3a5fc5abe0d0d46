"""Waits until the replicas of a topic on an embedded cluster have caught up."""

from __future__ import annotations

from kafka08.admin import AdminClient
from kafka08.embedded import EmbeddedCluster
from tests.waiting import until


def await_full_isr(cluster: EmbeddedCluster, topic: str, replicas: int = 3) -> None:
    """Wait until every partition of the topic has so many replicas in sync."""

    def is_full() -> bool:
        [described] = admin.describe_topics([topic])
        return all(len(partition.isr) == replicas for partition in described.partitions)

    with AdminClient(cluster.zookeeper.connect_string) as admin:
        until(is_full, f"all replicas of {topic} to be in sync")
