"""Reads what a migration needs to know about a group from ZooKeeper and the brokers."""

from __future__ import annotations

from collections.abc import Iterable

from kafka08.client import ClusterClient
from kafka08.client.log_offsets import log_ends, log_starts
from kafka08.consumer.offset_store import KafkaOffsetStore
from kafka08.errors import KafkaError
from kafka08.migration.plan import GroupFacts, Offset, PartitionFacts
from kafka08.structs import NO_OFFSET, TopicPartition
from kafka08.zk.store import ClusterStore


def read_facts(
    group: str, store: ClusterStore, kafka: KafkaOffsetStore, cluster: ClusterClient
) -> GroupFacts:
    """Everything about `group` now. Partitions are those with an offset in either store.

    Kafka is asked for every partition of the cluster, since it cannot list what a group committed.
    A coordinator that does not answer is noted, not raised. Raises ZooKeeperError, and ApiError or
    ClientError when a log's range cannot be read.
    """
    assignments = store.assignments()
    existing = {TopicPartition(topic, p) for topic, found in assignments.items() for p in found}
    in_zookeeper = store.offsets(group, store.offset_partitions(group))
    asked = sorted(existing.union(in_zookeeper))
    in_kafka, unavailable = _kafka_offsets(kafka, asked)
    concerned = sorted(in_zookeeper.keys() | in_kafka.keys())
    readable = [tp for tp in concerned if tp in existing]
    starts, ends = log_starts(cluster, readable), log_ends(cluster, readable)
    owners = _owners(store, group, {tp.topic for tp in concerned})
    return GroupFacts(
        group,
        tuple(store.consumers(group)),
        tuple(
            PartitionFacts(
                tp,
                in_zookeeper.get(tp),
                in_kafka.get(tp),
                starts.get(tp),
                ends.get(tp),
                owners.get(tp),
            )
            for tp in concerned
        ),
        unavailable,
    )


def _kafka_offsets(
    kafka: KafkaOffsetStore, partitions: list[TopicPartition]
) -> tuple[dict[TopicPartition, Offset], str | None]:
    """Offsets where there are some, and why there was no answer."""
    try:
        offsets = kafka.fetch(partitions)
    except KafkaError as error:
        return {}, str(error)
    return {tp: offset for tp, offset in offsets.items() if offset != NO_OFFSET}, None


def _owners(store: ClusterStore, group: str, topics: Iterable[str]) -> dict[TopicPartition, str]:
    return {
        TopicPartition(topic, number): owner
        for topic in sorted(topics)
        for number, owner in store.owners(group, topic).items()
    }
