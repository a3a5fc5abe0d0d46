"""Commits to Kafka on behalf of members that use ZooKeeper and cannot be changed.

While a group commits to both stores, a mirror copies ZooKeeper's offsets to Kafka for every
partition that no kafka08 member owns. It never lowers an offset that it has read. But Kafka has no
conditional commit: if such a member itself begins to commit to Kafka between a read and a commit of
the mirror, the mirror may overwrite that first commit with a slightly older one, until the member's
next commit. An ephemeral znode marks a running mirror: a second one is refused, and `finish` waits
for its end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kafka08.admin.group_facts import GroupFacts
from kafka08.client.coordinators import Check
from kafka08.consumer.zookeeper.offset_store import Offsets
from kafka08.errors import MigrationError, NodeExists
from kafka08.migration.journal import State
from kafka08.migration.offset_migration import OffsetMigration
from kafka08.migration.writing import raise_in_kafka
from kafka08.observe.group import PartitionFacts
from kafka08.zk import paths

MIRRORED: Final = frozenset({State.DUAL, State.VERIFIED})


class Mirror:
    """A mirror of one group; usable while its migration is in DUAL or VERIFIED."""

    def __init__(self, migration: OffsetMigration) -> None:
        self._migration = migration
        self._connections = migration.connections
        self._path = paths.migration_mirror(migration.group)

    def copy(self, gate: Check) -> Offsets:
        """Copy once, while `gate` is open; returns the committed offsets. Raises KafkaError."""
        mirrored = [p.topic_partition for p in mirrored_of(self._migration.facts())]
        return raise_in_kafka(self._connections, self._migration.group, mirrored, gate)

    def run(
        self, period_s: float, on_copy: Callable[[Offsets], None], *, rounds: int | None = None
    ) -> None:
        """Copy every `period_s`, until the migration leaves DUAL and VERIFIED or the `rounds` are
        over. MigrationError if it is in another state, or mirrored already; SessionLost if this
        process was suspended so long that another one may mirror the group, or finish it."""
        self._check()
        gate, zk = self._connections.gate(), self._connections.zk
        session = zk.session_id
        try:
            zk.create(self._path, ephemeral=True)
        except NodeExists as error:
            raise mirrored_already(self._migration.group) from error
        gate()
        done = 0
        try:
            while self._is_wanted() and done != rounds:
                on_copy(self.copy(gate))
                done += 1
                if done != rounds:
                    self._connections.runtime.sleep(period_s)
        finally:
            mark = zk.stat(self._path)
            if mark is not None and mark.ephemeral_owner == session:
                zk.delete(self._path, missing_ok=True)  # else it is a successor's

    def _is_wanted(self) -> bool:
        entry = self._migration.journal()
        return entry is not None and entry.state in MIRRORED

    def _check(self) -> None:
        if not self._is_wanted():
            raise MigrationError(
                f"group {self._migration.group} does not commit to both stores: run kafka08 "
                f"migrate start {self._migration.group} first"
            )


def mirrored_of(facts: GroupFacts) -> list[PartitionFacts]:
    """The partitions that no kafka08 member owns."""
    owners = ((p, facts.owner(p)) for p in facts.partitions if p.exists)
    return [p for p, owner in owners if owner is None or not owner.is_ours]


def mirrored_already(group: str) -> MigrationError:
    """The error when the znode of a running mirror is there."""
    return MigrationError(
        f"another process mirrors group {group} (znode {paths.migration_mirror(group)}); stop that "
        "one first"
    )
