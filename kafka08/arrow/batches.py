"""Arrow record batches from fetched sets: decodes only the requested columns."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa

from kafka08 import kernel
from kafka08.arrow.checked_set import CheckedSet
from kafka08.arrow.large_message import large_value
from kafka08.arrow.ranges import OffsetRange
from kafka08.errors import ConfigError, InvalidMessage
from kafka08.protocol.message_set import fetched_unpacker

MILLISECONDS: Final = pa.timestamp("ms", tz="UTC")
BATCH_BYTES: Final = 2 << 20
"""Bytes of keys and values in a batch, which is copied several times on its way to Spark's rows.
Small batches stay in the processor's caches, and the JVM has memory for them in its pools. With
8 MiB, a sum over messages of 1 KB costs half as much again."""


class BatchBuilder:
    """Makes batches of `schema` (an Arrow schema with columns of kafka08.spark.schema) for one
    range. A batch has at most 64 Ki rows and BATCH_BYTES of keys and values, or one message.

    in_place   values stay in the memory of the fetched set, moved together: no copy, and no memory
               for them; but a batch that is kept keeps all of the set's. For batches that are
               written and forgotten
    """

    def __init__(self, schema: pa.Schema, wanted: OffsetRange, *, in_place: bool = False) -> None:
        self._schema = schema
        self._wanted = wanted
        self._in_place = in_place
        self._keys = "key" in schema.names
        self._values = "value" in schema.names
        self._timestamps = "timestamp" in schema.names
        self._timestamp_types = "timestampType" in schema.names
        self._headers = "headers" in schema.names
        self._constants: dict[str, pa.Array] = {}
        self._required = [field.name for field in schema if not field.nullable]

    def batches(self, sets: Iterable[CheckedSet]) -> Iterator[pa.RecordBatch]:
        """Yields batches of the messages of `sets` in the range, in order. InvalidMessage, naming
        partition and offset, for damage inside a message or a compressed set; ConfigError for a
        null where the schema has none."""
        for fetched in sets:
            try:
                for columns in self._columns(fetched):
                    if columns.count:
                        yield self._batch(columns)
            except kernel.CorruptMessage as damage:
                raise InvalidMessage(
                    f"{fetched.topic_partition} at {fetched.source}, offset {damage.offset}: "
                    f"{damage}"
                ) from damage

    def _columns(self, fetched: CheckedSet) -> Iterator[kernel.Columns]:
        value = None
        if self._values and not fetched.has_wrappers:
            value = large_value(fetched.data)
        if value is None:
            return self._copied(fetched, self._values)
        # A single message: one batch, of one row at most.
        offsets = array("i", [0, len(value)]).tobytes()
        return (
            replace(columns, value_offsets=offsets, value_data=value)
            for columns in self._copied(fetched, values=False)
        )

    def _copied(self, fetched: CheckedSet, values: bool) -> Iterator[kernel.Columns]:
        return kernel.column_batches(
            fetched.data,
            fetched.offset,
            self._wanted.until_offset,
            fetched_unpacker(fetched.max_bytes),
            self._keys,
            values,
            verify_crc=not fetched.is_verified,
            max_bytes=BATCH_BYTES,
            timestamps=self._timestamps,
            timestamp_types=self._timestamp_types,
            in_place=self._in_place and not fetched.has_wrappers,
            headers=self._headers,
        )

    def _batch(self, columns: kernel.Columns) -> pa.RecordBatch:
        arrays = [self._array(name, columns) for name in self._schema.names]
        batch = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        for name in self._required:
            self._check_present(name, batch.column(name), columns)
        return batch

    def _check_present(self, name: str, array: pa.Array, columns: kernel.Columns) -> None:
        """ConfigError, with the first offset, if the column has a null: Spark would fail without a
        reason."""
        if array.null_count:
            row = array.is_null().index(pa.scalar(True)).as_py()
            offset = memoryview(columns.offsets).cast("B").cast("q")[row]
            raise ConfigError(
                f"schema: {name} is NOT NULL, but null in {self._wanted.topic_partition} at offset "
                f"{offset}: leave NOT NULL out"
            )

    def _array(self, name: str, columns: kernel.Columns) -> pa.Array:
        match name:
            case "offset":
                return _numbers(pa.int64(), columns.count, columns.offsets)
            case "timestamp":
                return self._times(columns)
            case "timestampType":
                return _numbers(pa.int32(), columns.count, columns.timestamp_types)
            case "key":
                return _binary(
                    columns.count, columns.key_validity, columns.key_offsets, columns.key_data
                )
            case "value":
                return _binary(
                    columns.count,
                    columns.value_validity,
                    columns.value_offsets,
                    columns.value_data,
                )
            case "headers" if columns.header_data:
                return _lists(columns, self._schema.field(name).type)
        return self._constant(name, columns.count)

    def _times(self, columns: kernel.Columns) -> pa.Array:
        """Null where a message has none. InvalidMessage for one that the column cannot hold."""
        kind = self._schema.field("timestamp").type
        validity, count = columns.timestamp_validity, columns.count
        times = _numbers(MILLISECONDS, count, columns.timestamps, validity)
        if times.null_count == count:  # as at level 0.8.2: spare pyarrow.compute, 30 ms of imports
            return self._constant("timestamp", count)
        if times.type == kind:
            return times
        try:
            return times.cast(kind)
        except pa.ArrowInvalid as error:
            first = memoryview(columns.offsets).cast("B").cast("q")[0]
            raise InvalidMessage(
                f"{self._wanted.topic_partition}, at offset {first} or behind it: {error}. Leave "
                "the column timestamp out: .schema('key binary, value binary, ...')"
            ) from error

    def _constant(self, name: str, count: int) -> pa.Array:
        """A column with the same value in every row: built once, as long as needed, then sliced."""
        built = self._constants.get(name)
        if built is None or len(built) < count:
            kind = self._schema.field(name).type
            built = self._constants[name] = pa.repeat(pa.scalar(self._value(name), kind), count)
        return built.slice(0, count)

    def _value(self, name: str) -> object:
        match name:
            case "topic":
                return self._wanted.topic
            case "partition":
                return self._wanted.partition
        return None


def _numbers(kind: pa.DataType, count: int, data: Any, validity: Any = None) -> pa.Array:
    buffers = [None if validity is None else pa.py_buffer(validity), pa.py_buffer(data)]
    return pa.Array.from_buffers(kind, count, buffers)


def _binary(count: int, validity: Any, offsets: Any, data: Any) -> pa.Array:
    buffers = [None if validity is None else pa.py_buffer(validity)]
    return pa.Array.from_buffers(
        pa.binary(), count, [*buffers, pa.py_buffer(offsets), pa.py_buffer(data)]
    )


def _lists(columns: kernel.Columns, kind: pa.ListType) -> pa.Array:
    """The headers of rows, some of which have some, as `kind`: HEADERS by other names."""
    assert columns.header_offsets is not None
    assert columns.header_data is not None
    lists = kernel.header_lists(columns.header_offsets, columns.header_data, columns.count)
    names = _binary(lists.count, None, lists.name_offsets, lists.name_data)
    try:
        names = names.cast(pa.string())
    except pa.ArrowInvalid:
        # A name that is not UTF-8, as a client in C may send: what KafkaConsumer makes of it.
        names = pa.array([name.decode("utf-8", "replace") for name in names.to_pylist()])
    values = _binary(lists.count, lists.value_validity, lists.value_offsets, lists.value_data)
    pairs = pa.Array.from_buffers(kind.value_type, lists.count, [None], children=[names, values])
    validity = columns.header_validity
    buffers = [None if validity is None else pa.py_buffer(validity)]
    buffers.append(pa.py_buffer(lists.list_offsets))
    return pa.Array.from_buffers(kind, columns.count, buffers, children=[pairs])
