"""The states of a group, of either kind, that waits.py waits for. Pure but for `read_group`.

Importing it imports the clients of groups: waits.py does so when a group is waited for.
"""

from __future__ import annotations

from typing import TypeAlias

from kafka08.embedded.not_yet import NotYet
from kafka08.groups import CoordinatedFacts, GroupFacts, GroupReader, PartitionFacts
from kafka08.listing import counted, some_of
from kafka08.observe.coordinated import STABLE
from kafka08.observe.group import facts_of
from kafka08.structs import TopicPartition

Assignment: TypeAlias = dict[str, tuple[TopicPartition, ...]]
"""Member id → its partitions, sorted."""
Group: TypeAlias = GroupFacts | CoordinatedFacts | None
"""A group of either kind; None: there is none."""


def read_group(reader: GroupReader, group: str) -> Group:
    """The group now; of two of this name the one that is meant. Raises KafkaError."""
    snapshot = reader.snapshot(group)
    state = snapshot.groups[group]
    if state.unknown_group is not None:
        raise state.unknown_group
    return facts_of(snapshot, group, state.kinds[0]) if state.kinds else None


def stable(group: Group, members: int) -> Assignment:
    """The group's assignment. Raises NotYet unless it is stable with so many members."""
    if isinstance(group, CoordinatedFacts) and group.group.members:
        known = group.group
        if known.state != STABLE or len(known.members) != members:
            raise NotYet(f"state {known.state}, {counted(len(known.members), 'member')}")
        return {member.member_id: member.owns for member in known.members}
    if isinstance(group, GroupFacts) and group.members:
        if len(group.members) != members:
            raise NotYet(counted(len(group.members), "member"))
        return owned(group)
    if members:
        raise NotYet("no member")
    return {}


def owned(group: GroupFacts) -> Assignment:
    """The assignment of a group in ZooKeeper. Raises NotYet if a partition has no live owner."""
    owners: dict[str, list[TopicPartition]] = {m.consumer_id: [] for m in group.members}
    read = {topic for _, topic, _ in group.subscriptions()}
    for partition in group.partitions:
        tp = partition.topic_partition
        if tp.topic not in read or not partition.exists:
            continue
        # The id of a thread is that of its member and a number.
        member = "" if partition.owner is None else partition.owner.thread_id.rpartition("-")[0]
        if member not in owners:
            raise NotYet(f"{counted(len(owners), 'member')}, but none owns {tp}")
        owners[member].append(tp)
    return {member: tuple(sorted(partitions)) for member, partitions in owners.items()}


def committed(group: Group, partition: TopicPartition, offset: int) -> int:
    """The committed offset. Raises NotYet if it is smaller, or none."""
    found = partitions_of(group).get(partition)
    if found is None or found.newest is None:
        raise NotYet("nothing is committed")
    if found.newest < offset:
        raise NotYet(f"{found.newest} is committed")
    return found.newest


def small_lag(group: Group, topic: str | None, at_most: int) -> int:
    """The lag of all partitions (of a topic). Raises NotYet if it is larger, or not known."""
    partitions = partitions_of(group)
    read = {tp: p for tp, p in partitions.items() if topic is None or tp.topic == topic}
    if not read:
        raise NotYet("no partition that the group reads")
    unknown = [tp for tp, p in read.items() if p.lag is None or not p.is_lag_exact]
    if unknown:
        raise NotYet(f"nothing is committed of {some_of(sorted(unknown))}")
    lags = {tp: p.lag or 0 for tp, p in read.items()}
    if sum(lags.values()) > at_most:
        largest = max(lags, key=lambda tp: lags[tp])
        raise NotYet(f"lag {sum(lags.values())}, of {largest} {lags[largest]}")
    return sum(lags.values())


def partitions_of(group: Group) -> dict[TopicPartition, PartitionFacts]:
    """The partitions that the group reads. A group of ZooKeeper has offsets in either store."""
    return {} if group is None else {p.topic_partition: p for p in group.partitions}
