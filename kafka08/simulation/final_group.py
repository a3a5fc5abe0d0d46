"""Conditions that become true of the group at the end of a run.

1. It has processed every message, and committed the end of every partition.
2. Its members share the partitions evenly.
3. Each member has confirmed the order of a migration, whichever step was the last one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import get_args

from kafka08.client.requests import StorageName
from kafka08.errors import KafkaError
from kafka08.migration import OffsetMigration
from kafka08.simulation.group_history import GroupHistory
from kafka08.simulation.plan import Fault, Plan
from kafka08.simulation.runtime import SimClientRuntime
from kafka08.simulation.workload import Target, committed_offsets
from kafka08.simulation.zookeeper import ADDRESS
from kafka08.simulation.zookeeper_group_history import GROUP
from kafka08.structs import TopicPartition

Await = Callable[[str, Callable[[], str]], None]
Read = Callable[[TopicPartition], Mapping[int, bytes]]


class FinalGroup:
    """read          all messages of a partition: offset → value
    await_none    waits until a sentence is ""; the first argument says what for
    """

    def __init__(
        self,
        plan: Plan,
        target: Target,
        group: GroupHistory,
        director: SimClientRuntime,
        read: Read,
        await_none: Await,
    ) -> None:
        self._plan = plan
        self._target = target
        self._group = group
        self._director = director
        self._read = read
        self._await_none = await_none

    def check(self, final: Mapping[TopicPartition, Mapping[int, bytes]]) -> None:
        """`final`: the final messages of each partition."""
        self._await_none("the group to process every message", partial(self._missing, final))
        ends = {tp: max(final[tp]) + 1 for tp in final if final[tp]}
        self._await_none(
            "the group to commit the end of every partition", partial(self._uncommitted, ends)
        )
        self._await_none(
            "the group to share its partitions evenly",
            partial(self._group.uneven, self._plan.members, self._target.partitions),
        )
        if any(fault.kind is Fault.MIGRATE for fault in self._plan.faults):
            with OffsetMigration(ADDRESS, GROUP, runtime=self._director) as migration:
                self._await_none(
                    "members to confirm the order of the migration", partial(_waiting, migration)
                )

    def _missing(self, final: Mapping[TopicPartition, Mapping[int, bytes]]) -> str:
        for tp, messages in final.items():
            if missing := self._group.missing(tp, messages.keys()):
                return (
                    f"{tp} offset {min(missing)} and {len(missing) - 1} more; it belongs to "
                    f"{self._group.owner(tp)}"
                )
        return ""

    def _uncommitted(self, ends: dict[TopicPartition, int]) -> str:
        """How the committed offsets differ from these ends, in either store, since a migration may
        have moved them. A member also commits its start: offset 0 of an empty partition. A late
        request of a producer that gave up may still extend a log; then `ends` is updated."""
        found = []
        for storage in get_args(StorageName):
            committed = committed_offsets(self._director, self._target, GROUP, storage)
            for tp, offset in committed.items():
                if offset > ends.get(tp, 0):
                    ends[tp] = max(self._read(tp), default=-1) + 1
            if {tp: offset for tp, offset in committed.items() if offset > 0} == {
                tp: end for tp, end in ends.items() if end > 0
            }:
                return ""
            found += [
                f"{storage} has {committed.get(tp)} of {tp}, which ends at {end} and belongs to "
                f"{self._group.owner(tp)}"
                for tp, end in ends.items()
                if committed.get(tp) != end
            ]
        return "; ".join(found)


def _waiting(migration: OffsetMigration) -> str:
    """The members that have not confirmed the order."""
    try:
        return ", ".join(migration.status().waiting_for)
    except KafkaError as error:
        return f"unknown: {error}"
