"""Record batches as a log notes them; batches and markers of producers, as Producers takes them.
Pure.

A marker is the one record of a control batch, which is never compressed; other types are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kafka08.format import batches, batches_of_producers
from kafka08.format.batch import NO_PRODUCER, Batch
from kafka08.format.control import ABORT, COMMIT, KEY, VALUE
from kafka08.format.types import Buffer, CorruptMessage
from kafka08.format.v2 import V2
from kafka08.log.producers import Marker, SequencedBatch


def producer_entries(data: Buffer) -> Iterator[SequencedBatch | Marker]:
    """The batches and markers of producers in `data`, in order. CorruptMessage."""
    view = memoryview(data)
    for batch in batches_of_producers(view):
        entry = entry_of(view, batch)
        if entry is not None:
            yield entry


class StoredBatch(NamedTuple):
    """A record batch as its log notes it. `entry` None: of no producer, or without a marker."""

    leader_epoch: int
    base_offset: int
    entry: SequencedBatch | Marker | None


def stored_batches(data: Buffer) -> list[StoredBatch]:
    """The whole record batches of a set that was checked. CorruptMessage: a marker."""
    view = memoryview(data)
    return [
        StoredBatch(one.leader_epoch, one.base_offset, entry_of(view, one))
        for one in batches(view)
        if one.magic == V2.magic
    ]


def entry_of(view: memoryview, batch: Batch) -> SequencedBatch | Marker | None:
    """A batch of a producer as Producers takes it; else None. CorruptMessage: a marker."""
    if batch.producer_id == NO_PRODUCER:
        return None
    if not batch.is_control:
        return sequenced(batch)
    # Compaction may leave it without its marker.
    return read_marker(view, batch) if batch.record_count else None


def sequenced(batch: Batch) -> SequencedBatch:
    """A batch of records, as Producers takes it."""
    return SequencedBatch(
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        batch.base_offset,
        batch.last_offset,
        batch.max_timestamp_ms,
        batch.is_transactional,
    )


def read_marker(view: memoryview, batch: Batch) -> Marker | None:
    """The marker of a control batch; None for another kind. CorruptMessage."""
    if batch.codec:
        raise CorruptMessage(batch.position, batch.base_offset, "a compressed control batch")
    record = next(V2().read_records(view[batch.position + V2.head_bytes : batch.end], batch))
    key, value = record.key, record.value
    if key is None or len(key) < KEY.size:
        raise CorruptMessage(batch.position, batch.base_offset, "a control record without its key")
    kind = KEY.unpack_from(key)[1]
    if kind not in {ABORT, COMMIT}:
        return None
    if value is None or len(value) < VALUE.size:
        raise CorruptMessage(batch.position, batch.base_offset, "a marker without its value")
    coordinator_epoch = VALUE.unpack_from(value)[1]
    return Marker(
        batch.producer_id,
        batch.producer_epoch,
        kind == COMMIT,
        coordinator_epoch,
        batch.base_offset,
        batch.max_timestamp_ms,
    )


def encode_marker(commits: bool, coordinator_epoch: int) -> tuple[bytes, bytes]:
    """Key and value of a marker's record."""
    return KEY.pack(0, COMMIT if commits else ABORT), VALUE.pack(0, coordinator_epoch)
