"""Many records in one call: cut into batches by their sizes alone.

Only the kernel and the interpreter's built-in loops touch single records, so this is several times
as fast as single sends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from kafka08 import kernel
from kafka08.errors import BufferExhausted, KafkaError, RecordTooLarge
from kafka08.kernel.types import EMPTY_ENTRY_BYTES, NO_TIMESTAMP
from kafka08.producer.accumulator import RecordAccumulator
from kafka08.producer.batch import RECORD_BYTES, RecordBatch, Times
from kafka08.producer.future import Stretch
from kafka08.producer.partition_queue import PartitionQueue
from kafka08.producer.topic_route import TopicRoute
from kafka08.protocol.types import Buffer
from kafka08.structs import TopicPartition

T = TypeVar("T")
Values = Sequence[bytes | None]
CutSet = Callable[[int, int, int], tuple[int, int]]
"""(start, batch bytes, bytes of an entry without key and value) → (end, bytes) of the longest set
of records [start, end) with at most these bytes, but at least one record."""
SendSet = Callable[[PartitionQueue, int, int, int], RecordBatch]
"""(queue, start, end, magic) → the batch of records [start, end)."""


class Bulk:
    """The batches of one call; collects the stretches for its future.

    After a stretch is refused for want of memory, the rest is refused too: otherwise the records of
    a partition would change their order. So it is after any other error, as of a close, if records
    were accepted before it: their results are in the future. `now_ms`: the time of records without
    a timestamp. `before`: called with the queue of each batch. `refuse`: returns the batch of
    records that are not accepted.
    """

    def __init__(
        self,
        accumulator: RecordAccumulator,
        *,
        batch_bytes: int,
        record_bytes_max: int,
        block_s: float,
        now_ms: int,
        before: Callable[[PartitionQueue], object] = lambda _: None,
        refuse: Callable[[TopicPartition, KafkaError], RecordBatch] = RecordBatch.failed,
    ) -> None:
        self._refuse = refuse
        self._before = before
        self._accumulator = accumulator
        self.now_ms = now_ms
        self._batch_bytes = batch_bytes
        self._record_bytes_max = record_bytes_max
        self._block_s = block_s
        self._refused: KafkaError | None = None
        self._has_accepted = False
        self.stretches: list[Stretch] = []

    def add_values(
        self,
        queues: Iterator[PartitionQueue],
        keys: Values | None,
        values: Values,
        places: Sequence[int] | None = None,
        timestamps: Sequence[int] | None = None,
    ) -> None:
        """Send consecutive records, each batch to the next of `queues`."""
        some_keys, some_values = None if keys is None else list_of(keys), list_of(values)

        def cut(start: int, batch_bytes: int, empty_bytes: int) -> tuple[int, int]:
            return kernel.end_of_batch(some_keys, some_values, start, batch_bytes, empty_bytes)

        def send(queue: PartitionQueue, start: int, end: int, magic: int) -> RecordBatch:
            times: Times = self.now_ms if timestamps is None else timestamps[start:end]
            data = kernel.build_from_lists(
                some_keys,
                some_values,
                start,
                end,
                magic=magic,
                timestamps=times if magic else None,
            )
            return self.append_set(queue, data, end - start, magic, times)

        self.add(queues, places if places is not None else range(len(values)), cut, send)

    def add(
        self,
        queues: Iterator[PartitionQueue],
        places: Sequence[int],
        cut: CutSet,
        send: SendSet,
    ) -> None:
        """Cut the records with these indexes in the call into batches."""
        start = 0
        while start < len(places):
            queue = next(queues)
            magic = queue.magic
            end, size = cut(start, self._batch_bytes, RECORD_BYTES[magic])
            batch = self._send(queue, start, end, magic, size, send)
            self.stretches.append(Stretch(batch, 0, places[start:end]))
            start = end

    def append_set(
        self, queue: PartitionQueue, data: Buffer, count: int, magic: int, times: Times
    ) -> RecordBatch:
        """Add a set of `count` records as a batch. BufferExhausted."""
        self._before(queue)
        return self._accumulator.append_set(
            queue,
            data,
            count,
            self._block_s,
            magic=magic,
            timestamps=times if magic else NO_TIMESTAMP,
        )

    def _send(
        self,
        queue: PartitionQueue,
        start: int,
        end: int,
        magic: int,
        size: int,
        send: SendSet,
    ) -> RecordBatch:
        if size > self._record_bytes_max:
            return self._refuse(queue.tp, too_large(size, self._record_bytes_max))
        if self._refused is not None:
            return self._refuse(queue.tp, self._refused)
        try:
            batch = send(queue, start, end, magic)
        except KafkaError as error:
            if not (isinstance(error, BufferExhausted) or self._has_accepted):
                raise
            self._refused = error
            return self._refuse(queue.tp, error)
        self._has_accepted = True
        return batch


def end_by_sums(
    ends: Sequence[int], first: int, last: int, start: int, batch_bytes: int, empty_bytes: int
) -> tuple[int, int]:
    """A CutSet for the records [first, last) of a column, by bisection; `ends[i]` is the size of
    keys and values up to the end of record i of the column."""
    start += first
    before = ends[start - 1] if start else 0
    low, high = start + 1, min(last, start + batch_bytes // empty_bytes + 1)
    while low < high:
        middle = (low + high + 1) // 2
        if ends[middle - 1] - before + empty_bytes * (middle - start) <= batch_bytes:
            low = middle
        else:
            high = middle - 1
    return low - first, ends[low - 1] - before + empty_bytes * (low - start)


def list_of(column: Sequence[T]) -> list[T]:
    """`column` itself if it is a list."""
    return column if isinstance(column, list) else list(column)


def by_partition(keys: Values, route: TopicRoute) -> dict[PartitionQueue, list[int]]:
    """Record indexes by the queue for their keys (no key: in turn)."""
    count = len(route.queues)
    groups = kernel.group_rows(kernel.key_partitions(keys, count))
    keyless = groups.pop(count, [])
    places = {route.queues[number]: rows for number, rows in groups.items()}
    for row in keyless:
        places.setdefault(next(route.turns), []).append(row)
    if keyless:
        for rows in places.values():
            # Those without a key came last: in the order of the call again.
            rows.sort()
    return places


def too_large(size: int, limit: int) -> RecordTooLarge:
    return RecordTooLarge(
        f"a record of {size} bytes, including {EMPTY_ENTRY_BYTES} bytes of header, is larger than "
        f"max.request.size or buffer.memory allow: {limit}"
    )


def as_bytes(value: object) -> bytes:
    """The bytes of a key or value, a copy unless it is `bytes` itself. TypeError."""
    if type(value) is bytes:
        return value
    if isinstance(value, bytes | bytearray) or (isinstance(value, memoryview) and value.contiguous):
        return bytes(value)
    raise TypeError(
        f"keys and values must be bytes, bytearray, a contiguous memoryview or None, not "
        f"{type(value).__name__}: configure a serializer"
    )
