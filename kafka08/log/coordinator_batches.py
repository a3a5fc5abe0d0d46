"""The record batches that coordinators append: markers of transactions, and offsets that are
committed in one. Pure.

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
from kafka08.log.producer_entries import encode_marker
from kafka08.log.producers import TransactionEnd
from kafka08.protocol.message_set import PreparedSet

NO_SEQUENCE: Final = -1
FIRST_SEQUENCE: Final = 0


def marker_batch(
    end: TransactionEnd, base_offset: int, leader_epoch: int, now_ms: int
) -> PreparedSet:
    """The marker that ends a transaction."""
    key, value = encode_marker(end.commits, end.coordinator_epoch)
    batch = kernel.build_from_lists([key], [value], 0, 1, RECORDS_MAGIC, now_ms)
    producer = end.producer_id, end.producer_epoch
    return _placed(batch, 1, *producer, base_offset, leader_epoch, now_ms, is_control=True)


def transactional_batch(
    records: Messages,
    producer_id: int,
    producer_epoch: int,
    base_offset: int,
    leader_epoch: int,
    now_ms: int,
) -> PreparedSet:
    """Records that count once the producer's transaction is committed."""
    keys, values = map(list, zip(*records, strict=True))
    count = len(records)
    batch = kernel.build_from_lists(keys, values, 0, count, RECORDS_MAGIC, now_ms)
    return _placed(batch, count, producer_id, producer_epoch, base_offset, leader_epoch, now_ms)


def _placed(
    batch: bytearray,
    count: int,
    producer_id: int,
    producer_epoch: int,
    base_offset: int,
    leader_epoch: int,
    now_ms: int,
    *,
    is_control: bool = False,
) -> PreparedSet:
    stamp(
        batch,
        producer_id,
        producer_epoch,
        NO_SEQUENCE if is_control else FIRST_SEQUENCE,
        is_transactional=True,
        is_control=is_control,
        checksum=kernel.crc32c,
    )
    place(batch, base_offset, leader_epoch)
    last_offset = base_offset + count - 1
    return PreparedSet(batch, base_offset, last_offset, count, 0, now_ms, last_offset)
