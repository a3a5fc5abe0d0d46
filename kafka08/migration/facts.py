"""The state of a group that a migration decides on: members, and the offsets in both stores.

An offset is the next one to read; None where a store has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from kafka08.observe.coordinated import CoordinatedGroup
from kafka08.observe.group import PartitionFacts
from kafka08.observe.members import Member
from kafka08.structs import NO_OFFSET, OFFSETS_TOPIC, TopicPartition

Offset = int | None
OfBoth = tuple[Offset, Offset]
"""(ZooKeeper's offset, Kafka's)."""

RETENTION_MS: Final = 24 * 60 * 60 * 1000
"""offsets.retention.minutes of a broker that does not say."""
NO_OFFSETS: Final = "no store has an offset of it; is that the group's name?"
"""Of a group without an offset and without a member, which is probably misspelt."""


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """The present facts of a group.

    members       registered now
    unavailable   why the coordinator did not respond
    moving        partitions without an owner whose offset in ZooKeeper still moves
    fresh         those of `doubtful` whose offset in Kafka proved to be current
    advancing     those of `doubtful` whose offset in ZooKeeper alone was seen to advance
    faults        unreadable znodes of the group: why, and what to do
    coordinated   the group as its coordinator knows it; None: not asked, or it knows none
    """

    group: str
    members: tuple[Member, ...]
    partitions: tuple[PartitionFacts, ...]
    unavailable: str | None = None
    moving: tuple[TopicPartition, ...] = ()
    fresh: tuple[TopicPartition, ...] = ()
    advancing: tuple[TopicPartition, ...] = ()
    faults: tuple[str, ...] = ()
    coordinated: CoordinatedGroup | None = None

    @property
    def unowned(self) -> tuple[PartitionFacts, ...]:
        """Existing partitions without an owner: their offsets in ZooKeeper should not move."""
        return tuple(p for p in self.partitions if p.owner is None and p.exists)

    @property
    def doubtful(self) -> tuple[PartitionFacts, ...]:
        """Partitions with different offsets in both stores whose owner, another client, may read
        either one."""
        return tuple(
            p
            for p in self.partitions
            if p.is_apart and (owner := self.owner(p)) is not None and not owner.is_ours
        )

    @property
    def behind_in_kafka(self) -> tuple[PartitionFacts, ...]:
        """Partitions that members reading only Kafka would repeat, or start from scratch."""
        return tuple(
            p
            for p in self.partitions
            if p.exists and p.is_behind_in_kafka and not self.is_abandoned(p)
        )

    @property
    def missing_in_kafka(self) -> tuple[PartitionFacts, ...]:
        """Partitions that members reading only Kafka would start from scratch."""
        return tuple(p for p in self.behind_in_kafka if p.kafka is None)

    @property
    def is_live(self) -> bool:
        return bool(self.members)

    def readers(self, partition: PartitionFacts) -> tuple[Member, ...]:
        """The live members that subscribe to its topic, or may: those whose registration cannot be
        understood."""
        topic = partition.topic_partition.topic
        return tuple(
            m for m in self.members if m.subscription is None or m.subscription.topics([topic])
        )

    def is_abandoned(self, partition: PartitionFacts) -> bool:
        """Whether it is of a topic that no member of a live group reads, with no offset in its log:
        there is nothing to continue from, and nobody who would."""
        return (
            self.is_live
            and partition.owner is None
            and partition.newest is not None
            and partition.newest_safe is None
            and partition.log_problem is None
            and not self.readers(partition)
        )

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to migrate: no offset in either store, and no member."""
        known = any(p.newest is not None for p in self.partitions)
        return not (known or self.members or self.unknown_offsets)

    @property
    def unknown(self) -> tuple[str, ...]:
        """The unknown facts, and why they are unknown."""
        logs = (p.log_problem for p in self.partitions if p.log_problem is not None)
        return (*self.unknown_offsets, *logs)

    @property
    def unknown_offsets(self) -> tuple[str, ...]:
        """The part of `unknown` that concerns offsets, not logs."""
        if self.unavailable is None:
            return self.faults
        advice = f"see kafka08 topic describe {OFFSETS_TOPIC}"
        return (*self.faults, f"offsets in Kafka: {self.unavailable}; {advice}")

    def owner(self, partition: PartitionFacts) -> Member | None:
        """The live member that owns a partition."""
        return next((m for m in self.members if m.owns(partition.thread_id)), None)


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
