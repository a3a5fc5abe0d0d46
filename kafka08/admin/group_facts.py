"""A group as those see it who change its offsets: members of both kinds, and the offsets in both
stores. What is read, and what forbids a change.

Reads are made for many groups at once. An offset is the next one to read; None where a store has
none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from kafka08.admin.connections import Connections
from kafka08.errors import KafkaError
from kafka08.observe.coordinated import CoordinatedGroup
from kafka08.observe.group import PartitionFacts, partition_facts
from kafka08.observe.members import Member
from kafka08.observe.snapshot import GroupState
from kafka08.structs import OFFSETS_TOPIC, TopicPartition

Offset = int | None
OfBoth = tuple[Offset, Offset]
"""(ZooKeeper's offset, Kafka's)."""

AT_ONCE: Final = 200
"""Groups of which one snapshot is in memory."""
NO_OFFSETS: Final = "no store has an offset of it; kafka08 group list shows the names of all groups"
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


def overwrite(group: str, tp: TopicPartition) -> str:
    """The advice for an offset in ZooKeeper that cannot be read."""
    topic, partition = tp
    return f"overwrite it: kafka08 offsets set {group} {topic}:{partition}=OFFSET"


def read_facts(
    group: str,
    connections: Connections,
    also: Collection[TopicPartition] = (),
) -> GroupFacts:
    """Read the present facts of `group`, with its members of both kinds. Partitions are those with
    an offset in either store, those of `also`, and all others of the topics of these and of those
    that members read or owned.

    Every partition of the cluster is requested from Kafka, since it cannot list a group's commits.
    Unreadable offsets are noted, not raised. Raises ZooKeeperError if ZooKeeper does not respond.
    """
    [facts] = read_many([group], connections, {group: also})
    return facts


def read_many(
    groups: Sequence[str],
    connections: Connections,
    also: Mapping[str, Collection[TopicPartition]] = {},
) -> list[GroupFacts]:
    """The same for many groups, in their order."""
    snapshot = connections.read_groups(groups, also)
    found = []
    for name in groups:
        group = snapshot.groups[name]
        # Whether one with an unreadable znode was committed is not known; `faults` names it.
        hidden = group.unreadable.keys() - group.kafka.keys() - set(also.get(name, ()))
        partitions = partition_facts(snapshot, group, also.get(name, ()))
        found.append(
            _facts(name, group, tuple(p for p in partitions if p.topic_partition not in hidden))
        )
    return found


def read_committed(
    groups: Sequence[str], connections: Connections
) -> Iterator[tuple[GroupFacts, list[TopicPartition]]]:
    """The facts of many groups, in their order, each with its committed partitions alone, and which
    others concern it: a thousand groups of a thousand partitions are a million facts."""
    for first in range(0, len(groups), AT_ONCE):
        some = groups[first : first + AT_ONCE]
        snapshot = connections.read_groups(some)
        for name in some:
            group = snapshot.groups[name]
            committed = group.zookeeper.keys() | group.kafka.keys()
            others = group.concerned(snapshot.topics) - committed - group.unreadable.keys()
            if group.unknown_offsets is not None:
                others = set()  # it may have committed them
            existing = sorted(others & snapshot.partitions.keys())
            yield _facts(name, group, partition_facts(snapshot, group, of=committed)), existing


def _facts(name: str, group: GroupState, partitions: tuple[PartitionFacts, ...]) -> GroupFacts:
    unknown = group.unknown_offsets or group.unknown_group
    return GroupFacts(
        name,
        group.registered,
        partitions,
        None if unknown is None else str(unknown),
        faults=tuple(_faults(name, group)),
        coordinated=group.coordinated,
    )


def with_coordinated(facts: GroupFacts, connections: Connections) -> GroupFacts:
    """The same, with the group as its coordinator knows it, if that responds."""
    if facts.unavailable is not None:
        return facts
    try:
        return replace(facts, coordinated=connections.coordinated(facts.group))
    except KafkaError as error:
        return replace(facts, unavailable=str(error))


def _faults(group: str, state: GroupState) -> Iterator[str]:
    """Sentences about unreadable znodes: the fault, and what to do."""
    for path in state.strays:
        yield f"{path} is not named after a partition; delete this znode"
    for tp, fault in state.unreadable.items():
        yield f"{fault}; {overwrite(group, tp)}"


def no_coordinator(cause: object) -> str:
    """The refusal without the offsets in Kafka, and what shows the reason."""
    return (
        f"the group's coordinator is not available: {cause}; kafka08 topic describe "
        f"{OFFSETS_TOPIC} shows which partition of it has no leader"
    )


def live_refusals(facts: GroupFacts) -> list[str]:
    """Why a step that rewinds cannot be done: live members would overwrite it."""
    names = [m.consumer_id for m in facts.members]
    if facts.coordinated is not None:
        names += [m.member_id for m in facts.coordinated.members]
    if not names:
        return []
    return [f"the group has live members, stop them first: {', '.join(names)}"]
