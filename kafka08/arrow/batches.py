"""Arrow record batches out of fetched sets: the columns asked for, and no other work."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow as pa

from kafka08 import kernel
from kafka08.arrow.ranges import OffsetRange
from kafka08.consumer.fetched import FetchedSet
from kafka08.errors import InvalidMessage
from kafka08.protocol.message_set import fetched_unpacker

NO_TIMESTAMP_TYPE: Final = -1
BATCH_BYTES: Final = 2 << 20
"""Of keys and values in a batch. From here to Spark's row a batch is copied four times: small ones
stay in the caches, and the JVM takes memory for them from its pools, not from the system. At 8 MiB
a sum over messages of 1 KB costs half as much again."""


class BatchBuilder:
    """Makes batches of `schema` (an Arrow schema with columns of kafka08.spark.schema) for one
    range. A batch has at most 64 Ki rows and BATCH_BYTES of keys and values, or one message."""

    def __init__(self, schema: pa.Schema, wanted: OffsetRange) -> None:
        self._schema = schema
        self._wanted = wanted
        self._keys = "key" in schema.names
        self._values = "value" in schema.names
        self._constants: dict[str, pa.Array] = {}

    def batches(self, sets: Iterable[FetchedSet]) -> Iterator[pa.RecordBatch]:
        """The messages of `sets` that lie in the range, in order. InvalidMessage, naming partition
        and offset, for damage inside a message or inside a compressed set."""
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

    def _columns(self, fetched: FetchedSet) -> Iterator[kernel.Columns]:
        return kernel.column_batches(
            fetched.data,
            fetched.offset,
            self._wanted.until_offset,
            fetched_unpacker(fetched.max_bytes),
            self._keys,
            self._values,
            # The reader has checked the outer CRCs; those inside of wrappers are left.
            verify_crc=kernel.has_compressed(fetched.data),
            max_bytes=BATCH_BYTES,
        )

    def _batch(self, columns: kernel.Columns) -> pa.RecordBatch:
        arrays = [self._array(name, columns) for name in self._schema.names]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _array(self, name: str, columns: kernel.Columns) -> pa.Array:
        match name:
            case "offset":
                return pa.Array.from_buffers(
                    pa.int64(), columns.count, [None, pa.py_buffer(columns.offsets)]
                )
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
        return self._constant(name, columns.count)

    def _constant(self, name: str, count: int) -> pa.Array:
        """A column that is the same in every row: built once, as long as needed, and sliced."""
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
            case "timestampType":
                return NO_TIMESTAMP_TYPE
        return None


def _binary(count: int, validity: Any, offsets: Any, data: Any) -> pa.Array:
    buffers = [None if validity is None else pa.py_buffer(validity)]
    return pa.Array.from_buffers(
        pa.binary(), count, [*buffers, pa.py_buffer(offsets), pa.py_buffer(data)]
    )
