"""Which store counts where both have an offset, and not the same one. Pure.

The larger number proves nothing: an old offset of an earlier life of the group, or of a topic that
was created again, is often the larger one, and members that continue there skip messages. Proof is
what commits now, or what the journal of this migration says of the time since it began. Without
proof an operator must say which store counts.
"""

from __future__ import annotations

import enum
from typing import Final

from kafka08.admin.group_facts import GroupFacts
from kafka08.migration.journal import Entry, State
from kafka08.observe.group import PartitionFacts
from kafka08.observe.members import Member
from kafka08.zk.migration_protocol import OffsetStorage


class StoreThatCounts(enum.Enum):
    """The store whose offset is the true one. NEWEST: the larger offset."""

    ZOOKEEPER = "zookeeper"
    KAFKA = "kafka"
    NEWEST = "newest"


_OF_STORAGE: Final[dict[OffsetStorage | None, StoreThatCounts | None]] = {
    None: None,
    OffsetStorage.ZOOKEEPER: StoreThatCounts.ZOOKEEPER,
    OffsetStorage.DUAL: StoreThatCounts.NEWEST,
    OffsetStorage.KAFKA: StoreThatCounts.KAFKA,
}


def proven(facts: GroupFacts, p: PartitionFacts, entry: Entry | None) -> StoreThatCounts | None:
    """The store that counts; None if that is not proven. `p` has two offsets that differ, `entry`
    is the group's journal."""
    return _by_commits(facts, p) or _by_journal(p, entry)


def _by_commits(facts: GroupFacts, p: PartitionFacts) -> StoreThatCounts | None:
    owner = facts.owner(p)
    if owner is not None and not owner.is_ours:
        if p.topic_partition in facts.fresh:
            return StoreThatCounts.KAFKA if p.is_behind_in_kafka else StoreThatCounts.NEWEST
        return StoreThatCounts.ZOOKEEPER if p.topic_partition in facts.advancing else None
    if owner is not None:
        return _OF_STORAGE[_storage(owner)]
    # During a rebalance nobody owns it: one of those who read the topic will.
    storages = {_storage(m) for m in facts.readers(p)}
    larger = OffsetStorage.KAFKA if p.is_ahead_in_kafka else OffsetStorage.ZOOKEEPER
    return _OF_STORAGE[larger] if storages and storages <= {larger, OffsetStorage.DUAL} else None


def _storage(member: Member) -> OffsetStorage | None:
    """None: it is not known."""
    return member.storage if member.is_ours else None


def _by_journal(p: PartitionFacts, entry: Entry | None) -> StoreThatCounts | None:
    if entry is None:
        return None
    before = entry.snapshot.get(p.topic_partition)
    match entry.state:
        case State.COPYING if before is not None and p.is_behind_in_kafka:
            is_our_copy = p.kafka == before[0]
            return StoreThatCounts.ZOOKEEPER if is_our_copy else None
        case State.ROLLED_BACK if p.is_behind_in_kafka:
            return StoreThatCounts.ZOOKEEPER
        case State.DUAL | State.VERIFIED if before != (p.zookeeper, p.kafka):
            return StoreThatCounts.NEWEST  # it has moved since members commit to both
        case _:
            return None
