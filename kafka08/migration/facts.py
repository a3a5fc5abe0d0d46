"""The state of a group that a migration decides on: members, and the offsets in both stores.

An offset is the next one to read; None where a store has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from kafka08.admin.group_facts import GroupFacts, OfBoth
from kafka08.observe.group import PartitionFacts
from kafka08.structs import NO_OFFSET, TopicPartition

RETENTION_MS: Final = 24 * 60 * 60 * 1000
"""offsets.retention.minutes of a broker that does not say."""


def with_faults(facts: GroupFacts, faults: Iterable[str]) -> GroupFacts:
    """`facts` with these faults added, each once."""
    return replace(facts, faults=tuple(dict.fromkeys([*facts.faults, *faults])))


def seen_again(
    facts: GroupFacts,
    in_zookeeper: Mapping[TopicPartition, int],
    in_kafka: Mapping[TopicPartition, int],
) -> GroupFacts:
    """`facts` after a second look: which of the `unowned` move in ZooKeeper, and which of the
    `doubtful` are `fresh` or `advancing`.

    in_zookeeper   offsets of both kinds in ZooKeeper, where it has one
    in_kafka       offsets of the doubtful ones in Kafka
    """

    def moves(p: PartitionFacts) -> bool:
        return in_zookeeper.get(p.topic_partition, p.zookeeper) != p.zookeeper

    def is_fresh(p: PartitionFacts) -> bool:
        """Kafka's offset advanced, or ZooKeeper's caught up with it. A smaller one that reaches
        ZooKeeper's was copied by a mirror."""
        assert p.zookeeper is not None, "a doubtful partition has both offsets"
        assert p.kafka is not None, "a doubtful partition has both offsets"
        reached = in_zookeeper.get(p.topic_partition, NO_OFFSET)
        now = in_kafka.get(p.topic_partition, NO_OFFSET)
        if p.is_behind_in_kafka:
            return p.kafka < now < p.zookeeper
        return reached >= p.kafka or now > p.kafka

    def advances(p: PartitionFacts) -> bool:
        return moves(p) and not is_fresh(p)

    return replace(
        facts,
        moving=tuple(p.topic_partition for p in facts.unowned if moves(p)),
        fresh=tuple(p.topic_partition for p in facts.doubtful if is_fresh(p)),
        advancing=tuple(p.topic_partition for p in facts.doubtful if advances(p)),
    )


Snapshot = Mapping[TopicPartition, OfBoth]
"""partition → (ZooKeeper's offset, Kafka's) before the migration; without the partitions that had
an offset in neither."""


def snapshot_of(facts: Iterable[PartitionFacts]) -> dict[TopicPartition, OfBoth]:
    return {p.topic_partition: (p.zookeeper, p.kafka) for p in facts if p.newest is not None}
