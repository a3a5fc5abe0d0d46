"""Previews the steps of a migration for --dry-run: with the same refusals, and without any change.

A preview cannot foresee what happens while a step waits for members: their confirmations, and
offsets that move.
"""

from __future__ import annotations

from typing import Literal

from kafka08.errors import MigrationError
from kafka08.migration.journal import State, check, unfinished
from kafka08.migration.mirror import MIRRORED, mirrored_already
from kafka08.migration.offset_migration import KEEPS_ZOOKEEPER, RETURNED, OffsetMigration
from kafka08.migration.plan import coordinated_refusals, group_refusals, live_refusals
from kafka08.migration.reading import read_facts, with_coordinated
from kafka08.migration.results import refuse
from kafka08.migration.rollback import (
    Rollback,
    rollback_to_newest,
    rollback_to_snapshot,
    without_old,
)
from kafka08.migration.status import Status, not_done, not_level, not_ready
from kafka08.structs import TopicPartition
from kafka08.zk import paths


def preview_finish(migration: OffsetMigration) -> Status:
    """How the group is before `finish`. MigrationError for its refusals, by the present offsets of
    both stores; those of a stopped group are copied to Kafka by `finish` itself."""
    status = migration.status()
    check(migration.group, State.FINISHING, status.entry)
    assert status.entry is not None, "check refuses a migration that has not begun"
    facts = read_facts(migration.group, migration.connections, status.entry.snapshot)
    reasons = not_ready(status)
    if facts.is_live or facts.unavailable is not None:
        reasons += not_level(facts, status.entry)
    refuse("finish", migration.group, reasons)
    return status


def preview_forget(migration: OffsetMigration) -> Status:
    """How the group is before `forget`. MigrationError for its refusals."""
    status = migration.status()
    refuse("forget", migration.group, not_done(status))
    return status


def preview_mirror(migration: OffsetMigration) -> list[TopicPartition]:
    """The partitions whose offsets a mirror would copy at once. MigrationError if the group does
    not commit to both stores, or is mirrored already."""
    entry = migration.journal()
    if entry is None or entry.state not in MIRRORED:
        raise MigrationError(unfinished(migration.group, entry))
    if migration.connections.zk.exists(paths.migration_mirror(migration.group)):
        raise mirrored_already(migration.group)
    facts = migration.facts()
    owners = {p.topic_partition: facts.owner(p) for p in facts.behind_in_kafka}
    return [tp for tp, owner in owners.items() if owner is None or not owner.is_ours]


def preview_rollback(migration: OffsetMigration, to: Literal["newest", "snapshot"]) -> Rollback:
    """Returns what `rollback` would write, by the present offsets of both stores. MigrationError
    for its refusals."""
    group, entry = migration.group, migration.journal()
    by_snapshot = to == "snapshot"
    keeps = entry is not None and entry.state in KEEPS_ZOOKEEPER
    if by_snapshot or not keeps:
        check(group, State.ROLLING_TO_SNAPSHOT if by_snapshot else State.ROLLING_TO_NEWEST, entry)
    assert entry is not None, "check refuses a migration that has not begun"
    facts = read_facts(group, migration.connections, entry.snapshot)
    facts = with_coordinated(facts, migration.connections)
    if by_snapshot:
        rollback = rollback_to_snapshot(facts, entry.snapshot)
        reasons = [*live_refusals(facts), *group_refusals(facts), *rollback.refusals]
    elif not keeps:
        rollback = rollback_to_newest(facts, by_kafka=entry.state is State.FINISHED)
        reasons = [*coordinated_refusals(facts), *group_refusals(facts), *rollback.refusals]
    elif entry.state in RETURNED or facts.unavailable is not None:
        return Rollback({}, {})
    else:
        rollback = rollback_to_newest(without_old(facts, entry.snapshot))
        reasons = coordinated_refusals(facts)
    refuse("rollback", group, reasons)
    if by_snapshot:
        return rollback
    have = {p.topic_partition: p.zookeeper for p in facts.partitions}
    written = {tp: o for tp, o in rollback.to_zookeeper.items() if have.get(tp) != o}
    return Rollback(written, {}, problems=(*rollback.problems, *rollback.refusals))
