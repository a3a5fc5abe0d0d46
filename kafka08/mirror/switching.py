"""The offsets of groups at the target of a move: translated from the source's, and set there.

A group may switch when it has no members at the source, and everything that it has read is copied.
At the target it must have no members and no other offsets: it would read messages again, or skip
some, that it has read there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from kafka08.admin.connections import Connections
from kafka08.admin.group_offsets import GroupOffsets
from kafka08.lifecycle import Closeable
from kafka08.mirror.move import Cluster
from kafka08.mirror.offset_map import OffsetMap
from kafka08.observe.place import ClusterPlace
from kafka08.observe.snapshot import ClusterView, Committed, GroupState
from kafka08.structs import TopicPartition
from kafka08.zk.migration_protocol import OffsetStorage


@dataclass(frozen=True, slots=True)
class GroupSwitch:
    """offsets    partition → its offset at the source, and at the target
    refusals   why the group cannot switch now
    left_out   partitions with offsets, of topics that do not move
    """

    group: str
    offsets: Mapping[TopicPartition, tuple[int, int]]
    refusals: tuple[str, ...] = ()
    left_out: int = 0

    def as_dict(self) -> dict[str, Any]:
        return {
            "group": self.group,
            "offsets": [[*tp, *both] for tp, both in self.offsets.items()],
            "refusals": list(self.refusals),
            "left_out": self.left_out,
        }


def switches(
    view: ClusterView, copied: OffsetMap, storage: OffsetStorage | None = None
) -> list[GroupSwitch]:
    """The offsets that each group of the source with some in moved partitions would get. Pure.

    storage   the store whose offsets count; None: the one that has some, if both do not differ
    """
    found = []
    for name in sorted(view.groups):
        one = _switch(name, view.groups[name], view, copied, storage)
        if one.offsets or one.refusals:
            found.append(one)
    return found


def _switch(
    name: str,
    group: GroupState,
    view: ClusterView,
    copied: OffsetMap,
    storage: OffsetStorage | None,
) -> GroupSwitch:
    refusals = []
    committed = _committed(group, storage)
    mine = {tp: one.offset for tp, one in committed.items() if tp in copied and one.offset >= 0}
    if not mine:
        return GroupSwitch(name, {}, (), len(committed))
    if storage is None and (
        differing := [
            tp for tp in mine if tp in group.zookeeper and tp in group.kafka
            and group.zookeeper[tp].offset != group.kafka[tp].offset
        ]
    ):  # fmt: skip
        refusals.append(
            f"ZooKeeper and Kafka have different offsets of {len(differing)} partitions, such as "
            f"{differing[0]}: say which counts, with --store"
        )
    if group.members is None:
        refusals.append(f"whether it has members is unknown: {group.unknown_group}")
    elif group.members:
        refusals.append(f"it has {group.members} members: stop them")
    if group.unreadable:
        refusals.append(f"{next(iter(group.unreadable.values()))}")
    offsets: dict[TopicPartition, tuple[int, int]] = {}
    for tp, offset in sorted(mine.items()):
        position, translated = copied.position(tp), copied.translated(tp, offset)
        assert position is not None, "it is copied"
        assert translated is not None, "it is copied"
        partition = view.partitions.get(tp)
        if offset > position and partition is not None and partition.end is not None:
            refusals.append(f"{tp}: {offset - position} messages that it has read are not copied")
        offsets[tp] = offset, translated
    return GroupSwitch(name, offsets, tuple(refusals), len(committed) - len(mine))


def _committed(
    group: GroupState, storage: OffsetStorage | None
) -> Mapping[TopicPartition, Committed]:
    if storage is OffsetStorage.ZOOKEEPER:
        return group.zookeeper
    return group.kafka if storage is OffsetStorage.KAFKA else group.newest()


class Switcher(Closeable):
    """Sets offsets at the target. A context manager."""

    def __init__(self, target: Cluster) -> None:
        place = target.place
        self._connections = Connections(*ClusterPlace(None, *place[1:]), is_patient=False)

    def close(self) -> None:
        self._connections.close()

    def checked(self, wanted: GroupSwitch) -> GroupSwitch:
        """With what stands against it at the target."""
        offsets = GroupOffsets(self._connections, wanted.group)
        plan = offsets.plan_set({tp: there for tp, (_, there) in wanted.offsets.items()})
        refusals = [*wanted.refusals, *(f"at the target: {why}" for why in plan.refusals)]
        facts = offsets.facts({tp.topic for tp in wanted.offsets})
        others = {
            p.topic_partition: p.kafka
            for p in facts.partitions
            if p.kafka is not None
            and p.topic_partition in wanted.offsets
            and p.kafka != wanted.offsets[p.topic_partition][1]
        }
        if others:
            tp, offset = next(iter(others.items()))
            refusals.append(f"at the target it has other offsets already, such as {offset} of {tp}")
        return replace(wanted, refusals=tuple(refusals))

    def carry_out(self, wanted: GroupSwitch) -> int:
        """Set the offsets; returns how many. MigrationError with what stands against it."""
        offsets = GroupOffsets(self._connections, wanted.group)
        plan = offsets.plan_set({tp: there for tp, (_, there) in wanted.offsets.items()})
        return offsets.carry_out(plan, OffsetStorage.KAFKA)
