"""The record batches that coordinators append: markers of transactions, and offsets that are
committed in one, each with what the log notes of it. Pure.

Both have the producer's id and epoch. A marker is the one record of a control batch, without a
sequence. Offsets have the sequence 0 each time: nothing of them is recognized as a repeat. Source:
kafka.server.KafkaApis.handleWriteTxnMarkersRequest,
kafka.coordinator.group.GroupMetadataManager.storeOffsets 0.11.0.2.
"""

from __future__ import annotations

from typing import Final

from kafka08 import kernel
from kafka08.format.v2 import place, stamp
from kafka08.kernel.types import RECORDS_MAGIC, Messages
from kafka08.log.producer_entries import StoredBatch, encode_marker
from kafka08.log.producers import Marker, SequencedBatch, TransactionEnd
from kafka08.protocol.message_set import PreparedSet

NO_SEQUENCE: Final = -1
FIRST_SEQUENCE: Final = 0


def marker_batch(
    end: TransactionEnd, base_offset: int, leader_epoch: int, now_ms: int
) -> tuple[PreparedSet, StoredBatch]:
    """The marker that ends a transaction."""
    key, value = encode_marker(end.commits, end.coordinator_epoch)
    batch = kernel.build_from_lists([key], [value], 0, 1, RECORDS_MAGIC, now_ms)
    producer = end.producer_id, end.producer_epoch
    _stamp(batch, *producer, NO_SEQUENCE, is_control=True)
    marker = Marker(*end, base_offset, now_ms)
    return _placed(batch, 1, StoredBatch(leader_epoch, base_offset, marker), now_ms)


def transactional_batch(
    records: Messages,
    producer_id: int,
    producer_epoch: int,
    base_offset: int,
    leader_epoch: int,
    now_ms: int,
) -> tuple[PreparedSet, StoredBatch]:
    """Records that count once the producer's transaction is committed."""
    keys, values = map(list, zip(*records, strict=True))
    count = len(records)
    batch = kernel.build_from_lists(keys, values, 0, count, RECORDS_MAGIC, now_ms)
    _stamp(batch, producer_id, producer_epoch, FIRST_SEQUENCE)
    last_offset = base_offset + count - 1
    entry = SequencedBatch(
        producer_id, producer_epoch, FIRST_SEQUENCE, base_offset, last_offset, now_ms, True
    )
    return _placed(batch, count, StoredBatch(leader_epoch, base_offset, entry), now_ms)


def _stamp(
    batch: bytearray,
    producer_id: int,
    producer_epoch: int,
    sequence: int,
    *,
    is_control: bool = False,
) -> None:
    stamp(
        batch,
        producer_id,
        producer_epoch,
        sequence,
        is_transactional=True,
        is_control=is_control,
        checksum=kernel.crc32c,
    )


def _placed(
    batch: bytearray, count: int, stored: StoredBatch, now_ms: int
) -> tuple[PreparedSet, StoredBatch]:
    base_offset, last_offset = stored.base_offset, stored.base_offset + count - 1
    place(batch, base_offset, stored.leader_epoch)
    return PreparedSet(batch, base_offset, last_offset, count, 0, now_ms, last_offset), stored
