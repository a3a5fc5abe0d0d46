"""Splits the rows of a write, Arrow batches, by topic and partition, and encodes message sets.

Arrow or the kernel does all work per row; only distinct keys are hashed one by one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kafka08 import kernel
from kafka08.errors import ConfigError
from kafka08.hashing import java_bytes_hash, masked_partition_of, partition_of
from kafka08.kernel.types import EMPTY_ENTRY_BYTES
from kafka08.protocol import compression
from kafka08.spark.write_options import MURMUR2
from kafka08.structs import TopicPartition

PartitionCount = Callable[[str], int]


class Partitioner:
    """Chooses the partition of each row: the partition column; else the hash of the key; rows
    without either go to the partitions in turn (round robin).

    # 0.8: the old partitioners use abs, the new producer drops the sign.
    """

    def __init__(self, hash_name: str, first: int = 0) -> None:
        self._hash_name = hash_name
        self._next = first

    def partition(self, key: bytes, partitions: int) -> int:
        if self._hash_name == MURMUR2:
            return masked_partition_of(kernel.murmur2(key), partitions)
        return partition_of(java_bytes_hash(key), partitions)

    def partitions(self, keys: pa.Array, given: pa.Array | None, count: int) -> pa.Array:
        """The partition of each row of one topic with `count` partitions."""
        encoded = keys.dictionary_encode()
        hashed = [self.partition(key.as_py(), count) for key in encoded.dictionary]
        chosen = pa.array(hashed, pa.int32()).take(encoded.indices)
        if given is not None:
            chosen = pc.coalesce(given, chosen)
        if not chosen.null_count:
            return chosen
        in_turn = [(self._next + row) % count for row in range(len(keys))]
        self._next = (self._next + len(keys)) % count
        return pc.coalesce(chosen, pa.array(in_turn, pa.int32()))


def by_partition(
    batch: pa.RecordBatch, topic: str | None, partitioner: Partitioner, count_of: PartitionCount
) -> Iterator[tuple[TopicPartition, pa.Array, pa.Array]]:
    """(partition, keys, values) of the rows of a batch, in their order within each partition.

    topic     for all rows; None: from their column
    count_of  topic → its number of partitions
    ConfigError for a row without a topic, with a header, or with a partition that does not exist.
    """
    columns = {name: batch.column(name) for name in batch.schema.names}
    headers = columns.get("headers")
    if headers is not None and headers.null_count < len(headers):
        raise ConfigError("headers: messages of 0.8 have none; leave the column out or null")
    values = columns["value"].cast(pa.binary())
    given_keys = columns.get("key")
    keys = (
        pa.nulls(len(values), pa.binary()) if given_keys is None else given_keys.cast(pa.binary())
    )
    partitions = columns.get("partition")
    for name, rows in _by_topic(columns.get("topic"), topic, len(values)):
        of_topic = [None if c is None else c.take(rows) for c in (keys, values, partitions)]
        count = count_of(name)
        chosen = partitioner.partitions(of_topic[0], of_topic[2], count)
        for partition in chosen.unique().to_pylist():
            if not 0 <= partition < count:
                raise ConfigError(
                    f"partition {partition} of topic {name}, which has 0 to {count - 1}"
                )
            at = pc.indices_nonzero(pc.equal(chosen, partition))
            assert of_topic[0] is not None
            assert of_topic[1] is not None
            yield TopicPartition(name, partition), of_topic[0].take(at), of_topic[1].take(at)


def _by_topic(
    column: pa.Array | None, topic: str | None, count: int
) -> Iterator[tuple[str, pa.Array]]:
    """(topic, numbers of its rows)."""
    if topic is not None:
        yield topic, pa.array(range(count), pa.int64())
        return
    assert column is not None, "the schema was checked"
    if column.null_count:
        raise ConfigError("topic: null in a row; every row needs one, or set the option topic")
    for name in column.unique().to_pylist():
        yield name, pc.indices_nonzero(pc.equal(column, name))


def message_sets(
    keys: pa.Array, values: pa.Array, batch_bytes: int, codec: int
) -> Iterator[tuple[bytes | bytearray, int]]:
    """(message set, count) of rows in order; a set has at most `batch_bytes` before compression,
    or a single message."""
    buffers = (*_buffers(keys), *_buffers(values))
    for start, count in _cuts(keys, values, batch_bytes):
        entries = kernel.build_from_columns(*buffers, count, 0, start)
        if codec == compression.NONE:
            yield entries, count
        else:
            yield kernel.wrap(compression.compress(codec, entries), count - 1, codec), count


def _cuts(keys: pa.Array, values: pa.Array, batch_bytes: int) -> Iterator[tuple[int, int]]:
    """(first row, count) of each set."""
    ends = [_offsets(column) for column in (keys, values)]

    def bytes_before(row: int) -> int:
        return EMPTY_ENTRY_BYTES * row + sum(
            offsets[row] for offsets in ends if offsets is not None
        )

    start, total = 0, len(values)
    while start < total:
        limit = bytes_before(start) + batch_bytes
        end = bisect_right(range(total + 1), limit, lo=start, key=bytes_before) - 1
        end = max(end, start + 1)
        yield start, end - start
        start = end


def _offsets(column: pa.Array) -> memoryview | None:
    """Arrow's offsets of a taken (unsliced) binary column; None if there are none."""
    buffer = column.buffers()[1]
    return None if buffer is None else memoryview(buffer).cast("B").cast("i")


def _buffers(column: pa.Array) -> tuple[Any, Any, Any]:
    """(offsets, data, validity) as the kernel takes them; a column of nulls has none."""
    assert column.offset == 0, "take makes arrays of their own"
    if column.null_count == len(column):
        return None, None, None
    validity, offsets, data = column.buffers()
    return tuple(None if b is None else memoryview(b) for b in (offsets, data, validity))  # type: ignore[return-value]


def counts_text(counts: Mapping[str, tuple[int, int]]) -> str:
    """`t: 10 messages, 200 bytes; …`, for logs."""
    return "; ".join(
        f"{topic}: {messages} messages, {size} bytes"
        for topic, (messages, size) in sorted(counts.items())
    )
