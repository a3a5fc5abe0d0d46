"""Getting and changing a stopped group's offsets, in one store or in both."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from kafka08.admin.committing import commit_to_kafka
from kafka08.admin.connections import Connections
from kafka08.admin.group_facts import (
    GroupFacts,
    OfBoth,
    live_refusals,
    no_coordinator,
    overwrite,
    read_facts,
    with_coordinated,
)
from kafka08.admin.offset_changes import ChangePlan, Target, plan_reset, plan_set
from kafka08.client.log_offsets import offsets_before
from kafka08.errors import (
    ConfigError,
    ConnectionFailed,
    MigrationError,
    UnsupportedForMessageFormat,
    UnsupportedVersion,
)
from kafka08.observe.members import read_members
from kafka08.observe.snapshot import partitions_of
from kafka08.structs import TopicPartition
from kafka08.zk import paths
from kafka08.zk.group_store import GroupStore
from kafka08.zk.migration_protocol import OffsetStorage


class GroupOffsets:
    """The offsets of one group. Raises KafkaError; ConfigError for a name that none in ZooKeeper
    can have, if it may be one there."""

    def __init__(self, connections: Connections, group: str) -> None:
        if connections.has_zookeeper and not paths.can_be_group(group):
            raise ConfigError(
                f"{group!r} cannot be the name of a group in ZooKeeper, where it is one znode. If "
                "it is one with a coordinator, give --bootstrap without --zookeeper"
            )
        self.group = group
        self._connections = connections

    def facts(self, topics: Iterable[str] = ()) -> GroupFacts:
        """The facts of both stores, for all partitions of the topics that the group has read, owned
        or committed; with `topics`, for these alone."""
        wanted = sorted(topics)
        if not wanted:
            return self._facts_of_all()
        assigned = self._assigned(wanted)
        if missing := [topic for topic in wanted if topic not in assigned]:
            raise MigrationError(
                f"topic {missing[0]} does not exist; kafka08 topic list shows all topics"
            )
        return self._facts_of(TopicPartition(t, n) for t, of in assigned.items() for n in of)

    @property
    def has_zookeeper(self) -> bool:
        return self._connections.has_zookeeper

    def is_known(self, facts: GroupFacts) -> bool:
        """Whether the group exists; `facts` may be those of some of its topics."""
        return (
            not facts.is_empty
            or facts.coordinated is not None
            or self._is_in_zookeeper()
            or not self._facts_of_all().is_empty
        )

    def known_groups(self) -> list[str]:
        """The names of the groups that can be listed."""
        connections = self._connections
        if connections.has_zookeeper:
            return list(connections.zk.children_or_empty(paths.CONSUMERS))
        return [group.name for group in connections.groups.groups().groups]

    def _is_in_zookeeper(self) -> bool:
        connections = self._connections
        return connections.has_zookeeper and connections.zk.exists(paths.group(self.group))

    def left_out(self, offsets: Collection[TopicPartition]) -> list[TopicPartition]:
        """The partitions that `offsets` do not name, of the topics that they do."""
        assigned = self._assigned({tp.topic for tp in offsets})
        return [tp for tp in sorted(partitions_of(assigned, assigned, ())) if tp not in offsets]

    def _assigned(self, topics: Collection[str]) -> dict[str, Collection[int]]:
        """topic → its partitions, of those of `topics` that exist."""
        found = self._connections.assigned(topics)
        return {topic: found[topic] for topic in topics if topic in found}

    def plan_reset(self, target: Target, number: int = 0, topics: Iterable[str] = ()) -> ChangePlan:
        """number   the offset, the shift in messages, or the time in ms since 1970"""
        facts = self.facts(topics)
        existing = [p.topic_partition for p in facts.partitions if p.log_start is not None]
        if target is not Target.TIMESTAMP:
            return plan_reset(facts, target, number)
        at_time, untimed = self._offsets_at(existing, number)
        return replace(plan_reset(facts, target, number, at_time), untimed=tuple(untimed))

    def _offsets_at(
        self, partitions: Collection[TopicPartition], time_ms: int
    ) -> tuple[dict[TopicPartition, int | None], list[TopicPartition]]:
        """Exact for topics whose messages have timestamps, on brokers from 0.10.1 on; of others the
        start of the segment last written before the time, None if the whole log is younger. And the
        partitions of the former whose messages have none."""
        found: dict[TopicPartition, int | None] = {}
        untimed: list[TopicPartition] = []
        for topic in sorted({tp.topic for tp in partitions}):
            of_topic = [tp for tp in partitions if tp.topic == topic]
            try:
                of_messages, without = self._connections.offsets_at(of_topic, time_ms)
                found |= of_messages
                untimed += without
            except (UnsupportedVersion, UnsupportedForMessageFormat, ConnectionFailed):
                found |= offsets_before(self._connections.cluster, of_topic, time_ms)
        return found, untimed

    def plan_set(self, offsets: Mapping[TopicPartition, int]) -> ChangePlan:
        """An offset in ZooKeeper that cannot be read is overwritten like any other."""
        return self._plan_of({tp: (offset, offset) for tp, offset in offsets.items()})

    def plan_import(self, offsets: Mapping[TopicPartition, OfBoth]) -> ChangePlan:
        """The same, with each store's own offsets."""
        return replace(self._plan_of(offsets), is_import=True)

    def _plan_of(self, offsets: Mapping[TopicPartition, OfBoth]) -> ChangePlan:
        return plan_set(replace(self._facts_of(offsets), faults=()), offsets)

    def carry_out(self, plan: ChangePlan, storage: OffsetStorage | None = None) -> int:
        """Write the plan into these stores, Kafka first; None: into `stores` of it. Returns how
        many partitions were written. MigrationError with the plan's refusals, or if members have
        come, before the writes or during them."""
        gate = self._connections.gate()
        members = self._members_now()
        storage = storage or self._stores(plan, members)
        now = live_refusals(members)
        if members.unavailable is not None:
            now.append(no_coordinator(members.unavailable))
        if refusals := [*plan.refusals, *(r for r in now if r not in plan.refusals)]:
            text = "\n".join(f"  - {reason}" for reason in refusals)
            raise MigrationError(f"offsets of group {self.group} are not changed:\n{text}")
        if storage.in_zookeeper and not self._connections.has_zookeeper:
            raise MigrationError("offsets in ZooKeeper are set with its address: --zookeeper")
        if storage.in_kafka and plan.in_kafka:
            commit_to_kafka(self._connections, self.group, plan.in_kafka, gate)
        if storage.in_zookeeper:
            store = GroupStore(self._connections.zk)
            for error in store.commit_offsets(self.group, plan.in_zookeeper).values():
                raise error
        if joined := live_refusals(self._members_now()):
            raise MigrationError(
                f"a member of group {self.group} joined while its offsets were written, and may "
                f"have read or overwritten some of them: {'; '.join(joined)}, then repeat this"
            )
        return len(plan.offsets)

    def stores(self, plan: ChangePlan) -> OffsetStorage:
        """The stores where the group has offsets, so that members which read both do not continue
        from the other one. An import, and offsets of a new group, go to both; to Kafka alone if
        ZooKeeper is not there, or has no such group and a coordinator has one."""
        return self._stores(plan, self._members_now())

    def _stores(self, plan: ChangePlan, group: GroupFacts) -> OffsetStorage:
        if not self._connections.has_zookeeper:
            return OffsetStorage.KAFKA
        if group.coordinated is not None and not self._is_in_zookeeper():
            return OffsetStorage.KAFKA
        return (None if plan.is_import else plan.storage) or OffsetStorage.DUAL

    def _members_now(self) -> GroupFacts:
        """The group without its partitions."""
        connections = self._connections
        members = read_members(connections.zk, self.group) if connections.has_zookeeper else ()
        return with_coordinated(GroupFacts(self.group, members, ()), connections)

    def _facts_of_all(self) -> GroupFacts:
        return read_facts(self.group, self._connections)

    def _facts_of(self, partitions: Iterable[TopicPartition]) -> GroupFacts:
        """The facts of exactly these partitions."""
        wanted = frozenset(partitions)
        facts = read_facts(self.group, self._connections, wanted)
        found = tuple(p for p in facts.partitions if p.topic_partition in wanted)
        faults = tuple(
            f"{p.zookeeper_fault}; {overwrite(self.group, p.topic_partition)}"
            for p in found
            if p.zookeeper_fault is not None
        )
        return replace(facts, partitions=found, faults=faults)
