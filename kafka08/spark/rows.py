"""Splits the rows of a write, Arrow batches, by topic and partition, and builds message sets.

Arrow or the kernel does all work per row; only distinct keys are hashed one by one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from kafka08 import kernel
from kafka08.errors import ConfigError
from kafka08.hashing import java_bytes_hash, masked_partition_of, partition_of
from kafka08.kernel.types import EMPTY_ENTRY_BYTES, NO_TIMESTAMP, TIMESTAMP_BYTES
from kafka08.protocol import compression
from kafka08.protocol.header_columns import encoded_headers
from kafka08.protocol.message_set import pack
from kafka08.spark.write_options import MURMUR2
from kafka08.structs import TopicPartition

PartitionCount = Callable[[str], int]
MILLISECONDS: Final = pa.timestamp("ms", tz="UTC")


class Rows(NamedTuple):
    """Rows of one partition in columns, none of them a slice.

    keys, values   binary
    times          int64, milliseconds since 1970; None: there is no such column
    headers        binary, as records have them; None: there are none
    """

    keys: pa.Array
    values: pa.Array
    times: pa.Array | None
    headers: pa.Array | None = None


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
        left = chosen.null_count
        in_turn = [(self._next + number) % count for number in range(left)]
        self._next = (self._next + left) % count
        return pc.replace_with_mask(chosen, pc.is_null(chosen), pa.array(in_turn, pa.int32()))


def by_partition(
    batch: pa.RecordBatch,
    topic: str | None,
    partitioner: Partitioner,
    count_of: PartitionCount,
    *,
    keeps_times: bool = False,
) -> Iterator[tuple[TopicPartition, Rows]]:
    """The rows of a batch by partition, in their order within each.

    topic        for all rows; None: from their column
    count_of     topic → its number of partitions
    keeps_times  rows have the times of the column timestamp; else it counts as absent
    ConfigError for a row without a topic, with a header without a name, with a time before 1970,
    or with a partition that does not exist.
    """
    columns = {name: batch.column(name) for name in batch.schema.names}
    try:
        headers = encoded_headers(columns["headers"]) if "headers" in columns else None
    except (TypeError, ValueError) as error:
        raise ConfigError(f"headers: {error}") from error
    values = columns["value"].cast(pa.binary())
    given_keys = columns.get("key")
    keys = (
        pa.nulls(len(values), pa.binary()) if given_keys is None else given_keys.cast(pa.binary())
    )
    partitions = columns.get("partition")
    times = _milliseconds(columns.get("timestamp") if keeps_times else None)
    for name, rows in _by_topic(columns.get("topic"), topic, len(values)):
        of_topic = Rows(*_taken((keys, values, times, headers), rows))
        count = count_of(name)
        given = None if partitions is None else partitions.take(rows)
        chosen = partitioner.partitions(of_topic.keys, given, count)
        for partition in chosen.unique().to_pylist():
            if not 0 <= partition < count:
                raise ConfigError(
                    f"partition {partition} of topic {name}, which has 0 to {count - 1}"
                )
            at = pc.indices_nonzero(pc.equal(chosen, partition))
            yield TopicPartition(name, partition), Rows(*_taken(of_topic, at))


def _taken(columns: tuple[pa.Array | None, ...], rows: pa.Array) -> Iterator[pa.Array | None]:
    """The rows with these numbers of each column."""
    return (None if column is None else column.take(rows) for column in columns)


def _milliseconds(column: pa.Array | None) -> pa.Array | None:
    """A column of Spark's timestamps, which have microseconds, as int64. ConfigError for a time
    before 1970, which the Java producer rejects, too."""
    if column is None:
        return None
    times = column.cast(MILLISECONDS, safe=False).cast(pa.int64())
    first = pc.min(times).as_py()
    if first is not None and first < 0:
        raise ConfigError(f"timestamp: {first} ms in a row; a message has none before 1970")
    return times


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


class SetQueue:
    """The rows of a partition, which leave as message sets, in order. It builds each set when the
    leader is known, because older ones take messages without timestamps only (magic 0).

    batch_bytes  limit of a set before compression; a larger message is a set of its own
    sent_ms      timestamp of rows that have none
    """

    def __init__(self, rows: Rows, batch_bytes: int, codec: int, sent_ms: int) -> None:
        self._rows = rows
        self._batch_bytes = batch_bytes
        self._codec = codec
        self._sent_ms = sent_ms
        self._start = 0
        self._keys = _buffers(rows.keys)
        self._values = _buffers(rows.values)
        headers = rows.headers
        ends = None if headers is None else _offsets(headers)
        self._headers = headers if ends is not None and ends[-1] else None
        self._times: pa.Array | None = None
        self._built: dict[int, tuple[bytearray, int]] = {}
        """Magic → the next set, kept until it is acknowledged."""

    def __bool__(self) -> bool:
        """Whether rows are left."""
        return self._start < len(self._rows.values)

    def next_set(self, magic: int) -> tuple[bytearray, int]:
        """(message set, count) of the next rows; the same again until `advance`."""
        if magic not in self._built:
            self._built[magic] = self._build(magic)
        return self._built[magic]

    @property
    def has_headers(self) -> bool:
        """Whether a row has some."""
        return self._headers is not None

    def advance(self, count: int) -> None:
        """The next `count` rows are acknowledged."""
        self._start += count
        self._built.clear()

    def _build(self, magic: int) -> tuple[bytearray, int]:
        start, count = self._start, self._next_count(magic)
        times, last_ms = self._stamps(start, count) if magic else (None, NO_TIMESTAMP)
        columns = (*self._keys, *self._values)
        headers = _buffers(self._headers)[:2] if self._headers is not None else (None, None)
        entries = kernel.build_from_columns(*columns, count, 0, start, magic, times, *headers)
        if self._codec == compression.NONE:
            return entries, count
        return pack(entries, self._codec, count - 1, magic, last_ms), count

    def _stamps(self, start: int, count: int) -> tuple[memoryview, int]:
        """(timestamps of all rows as i64, the largest of these)."""
        if self._times is None:
            given, sent_ms = self._rows.times, pa.scalar(self._sent_ms, pa.int64())
            self._times = (
                pa.repeat(sent_ms, len(self._rows.values))
                if given is None
                else given.fill_null(sent_ms)
            )
        last_ms: int = pc.max(self._times.slice(start, count)).as_py()
        return memoryview(self._times.buffers()[1]), last_ms

    def _next_count(self, magic: int) -> int:
        """How many rows the next set has."""
        columns = (self._rows.keys, self._rows.values, self._headers)
        ends = [_offsets(column) for column in columns if column is not None]
        empty_bytes = EMPTY_ENTRY_BYTES + (TIMESTAMP_BYTES if magic else 0)

        def bytes_before(row: int) -> int:
            return empty_bytes * row + sum(offsets[row] for offsets in ends if offsets is not None)

        limit = bytes_before(self._start) + self._batch_bytes
        rows = range(len(self._rows.values) + 1)
        end = bisect_right(rows, limit, lo=self._start, key=bytes_before) - 1
        return max(end - self._start, 1)


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
