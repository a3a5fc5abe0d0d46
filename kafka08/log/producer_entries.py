"""Batches and markers of producers with an id, as Producers takes them from a log. Pure.

A marker is the one record of a control batch, which is never compressed; other types are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator

from kafka08.format import batches_of_producers
from kafka08.format.batch import Batch
from kafka08.format.control import ABORT, COMMIT, KEY, VALUE
from kafka08.format.types import Buffer, CorruptMessage
from kafka08.format.v2 import V2
from kafka08.log.producers import Marker, SequencedBatch


def producer_entries(data: Buffer) -> Iterator[SequencedBatch | Marker]:
    """The batches and markers of producers in `data`, in order. CorruptMessage."""
    view = memoryview(data)
    for batch in batches_of_producers(view):
        if not batch.is_control:
            yield sequenced(batch)
        elif batch.record_count:  # compaction may leave it without its marker
            marker = read_marker(view, batch)
            if marker is not None:
                yield marker


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
