"""The offsets topic stays small: an expired offset leaves a tombstone, and the cleaner removes
both."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka08.broker.groups.offset_manager import FetchedOffset
from kafka08.log.cleaner import LogCleaner
from kafka08.protocol import message_set
from kafka08.protocol.offset_records import OffsetKey, decode_key
from tests.broker.groups.conftest import Coordinator

DAY_S = 24 * 3600
KEYS = {
    "log_cleanup_policy": "compact",
    "log_cleaner_delete_retention_ms": 0,
    "log_cleaner_min_cleanable_ratio": 0.0,
}
OLD, LIVE = OffsetKey("a", "t", 0), OffsetKey("a", "t", 1)


@pytest.fixture
def coordinator(tmp_path: Path) -> Iterator[Coordinator]:
    coordinator = Coordinator(tmp_path, **KEYS)
    yield coordinator
    coordinator.close()


def records(coordinator: Coordinator) -> list[tuple[object, bool]]:
    """(key, tombstone) of the records of partition 1."""
    log = coordinator.log(1)
    found: list[tuple[object, bool]] = []
    offset = log.log_start_offset
    while batch := list(message_set.decode(log.read(offset, 1 << 20).bytes(), offset)):
        found += [(decode_key(message.key or b""), message.value is None) for message in batch]
        offset = batch[-1].offset + 1
    return found


def clean(coordinator: Coordinator) -> None:
    cleaner = LogCleaner(
        coordinator.log_manager, coordinator.config.cleaner_config(), clock=coordinator.runtime
    )
    assert cleaner.clean_one()


def test_an_expired_offset_vanishes_in_two_passes(coordinator: Coordinator, tmp_path: Path) -> None:
    """The pass that meets the tombstone removes the records, and the next one after
    delete.retention.ms removes the tombstone. A new leader then knows the other offsets alone."""
    coordinator.lead(1)
    for offset in range(5):
        coordinator.commit("a", 0, offset)
        coordinator.commit("a", 1, offset)
    coordinator.runtime.advance(DAY_S + 3600)
    coordinator.commit("a", 1, 7)
    assert FetchedOffset(-1, "") == coordinator.fetch("a", 0)
    assert (OLD, True) in records(coordinator)

    coordinator.log(1).roll()
    clean(coordinator)
    assert [(OLD, True), (LIVE, False)] == records(coordinator)

    coordinator.commit("a", 1, 8)
    coordinator.log(1).roll()
    clean(coordinator)
    assert [(LIVE, False)] == records(coordinator)

    coordinator.close()
    again = Coordinator(tmp_path, **KEYS)
    again.runtime.now = coordinator.runtime.now
    again.lead(1)
    assert FetchedOffset(-1, "") == again.fetch("a", 0)
    assert 8 == again.fetch("a", 1).offset
    assert 1 == len(again.offsets)
    again.close()


def test_a_load_ends_though_the_last_records_are_compacted_away(
    coordinator: Coordinator, tmp_path: Path
) -> None:
    """A load ends although there is a gap behind the last record. A broker that dies right after a
    roll leaves an empty active segment, and compaction may then remove the records before it."""
    coordinator.lead(1)
    coordinator.commit("a", 1, 8)
    coordinator.log(1).append(bytearray(message_set.encode([(None, b"no key")])))
    coordinator.log(1).roll()
    clean(coordinator)
    assert [(LIVE, False)] == records(coordinator)
    assert 2 == coordinator.log(1).log_end_offset
    coordinator.close()
    again = Coordinator(tmp_path, **KEYS)
    again.lead(1)
    assert 8 == again.fetch("a", 1).offset
    again.close()


def test_commits_between_passes_win(coordinator: Coordinator) -> None:
    """A group that commits again after its tombstone keeps the new offset."""
    coordinator.lead(1)
    coordinator.commit("a", 0, 5)
    coordinator.runtime.advance(DAY_S + 3600)
    coordinator.log(1).roll()
    coordinator.commit("a", 0, 6)
    clean(coordinator)
    assert [(OLD, True), (OLD, False)] == records(coordinator)
    coordinator.log(1).roll()
    clean(coordinator)
    assert [(OLD, False)] == records(coordinator)
    assert 6 == coordinator.fetch("a", 0).offset
