"""Plans new offsets for a group. Pure.

A planned offset always lies in the log: a target outside it is refused, except for shifts, which
stop at the log's start or end. Where both stores have an offset, both are set to one: members that
read both continue from the larger one, so rewinding one alone would have no effect. An import
restores each store's own.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from kafka08.admin.group_facts import (
    NO_OFFSETS,
    GroupFacts,
    OfBoth,
    Offset,
    live_refusals,
    no_coordinator,
)
from kafka08.observe.group import PartitionFacts
from kafka08.structs import TopicPartition
from kafka08.zk.migration_protocol import OffsetStorage


class Target(enum.Enum):
    """The target; OFFSET and SHIFT need a number, TIMESTAMP the brokers' offsets."""

    EARLIEST = "earliest"
    LATEST = "latest"
    TIMESTAMP = "timestamp"
    OFFSET = "offset"
    SHIFT = "shift"


@dataclass(frozen=True, slots=True)
class Change:
    """One partition: its offsets in the stores, and those to be written to each; None: that store
    keeps what it has. Both None: unchanged, for `reason`."""

    facts: PartitionFacts
    zookeeper: Offset
    kafka: Offset
    reason: str | None = None

    @property
    def offset(self) -> Offset:
        """The larger one that is written; None: nothing is."""
        return max((o for o in (self.zookeeper, self.kafka) if o is not None), default=None)

    @property
    def messages(self) -> int | None:
        """How many messages the group is moved by; below 0: they are read again."""
        if self.offset is None or self.facts.newest is None:
            return None
        return max(o for o in self._after().values() if o is not None) - self.facts.newest

    @property
    def kept(self) -> str | None:
        """Which store keeps an offset that is not the one written to the other; None: neither."""
        after = self._after()
        if self.offset is None or None in after.values() or len({*after.values()}) == 1:
            return None
        for store, written in (("ZooKeeper", self.zookeeper), ("Kafka", self.kafka)):
            if written is None:
                return f"{self.facts.topic_partition}: {store} keeps {after[store.lower()]}"
        return None

    def _after(self) -> dict[str, Offset]:
        """The offsets in both stores afterwards, by field."""
        return {
            "zookeeper": self.facts.zookeeper if self.zookeeper is None else self.zookeeper,
            "kafka": self.facts.kafka if self.kafka is None else self.kafka,
        }


@dataclass(frozen=True, slots=True)
class ChangePlan:
    """untimed     partitions that go to their log's end although they hold messages, because these
                have no timestamps
    is_import   it has each store's own offsets
    """

    group: str
    changes: tuple[Change, ...]
    refusals: tuple[str, ...]
    untimed: tuple[TopicPartition, ...] = ()
    is_import: bool = False

    @property
    def storage(self) -> OffsetStorage | None:
        """The stores in which the group has an offset of these partitions; None: in neither."""
        in_zookeeper = any(c.facts.zookeeper is not None for c in self.changes)
        if any(c.facts.kafka is not None for c in self.changes):
            return OffsetStorage.DUAL if in_zookeeper else OffsetStorage.KAFKA
        return OffsetStorage.ZOOKEEPER if in_zookeeper else None

    @property
    def offsets(self) -> dict[TopicPartition, int]:
        """partition → what will be written, the larger one where the stores get different ones."""
        return {c.facts.topic_partition: c.offset for c in self.changes if c.offset is not None}

    @property
    def in_zookeeper(self) -> dict[TopicPartition, int]:
        """partition → what will be written to ZooKeeper, if that is changed."""
        changes = self.changes
        return {c.facts.topic_partition: c.zookeeper for c in changes if c.zookeeper is not None}

    @property
    def in_kafka(self) -> dict[TopicPartition, int]:
        """partition → what will be written to Kafka, if that is changed."""
        return {c.facts.topic_partition: c.kafka for c in self.changes if c.kafka is not None}


def plan_reset(
    facts: GroupFacts,
    target: Target,
    number: int = 0,
    at_time: Mapping[TopicPartition, Offset] = {},
) -> ChangePlan:
    """Every existing partition to the target. `at_time`: the brokers' offsets for a time; a
    partition without one goes to its log's start."""
    changes = []
    for p in facts.partitions:
        if p.log_start is None or p.log_end is None:
            reason = p.log_problem or "the partition does not exist any more"
            changes.append(Change(p, None, None, reason))
            continue
        match target:
            case Target.EARLIEST:
                offset = p.log_start
            case Target.LATEST:
                offset = p.log_end
            case Target.OFFSET:
                offset = number
            case Target.TIMESTAMP:
                found = at_time.get(p.topic_partition)
                offset = p.log_start if found is None else found
            case Target.SHIFT:
                base = p.log_start if p.newest is None else p.newest
                offset = min(max(base + number, p.log_start), p.log_end)
        changes.append(Change(p, offset, offset))
    return _checked(facts, changes)


def plan_set(facts: GroupFacts, offsets: Mapping[TopicPartition, OfBoth]) -> ChangePlan:
    """The partitions named to the offsets named for each store; `facts` must have them all."""
    by_partition = {p.topic_partition: p for p in facts.partitions}
    return _checked(facts, [Change(by_partition[tp], *o) for tp, o in sorted(offsets.items())])


def _checked(facts: GroupFacts, changes: list[Change]) -> ChangePlan:
    refusals = live_refusals(facts)
    if facts.unavailable is not None:
        refusals.append(no_coordinator(facts.unavailable))
    refusals += facts.faults
    for change in changes:
        if change.facts.log_problem is not None:
            refusals.append(change.facts.log_problem)
        elif change.offset is None:
            continue
        elif not change.facts.exists:
            refusals.append(f"{change.facts.topic_partition} does not exist")
        else:
            wanted = {o: None for o in (change.zookeeper, change.kafka) if o is not None}
            problems = (change.facts.range_problem(offset, "the plan") for offset in wanted)
            refusals += [problem for problem in problems if problem is not None]
    if not changes:
        refusals.append(NO_OFFSETS)
    return ChangePlan(facts.group, tuple(changes), tuple(refusals))
