"""Which batches of a fetched set a reader of committed messages gets. Pure.

The broker ends the set before the first open transaction, and names the aborted ones in it: batches
of such a producer are left out from the transaction's first offset to its marker. Source:
org.apache.kafka.clients.consumer.internals.Fetcher.PartitionRecords 0.11.0.3.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter

from kafka08.format import Batch, RecordFormat, batches, format_of
from kafka08.format.control import ABORT, KEY
from kafka08.protocol.fetch import AbortedTransaction
from kafka08.protocol.types import Buffer


def committed(data: Buffer, aborted: Iterable[AbortedTransaction]) -> Buffer:
    """`data`, which was checked, without the messages of these transactions."""
    view = memoryview(data)
    coming = sorted(aborted, key=attrgetter("first_offset"), reverse=True)
    open_ids: set[int] = set()
    pieces: list[memoryview] = []
    start = end = 0
    for batch in batches(view):
        while coming and coming[-1].first_offset <= batch.last_offset:
            open_ids.add(coming.pop().producer_id)
        if batch.is_control and is_abort(view, batch):
            open_ids.discard(batch.producer_id)
        elif batch.is_transactional and batch.producer_id in open_ids and not batch.is_control:
            pieces.append(view[start : batch.position])
            start = batch.end
        end = batch.end
    return b"".join((*pieces, view[start:end])) if pieces else data


def is_abort(view: memoryview, batch: Batch) -> bool:
    """Whether a control batch ends an aborted transaction. No codec: brokers write it."""
    form = format_of(batch.magic)
    assert isinstance(form, RecordFormat)
    if batch.codec or not batch.record_count:
        return False
    key = next(form.records(view, batch, lambda _, value: value)).key
    return key is not None and len(key) >= KEY.size and KEY.unpack_from(key)[1] == ABORT
