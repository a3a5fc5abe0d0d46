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
from kafka08.format import Batch, Message
from kafka08.format.v2 import V2
from kafka08.kernel.types import CREATE_TIME, Messages
from kafka08.log.producer_entries import encode_marker
from kafka08.log.producers import TransactionEnd
from kafka08.protocol.message_set import PreparedSet
from kafka08.protocol.record_batches import compress

NO_SEQUENCE: Final = -1
FIRST_SEQUENCE: Final = 0


def marker_batch(
    end: TransactionEnd, base_offset: int, leader_epoch: int, now_ms: int
) -> PreparedSet:
    """The marker that ends a transaction."""
    record = encode_marker(end.commits, end.coordinator_epoch)
    return _batch(
        [record],
        _head(end.producer_id, end.producer_epoch, base_offset, leader_epoch)._replace(
            base_sequence=NO_SEQUENCE, is_control=True
        ),
        now_ms,
    )


def transactional_batch(
    records: Messages,
    producer_id: int,
    producer_epoch: int,
    base_offset: int,
    leader_epoch: int,
    now_ms: int,
) -> PreparedSet:
    """Records that count once the producer's transaction is committed."""
    return _batch(records, _head(producer_id, producer_epoch, base_offset, leader_epoch), now_ms)


def _head(producer_id: int, producer_epoch: int, base_offset: int, leader_epoch: int) -> Batch:
    return Batch(
        V2.magic,
        position=0,
        size=0,
        base_offset=base_offset,
        last_offset=base_offset,
        codec=0,
        timestamp_type=CREATE_TIME,
        max_timestamp_ms=0,
        crc=0,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=FIRST_SEQUENCE,
        is_transactional=True,
    )


def _batch(records: Messages, head: Batch, now_ms: int) -> PreparedSet:
    messages = [
        Message(
            offset,
            None if key is None else memoryview(key),
            None if value is None else memoryview(value),
            now_ms,
            CREATE_TIME,
        )
        for offset, (key, value) in enumerate(records, head.base_offset)
    ]
    last_offset = head.base_offset + len(messages) - 1
    head = head._replace(last_offset=last_offset)
    data = V2().build(messages, 0, compress, like=head, checksum=kernel.crc32c)
    return PreparedSet(data, head.base_offset, last_offset, len(messages), 0, now_ms, last_offset)
