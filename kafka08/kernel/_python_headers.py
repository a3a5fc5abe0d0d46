"""The headers of records as Arrow lists, and back (twin).

In a column of bytes a row has them as a record does: their number, and of each its name and value,
each behind its length. A row without bytes has none.
"""

from __future__ import annotations

from array import array

from kafka08.format.v2 import prefixed, read_field, read_varint, varint
from kafka08.kernel._python_columns import BinaryColumn, BinaryRows
from kafka08.kernel.types import MAX_SET_BYTES, Buffer, HeaderColumns


def header_lists(offsets: Buffer, data: Buffer, rows: int) -> HeaderColumns:
    """The lists of names and values in a column of bytes with this many rows. ValueError if a
    buffer is too short, or a row is damaged."""
    _check_rows(rows)
    column = BinaryRows(offsets, data, None, 0, rows)
    lists = array("i", [0])
    names, values = BinaryColumn(), BinaryColumn()
    for row in range(rows):
        blob = column[row]
        assert blob is not None, "there is no validity"
        if blob:
            try:
                _read(blob, names, values)
            except (IndexError, ValueError):
                raise ValueError(f"the headers of row {row} are damaged") from None
        lists.append(len(names.offsets) - 1)
    count = lists[-1]
    return HeaderColumns(
        *(count, bytearray(lists.tobytes())),
        *(bytearray(names.offsets.tobytes()), names.data),
        *(bytearray(values.offsets.tobytes()), values.data),
        values.validity() or bytearray(b"\xff") * ((count + 7) // 8),
    )


def _read(blob: memoryview, names: BinaryColumn, values: BinaryColumn) -> None:
    count, at = read_varint(blob, 0, len(blob))
    if count < 0:
        raise ValueError
    for _ in range(count):
        name, at = read_field(blob, at, len(blob))
        value, at = read_field(blob, at, len(blob))
        if name is None:
            raise ValueError
        names.append(name)
        values.append(value)
    if at != len(blob):
        raise ValueError


def encode_headers(
    list_offsets: Buffer,
    list_validity: Buffer | None,
    name_offsets: Buffer,
    name_data: Buffer | None,
    name_validity: Buffer | None,
    value_offsets: Buffer | None,
    value_data: Buffer | None,
    value_validity: Buffer | None,
    items: int,
    rows: int,
    start: int = 0,
) -> tuple[bytearray, bytearray]:
    """(offsets, data) of a column of bytes with the lists of rows [start, start + rows).

    `items` is the length of the names and of the values; without offsets every value is null.
    ValueError if a buffer is too short, an offset is outside the data, or a name is null.
    OverflowError above 2 GiB - 1.
    """
    for number in (rows, start, items):
        _check_rows(number)
    lists = BinaryRows(list_offsets, None, list_validity, start, rows)
    names = BinaryRows(name_offsets, name_data, name_validity, 0, items)
    values = BinaryRows(value_offsets, value_data, value_validity, 0, items)
    ends, data = array("i", [0]), bytearray()
    for row in range(start, start + rows):
        first, last = lists.bounds(row) or (0, 0)
        if not 0 <= first <= last <= items:
            raise ValueError(f"Arrow offsets of row {row} are outside the data")
        if first < last:
            data += varint(last - first)
        for item in range(first, last):
            try:
                name, value = names[item], values[item]
            except ValueError:
                raise ValueError(f"Arrow offsets of row {row} are outside the data") from None
            if name is None:
                raise ValueError(f"a header of row {row} has no name")
            data += prefixed(name) + prefixed(value)
        if len(data) > MAX_SET_BYTES:
            raise OverflowError(f"a message set may have at most {MAX_SET_BYTES} bytes")
        ends.append(len(data))
    return bytearray(ends.tobytes()), data


def _check_rows(rows: int) -> None:
    if not 0 <= rows <= MAX_SET_BYTES:
        raise ValueError(f"rows must be from 0 to {MAX_SET_BYTES}, not {rows}")
