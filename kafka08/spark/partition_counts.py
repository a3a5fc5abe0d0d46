"""How many partitions the topics of a write have: the driver looks it up when the write is planned,
and all tasks use that. With a look-up of its own in each task, rows with one key would go to two
partitions if partitions were added meanwhile.

Spark plans each batch of a stream anew, so a stream learns of new partitions.
"""

from __future__ import annotations

from typing import Final

from kafka08.arrow.connections import refreshed
from kafka08.client.cluster import ClusterClient
from kafka08.client.retry import RetryPolicy, may_be_stored_later, retry
from kafka08.clock import Clock
from kafka08.errors import KafkaError, UnknownTopicOrPartition

UNKNOWN_TOPIC_S: Final = 3
"""A topic that was created a moment ago is unknown to a broker until the controller tells it. Where
brokers create topics themselves, a new one has no leader at first, which is another error."""


def planned_counts(
    cluster: ClusterClient, topic: str | None, policy: RetryPolicy
) -> dict[str, int]:
    """Topic → number of partitions, of `topic`; None: of each that exists, since a column has the
    topics. Raises as `partition_count`."""
    if topic is not None:
        return {topic: partition_count(cluster, topic, policy, cluster.clock)}
    metadata = refreshed(cluster, policy, what="listing the topics")
    return {name: len(info.partitions) for name, info in metadata.topics.items() if not info.error}


def partition_count(cluster: ClusterClient, topic: str, policy: RetryPolicy, clock: Clock) -> int:
    """Number of partitions of `topic` now; creates it where brokers do so. Waits for a topic that
    is being created, but not as long as `policy` says for one that no broker knows:
    UnknownTopicOrPartition."""
    deadline = clock.monotonic() + UNKNOWN_TOPIC_S

    def passes(error: KafkaError) -> bool:
        is_late = clock.monotonic() >= deadline
        return may_be_stored_later(error) and not (
            is_late and isinstance(error, UnknownTopicOrPartition)
        )

    return len(
        retry(
            lambda: cluster.refresh([topic]).partitions(topic),
            policy,
            clock,
            what=f"looking up the partitions of {topic}",
            passes=passes,
        )
    )
