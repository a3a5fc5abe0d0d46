"""Many records in one call: cut into batches by their sizes alone.

Only the kernel and the interpreter's built-in loops touch single records, so this is several times
as fast as single sends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, repeat

from kafka08 import kernel
from kafka08.errors import BufferExhausted, KafkaError, RecordTooLarge, UnknownTopicOrPartition
from kafka08.kernel.types import EMPTY_ENTRY_BYTES
from kafka08.producer.accumulator import PartitionQueue, RecordAccumulator
from kafka08.producer.batch import RecordBatch
from kafka08.producer.future import Stretch
from kafka08.producer.partitioners import partition_for_key
from kafka08.producer.topic_route import TopicRoute
from kafka08.structs import TopicPartition

Values = Sequence[bytes | None]


class Bulk:
    """The batches of one call; collects the stretches for its future.

    After a stretch is refused for want of memory, the rest is refused too: otherwise the records of
    a partition would change their order.
    """

    def __init__(
        self,
        accumulator: RecordAccumulator,
        *,
        batch_bytes: int,
        record_bytes_max: int,
        block_s: float,
    ) -> None:
        self._accumulator = accumulator
        self._batch_bytes = batch_bytes
        self._record_bytes_max = record_bytes_max
        self._block_s = block_s
        self._refused: KafkaError | None = None
        self.stretches: list[Stretch] = []

    def add_values(
        self,
        queues: Iterator[PartitionQueue],
        keys: Values | None,
        values: Values,
        places: Sequence[int] | None = None,
    ) -> None:
        """Send consecutive records, each batch to the next of `queues`."""
        ends = list(accumulate(map(_length, values)))
        if keys is not None:
            ends = [a + b for a, b in zip(ends, accumulate(map(_length, keys)), strict=True)]

        def send(queue: PartitionQueue, start: int, end: int, size: int) -> RecordBatch:
            some_keys = repeat(None) if keys is None else keys[start:end]
            data = kernel.build_set(zip(some_keys, values[start:end], strict=False))
            return self._accumulator.append_set(queue, data, end - start, self._block_s)

        self.add(queues, ends, places if places is not None else range(len(values)), send)

    def add(
        self,
        queues: Iterator[PartitionQueue],
        ends: Sequence[int],
        places: Sequence[int],
        send: Callable[[PartitionQueue, int, int, int], RecordBatch],
    ) -> None:
        """Cut records into batches; `ends[i]` is the size of keys and values up to record i's end.
        `send(queue, start, end, size)` creates the batch of records [start, end)."""
        start = 0
        while start < len(ends):
            end = batch_end(ends, start, self._batch_bytes)
            before = ends[start - 1] if start else 0
            size = ends[end - 1] - before + EMPTY_ENTRY_BYTES * (end - start)
            queue = next(queues)
            batch = self._send(queue, start, end, size, send)
            self.stretches.append(Stretch(batch, 0, places[start:end]))
            start = end

    def _send(
        self,
        queue: PartitionQueue,
        start: int,
        end: int,
        size: int,
        send: Callable[[PartitionQueue, int, int, int], RecordBatch],
    ) -> RecordBatch:
        if size > self._record_bytes_max:
            return RecordBatch.failed(queue.tp, too_large(size, self._record_bytes_max))
        if self._refused is not None:
            return RecordBatch.failed(queue.tp, self._refused)
        try:
            return send(queue, start, end, size)
        except BufferExhausted as error:
            self._refused = error
            return RecordBatch.failed(queue.tp, error)


def batch_end(ends: Sequence[int], start: int, batch_bytes: int) -> int:
    """The end of the longest batch that starts with record `start`: at least one record."""
    before = ends[start - 1] if start else 0
    low, high = start + 1, min(len(ends), start + batch_bytes // EMPTY_ENTRY_BYTES + 1)
    while low < high:
        middle = (low + high + 1) // 2
        if ends[middle - 1] - before + EMPTY_ENTRY_BYTES * (middle - start) <= batch_bytes:
            low = middle
        else:
            high = middle - 1
    return low


def by_partition(keys: Values, route: TopicRoute) -> dict[PartitionQueue, list[int]]:
    """Record indexes by the queue for their keys (no key: in turn)."""
    places: dict[PartitionQueue, list[int]] = {}
    queues, count = route.queues, len(route.queues)
    for place, key in enumerate(keys):
        queue = next(route.turns) if key is None else queues[partition_for_key(key, count)]
        places.setdefault(queue, []).append(place)
    return places


def queue_of(route: TopicRoute, topic: str, partition: int) -> PartitionQueue:
    """The queue of a partition by its number; UnknownTopicOrPartition."""
    for info, queue in zip(route.partitions, route.queues, strict=True):
        if info.partition == partition:
            return queue
    raise UnknownTopicOrPartition(
        f"{TopicPartition(topic, partition)}: the topic has {len(route.partitions)} partitions"
    )


def too_large(size: int, limit: int) -> RecordTooLarge:
    return RecordTooLarge(
        f"a record of {size} bytes, including {EMPTY_ENTRY_BYTES} bytes of header, is larger than "
        f"max.request.size or buffer.memory allow: {limit}"
    )


def as_bytes(value: object) -> bytes:
    """The bytes of a key or value, a copy unless it is `bytes` itself. TypeError."""
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise TypeError(
        f"keys and values must be bytes, not {type(value).__name__}: configure a serializer"
    )


def _length(value: bytes | None) -> int:
    return 0 if value is None else len(value)
