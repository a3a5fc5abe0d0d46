"""Batches: many messages of one partition as columns, without an object for each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from kafka08.extras import naming_extra
from kafka08.kernel import Columns
from kafka08.kernel.types import DEFAULT_MAX_COLUMN_BYTES, DEFAULT_MAX_ROWS
from kafka08.protocol.types import Buffer
from kafka08.structs import TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa


class BatchLimits(NamedTuple):
    """The limits of one batch: the number of messages, and the bytes of their keys and values (a
    single message may have more)."""

    max_messages: int = DEFAULT_MAX_ROWS
    max_bytes: int = DEFAULT_MAX_COLUMN_BYTES

    def check(self) -> None:
        """ValueError for limits that no batch can keep."""
        if self.max_messages < 1 or self.max_bytes < 0:
            raise ValueError(f"{self}: at least one message, and no less than 0 bytes")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MessageBatch:
    """Messages of one partition in the order of their offsets, at least one.

    columns   offsets, keys and values as Arrow buffers, in the processor's byte order
    """

    topic_partition: TopicPartition
    columns: Columns

    def __len__(self) -> int:
        return self.columns.count

    def __repr__(self) -> str:
        return (
            f"<MessageBatch {self.topic_partition}: {len(self)} messages, "
            f"offsets {self.first_offset} to {self.last_offset}>"
        )

    @property
    def topic(self) -> str:
        return self.topic_partition.topic

    @property
    def partition(self) -> int:
        return self.topic_partition.partition

    @property
    def first_offset(self) -> int:
        return self.offsets[0]

    @property
    def last_offset(self) -> int:
        return self.offsets[-1]

    @property
    def offsets(self) -> memoryview[int]:
        """The offset of each message. Compaction leaves gaps."""
        return memoryview(self.columns.offsets).cast("B").cast("q")

    @property
    def timestamps(self) -> memoryview[int] | None:
        """The time of each message in ms, -1 for none. None if timestamps were not requested, as by
        a consumer of 0.8, whose messages have none."""
        column = self.columns.timestamps
        return None if column is None else memoryview(column).cast("B").cast("q")

    def keys(self) -> list[bytes | None]:
        """The key of each message, None for null; a new list at each call."""
        columns = self.columns
        return _rows(columns.key_offsets, columns.key_data, columns.key_validity)

    def values(self) -> list[bytes | None]:
        """The value of each message, None for null; a new list at each call."""
        columns = self.columns
        return _rows(columns.value_offsets, columns.value_data, columns.value_validity)

    def to_arrow(self) -> pa.RecordBatch:
        """A record batch with the columns offset (int64), key and value (binary), and timestamp
        (int64) if there are timestamps. It shares this batch's memory. Without
        pyarrow ModuleNotFoundError, with the extra that has it."""
        with naming_extra("MessageBatch.to_arrow"):
            import pyarrow as pa

        columns, count = self.columns, len(self)
        keys = (columns.key_validity, columns.key_offsets, columns.key_data)
        values = (columns.value_validity, columns.value_offsets, columns.value_data)
        offsets = pa.Array.from_buffers(pa.int64(), count, [None, pa.py_buffer(columns.offsets)])
        arrays = [offsets]
        for column in (keys, values):
            buffers = [None if part is None else pa.py_buffer(part) for part in column]
            arrays.append(pa.Array.from_buffers(pa.binary(), count, buffers))
        names = ["offset", "key", "value"]
        if columns.timestamps is not None:
            names.append("timestamp")
            times = [None, pa.py_buffer(columns.timestamps)]
            arrays.append(pa.Array.from_buffers(pa.int64(), count, times))
        return pa.RecordBatch.from_arrays(arrays, names=names)


class Batches:
    """Iterator over the batches of a stream; raises what the stream raises. Keeps `owner` alive."""

    def __init__(self, take: Callable[[], MessageBatch], owner: object = None) -> None:
        self._take = take
        self._owner = owner

    def __iter__(self) -> Batches:
        return self

    def __next__(self) -> MessageBatch:
        return self._take()


def _rows(
    offsets: Buffer | None, data: Buffer | None, validity: Buffer | None
) -> list[bytes | None]:
    """The values of an Arrow `binary` column."""
    assert offsets is not None, "the column was requested"
    assert data is not None, "a column has data, though it may be empty"
    ends = memoryview(offsets).cast("B").cast("i").tolist()
    text = bytes(data)
    rows: list[bytes | None] = [text[start:end] for start, end in pairwise(ends)]
    if validity is not None:
        bits = bytes(validity)
        for row in range(len(rows)):
            if not bits[row >> 3] & (1 << (row & 7)):
                rows[row] = None
    return rows
