"""Converts message sets to Arrow buffers, and Arrow buffers to message sets (twin).

Layout: Arrow's columnar format for `binary` (i32 offsets, bytes, validity bitmap with the lowest
bit first), without importing Arrow.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kafka08.format import Batch, Message, RecordFormat
from kafka08.format.v2 import V2, encoded_headers
from kafka08.kernel._python_builder import build_records
from kafka08.kernel._python_messages import DeepWalk, Frame, Records, after
from kafka08.kernel._python_sets import (
    append_entry,
    check_base_offset,
    check_magic,
    check_timestamps,
)
from kafka08.kernel.types import (
    DEFAULT_MAX_COLUMN_BYTES,
    DEFAULT_MAX_ROWS,
    MAX_SET_BYTES,
    NO_TIMESTAMP,
    Buffer,
    Columns,
    Decompress,
    UnknownCodec,
)


class FlatWalk(DeepWalk):
    """A walk that opens no wrapper and no batch of records."""

    def _unpack(
        self, view: memoryview, at: int, codec: int, offset: int, value: memoryview | None
    ) -> Frame:
        raise UnknownCodec(codec)

    def _open(self, form: RecordFormat, view: memoryview, batch: Batch) -> Records:
        raise UnknownCodec(batch.codec)


class BinaryColumn:
    """An Arrow `binary` column that grows row by row."""

    def __init__(self) -> None:
        self.offsets = array("i", [0])
        self.data = bytearray()
        self._nulls: list[int] = []

    def append(self, field: memoryview | None) -> None:
        if field is None:
            self._nulls.append(len(self.offsets) - 1)
        else:
            self.data += field
        self.offsets.append(len(self.data))

    def validity(self) -> bytearray | None:
        """The bitmap; None if no row is null."""
        return validity(len(self.offsets) - 1, self._nulls)

    def buffers(self) -> tuple[bytes, bytearray, bytearray | None]:
        """Offsets, data and validity."""
        return self.offsets.tobytes(), self.data, self.validity()


def validity(count: int, nulls: Sequence[int]) -> bytearray | None:
    """Arrow's validity bitmap of `count` rows; None if none of them is null."""
    if not nulls:
        return None
    bits = bytearray(b"\xff" * ((count + 7) // 8))
    for row in nulls:
        bits[row >> 3] &= ~(1 << (row & 7))
    return bits


def column_batches(
    data: Buffer,
    from_offset: int,
    until_offset: int | None,
    decompress: Decompress,
    keys: bool = True,
    values: bool = True,
    verify_crc: bool = True,
    max_rows: int = DEFAULT_MAX_ROWS,
    max_bytes: int = DEFAULT_MAX_COLUMN_BYTES,
    timestamps: bool = False,
    timestamp_types: bool = False,
    in_place: bool = False,
    headers: bool = False,
) -> Iterator[Columns]:
    """The messages of `messages`, in batches of at most `max_rows` rows and `max_bytes` of keys,
    values and headers (a single row may be larger).

    Yields at least one batch, which may be empty; the last one has more=False. A wrapper is
    decompressed once, even if a batch ends inside it. Errors as `messages`: the rows before the
    error come first, with more=True, and the next batch raises.

    in_place   the caller gives `data` up: it may be overwritten up to the end of a batch, whose
               values are a view of it then. ValueError if it is read-only, UnknownCodec at a
               wrapper. (This twin copies.)
    """
    check_limits(max_rows, max_bytes)
    if in_place and values and memoryview(data).readonly:
        raise ValueError("values cannot be moved in read-only data")
    kind_of_walk = FlatWalk if in_place and values else DeepWalk
    walk = kind_of_walk(data, from_offset, until_offset, decompress, verify_crc)
    wanted = Wanted(keys, values, headers, timestamps, timestamp_types)
    return _batches(walk, wanted, max_rows, max_bytes)


def check_limits(max_rows: int, max_bytes: int) -> None:
    if not 1 <= max_rows <= MAX_SET_BYTES:
        raise ValueError(f"max_rows must be from 1 to {MAX_SET_BYTES}, not {max_rows}")
    if not 0 <= max_bytes <= MAX_SET_BYTES:
        raise ValueError(f"max_bytes must be from 0 to {MAX_SET_BYTES}, not {max_bytes}")


class Wanted(NamedTuple):
    """The columns that a caller wants."""

    keys: bool
    values: bool
    headers: bool
    timestamps: bool
    timestamp_types: bool


def _batches(walk: DeepWalk, wanted: Wanted, max_rows: int, max_bytes: int) -> Iterator[Columns]:
    row, error = _next_row(walk)
    while True:
        offsets = array("q")
        times = array("q") if wanted.timestamps else None
        types = array("i") if wanted.timestamp_types else None
        columns = [BinaryColumn() if one else None for one in wanted[:3]]
        size = 0
        while row is not None:
            fields = _fields(row)
            size += sum(
                len(field)
                for column, field in zip(columns, fields, strict=True)
                if column is not None and field is not None
            )
            if offsets and (len(offsets) >= max_rows or size > max_bytes):
                break
            offsets.append(row.offset)
            if times is not None:
                times.append(row.timestamp_ms)
            if types is not None:
                types.append(row.timestamp_type)
            for column, field in zip(columns, fields, strict=True):
                if column is not None:
                    column.append(field)
            row, error = _next_row(walk)
        if error is not None and not offsets:
            raise error
        more = row is not None or error is not None
        next_offset = after(offsets[-1]) if more else walk.next_offset
        yield _finish(offsets, columns, next_offset, more, times, types)
        if not more:
            return


def _fields(row: Message) -> tuple[memoryview | None, memoryview | None, memoryview | None]:
    headers = memoryview(encoded_headers(row.headers)) if row.headers else None
    return row.key, row.value, headers


def _next_row(walk: DeepWalk) -> tuple[Message | None, ValueError | None]:
    try:
        return walk.next(), None
    except ValueError as error:
        return None, error


def _finish(
    offsets: array[int],
    columns: list[BinaryColumn | None],
    next_offset: int,
    more: bool,
    times: array[int] | None,
    types: array[int] | None,
) -> Columns:
    key, value, headers = map(_buffers, columns)
    stamps = None if times is None else times.tobytes()
    untimed = None if times is None else validity(len(times), _untimed(times))
    of_types = None if types is None else types.tobytes()
    ends = len(offsets), offsets.tobytes()
    return Columns(*ends, *key, *value, next_offset, more, stamps, untimed, of_types, *headers)


def _buffers(
    column: BinaryColumn | None,
) -> tuple[bytes | None, bytearray | None, bytearray | None]:
    return (None, None, None) if column is None else column.buffers()


def _untimed(times: array[int]) -> list[int]:
    """The rows without a timestamp."""
    return [row for row, time_ms in enumerate(times) if time_ms == NO_TIMESTAMP]


class BinaryRows:
    """Read access to an Arrow `binary` column; checks all sizes before it reads."""

    def __init__(
        self,
        offsets: Buffer | None,
        data: Buffer | None,
        validity: Buffer | None,
        start: int,
        rows: int,
    ) -> None:
        self._offsets = None if offsets is None else memoryview(offsets).cast("B").cast("i")
        self._data = memoryview(b"" if data is None else data).cast("B")
        self._validity = None if validity is None else memoryview(validity).cast("B")
        if self._offsets is not None and len(self._offsets) < start + rows + 1:
            raise ValueError("there are fewer Arrow offsets than rows")
        if self._validity is not None and len(self._validity) * 8 < start + rows:
            raise ValueError("the validity bitmap is shorter than the rows")

    def bounds(self, row: int) -> tuple[int, int] | None:
        """Where the row begins and ends; None if it is null."""
        if self._offsets is None:
            return None
        if self._validity is not None and not self._validity[row >> 3] >> (row & 7) & 1:
            return None
        return self._offsets[row], self._offsets[row + 1]

    def __getitem__(self, row: int) -> memoryview | None:
        if (bounds := self.bounds(row)) is None:
            return None
        begin, end = bounds
        if not 0 <= begin <= end <= len(self._data):
            raise ValueError(f"Arrow offsets of row {row} are outside the data")
        return self._data[begin:end]


def build_from_columns(
    key_offsets: Buffer | None,
    key_data: Buffer | None,
    key_validity: Buffer | None,
    value_offsets: Buffer | None,
    value_data: Buffer | None,
    value_validity: Buffer | None,
    rows: int,
    base_offset: int = 0,
    start: int = 0,
    magic: int = 0,
    timestamps: Buffer | int | None = None,
    header_offsets: Buffer | None = None,
    header_data: Buffer | None = None,
) -> bytearray:
    """A set of entries from rows [start, start + rows) of two Arrow `binary` columns.

    None for a column: it is null in every row. `start` is Arrow's array offset. `timestamps` are
    i64 × (start + rows), or that of all rows, for magic 1; None: they have none (-1). `header_…`: a
    third column, as `encode_headers` makes it; of magic 2 alone. ValueError if a buffer is too
    short for the rows, an offset is outside the data, the magic is unknown, or magic 0 has
    timestamps. OverflowError above 2 GiB - 1.
    """
    if magic != V2.magic:
        check_magic(magic)
    if not (0 <= rows <= MAX_SET_BYTES and 0 <= start <= MAX_SET_BYTES):
        raise ValueError(f"rows {rows} and start {start} must be from 0 to {MAX_SET_BYTES}")
    check_base_offset(base_offset, rows)
    keys = BinaryRows(key_offsets, key_data, key_validity, start, rows)
    values = BinaryRows(value_offsets, value_data, value_validity, start, rows)
    headers = BinaryRows(header_offsets, header_data, None, start, rows)
    check_timestamps(magic, timestamps is not None, rows, rows)
    one, times = NO_TIMESTAMP, None
    if isinstance(timestamps, int):
        one = timestamps
    elif timestamps is not None:
        times = memoryview(timestamps).cast("B").cast("q")
    if times is not None and len(times) < start + rows:
        raise ValueError("there are fewer timestamps than rows")
    if magic == V2.magic:
        pairs = [(keys[start + row], values[start + row]) for row in range(rows)]
        stamps = [one] * rows if times is None else times[start : start + rows].tolist()
        return build_records(pairs, stamps, [headers[start + row] or b"\0" for row in range(rows)])
    if any(headers[start + row] for row in range(rows)):
        raise ValueError("only records have headers")
    built = bytearray()
    for row in range(rows):
        time = one if times is None else times[start + row]
        key, value = keys[start + row], values[start + row]
        append_entry(built, base_offset + row, 0, key, value, magic, time)
    return built
