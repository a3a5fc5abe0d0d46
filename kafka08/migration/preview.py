"""Previews the steps of a migration for --dry-run: with the same refusals, and without any change.

A preview cannot foresee what happens while a step waits for members: their confirmations, and
offsets that move.
"""

from __future__ import annotations

from kafka08.errors import MigrationError
from kafka08.migration.journal import State, check, unfinished
from kafka08.migration.mirror import MIRRORED, mirrored_already, mirrored_of
from kafka08.migration.offset_migration import OffsetMigration
from kafka08.migration.results import refuse
from kafka08.migration.status import Status, not_done, not_level, not_ready
from kafka08.structs import TopicPartition
from kafka08.zk import paths


def preview_finish(migration: OffsetMigration) -> Status:
    """How the group is before `finish`. MigrationError for its refusals, by the present offsets of
    both stores; those of a stopped group are copied to Kafka by `finish` itself."""
    status = migration.status()
    check(migration.group, State.FINISHING, status.entry)
    assert status.entry is not None, "check refuses a migration that has not begun"
    facts = migration.known_facts(status.entry)
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
    return [p.topic_partition for p in mirrored_of(migration.facts()) if p.is_behind_in_kafka]
