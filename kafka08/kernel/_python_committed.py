"""Sets without the messages of aborted transactions (twin).

The broker ends the set before the first open transaction, and names the aborted ones in it: batches
of such a producer are left out from the transaction's first offset to its marker. Source:
org.apache.kafka.clients.consumer.internals.Fetcher.PartitionRecords 0.11.0.3.
"""

from __future__ import annotations

from kafka08.format import Batch, RecordFormat, batches, format_of
from kafka08.format.control import ABORT, KEY
from kafka08.kernel.types import Buffer


def without_aborted(data: Buffer, aborted: list[tuple[int, int]]) -> Buffer:
    """`data` without the messages of these transactions, (first offset, producer id) in ascending
    order: itself if it has none of them, else a copy without a partial entry at the end.
    CorruptMessage for an impossible size and for a marker that cannot be read."""
    view = memoryview(data)
    coming = aborted[::-1]
    open_ids: set[int] = set()
    pieces: list[memoryview] = []
    start = end = 0
    for batch in batches(view):
        while coming and coming[-1][0] <= batch.last_offset:
            open_ids.add(coming.pop()[1])
        if open_ids and batch.is_control:
            if _is_abort(view, batch):
                open_ids.discard(batch.producer_id)
        elif batch.is_transactional and batch.producer_id in open_ids:
            pieces.append(view[start : batch.position])
            start = batch.end
        end = batch.end
    return bytearray().join((*pieces, view[start:end])) if pieces else data


def _is_abort(view: memoryview, batch: Batch) -> bool:
    """Whether a control batch ends an aborted transaction. No codec: brokers write it."""
    form = format_of(batch.magic)
    assert isinstance(form, RecordFormat)
    if batch.codec or not batch.record_count:
        return False
    key = next(form.records(view, batch, lambda _, value: value)).key
    return key is not None and len(key) >= KEY.size and KEY.unpack_from(key)[1] == ABORT
