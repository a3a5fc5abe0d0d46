"""Headers of records as Arrow lists, and back: what is read is what was written."""

from __future__ import annotations

from array import array
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.format.v2 import V2, encoded_headers
from kafka08.kernel import Columns
from kafka08.protocol.message_set import unpack

Headers = list[tuple[str, bytes | None]]
VALUE = st.none() | st.binary(max_size=200)
ROW: st.SearchStrategy[Headers] = st.lists(st.tuples(st.text(max_size=5), VALUE), max_size=4)
ROWS = st.lists(ROW, min_size=1, max_size=20)


def encoded(rows: list[Headers]) -> tuple[bytes, bytes]:
    """Offsets and data of the column that a record's headers make, row by row."""
    blobs = [encoded_headers(row) if row else b"" for row in rows]
    return offsets_of(blobs), b"".join(blobs)


def offsets_of(items: list[bytes]) -> bytes:
    offsets = array("i", [0])
    for item in items:
        offsets.append(offsets[-1] + len(item))
    return offsets.tobytes()


def plain(kernel: ModuleType, offsets: Any, data: Any, count: int) -> list[Headers]:
    """The rows of `header_lists`."""
    found = kernel.header_lists(offsets, data, count)
    bounds = memoryview(found.list_offsets).cast("i")
    names = fields(found.name_offsets, found.name_data, None)
    values = fields(found.value_offsets, found.value_data, found.value_validity)
    assert len(names) == len(values) == found.count == bounds[count]
    pairs = [(name.decode(), value) for name, value in zip(names, values, strict=True)]
    return [pairs[bounds[row] : bounds[row + 1]] for row in range(count)]


def fields(offsets: bytearray, data: bytearray, validity: bytearray | None) -> list[Any]:
    ends = memoryview(offsets).cast("i")
    return [
        bytes(data[ends[n] : ends[n + 1]])
        if validity is None or validity[n >> 3] >> (n & 7) & 1
        else None
        for n in range(len(ends) - 1)
    ]


@given(ROWS)
def test_lists_of_encoded_rows(kernel: ModuleType, rows: list[Headers]) -> None:
    """A row's list has its headers in their order; null values, empty names and rows without any
    are told apart."""
    offsets, data = encoded(rows)
    assert plain(kernel, offsets, data, len(rows)) == rows


@given(ROWS, st.integers(0, 5), st.data())
def test_rows_of_lists(
    kernel: ModuleType, rows: list[Headers], start: int, data: st.DataObject
) -> None:
    """The bytes are those of `encoded_headers`; null lists and rows in front of `start` count for
    nothing."""
    start = min(start, len(rows))
    null = data.draw(st.sets(st.integers(0, len(rows) - 1)))
    validity = bytearray(b"\xff" * ((len(rows) + 7) // 8))
    for number in null:
        validity[number >> 3] &= ~(1 << (number & 7))
    items = [item for row in rows for item in row]
    values = [b"" if value is None else value for _, value in items]
    of_values = bytearray(b"\xff" * ((len(items) + 7) // 8))
    for n, (_, value) in enumerate(items):
        if value is None:
            of_values[n >> 3] &= ~(1 << (n & 7))
    names = [name.encode() for name, _ in items]
    lists = array("i", [0])
    for row in rows:
        lists.append(lists[-1] + len(row))
    offsets, built = kernel.encode_headers(
        *(lists.tobytes(), validity, offsets_of(names), b"".join(names), None),
        *(offsets_of(values), b"".join(values), of_values, len(items), len(rows) - start, start),
    )
    kept = [[] if n in null else row for n, row in enumerate(rows)][start:]
    assert (offsets, built) == encoded(kept)


@given(ROWS, st.integers(1, 6))
def test_through_a_batch(kernel: ModuleType, rows: list[Headers], max_rows: int) -> None:
    """Columns of a batch that was built of columns have its headers, row by row, null where there
    are none, whatever is read beside them."""
    offsets, data = encoded(rows)
    value = array("i", range(len(rows) + 1)).tobytes()
    batch = kernel.build_from_columns(
        *(None, None, None, value, b"v" * len(rows), None),
        *(len(rows), 0, 0, V2.magic, 5, offsets, data),
    )
    found: list[Headers] = []
    for columns in kernel.column_batches(
        batch, 0, None, unpack, keys=False, values=False, max_rows=max_rows, headers=True
    ):
        blobs = fields(columns.header_offsets, columns.header_data, columns.header_validity)
        some = plain(kernel, columns.header_offsets, columns.header_data, columns.count)
        assert [blob is None for blob in blobs] == [not row for row in some]
        found += some
    assert found == rows
    whole = [m.headers for m in kernel.messages(batch, "t", 0, 0, unpack)]
    assert whole == [tuple(row) for row in rows]


def test_headers_count_for_the_size_of_a_batch(kernel: ModuleType) -> None:
    """Rows with large headers do not make a column that Arrow cannot hold."""
    row: Headers = [("h", b"x" * 100)]
    offsets, data = encoded([row] * 4)
    batch = kernel.build_from_columns(
        None, None, None, None, None, None, 4, 0, 0, V2.magic, 5, offsets, data
    )
    limited = kernel.column_batches(batch, 0, None, unpack, max_bytes=250, headers=True)
    assert [columns.count for columns in limited] == [2, 2]


def test_messages_have_none(kernel: ModuleType) -> None:
    """Of magic 0 and 1 the column is null, and cannot be built; without being asked for there is
    none."""
    data = kernel.build_set([(None, b"a")] * 2, magic=1)
    [columns] = kernel.column_batches(data, 0, None, unpack, headers=True)
    assert (columns.header_data, columns.header_validity) == (b"", b"\xfc")
    [columns] = kernel.column_batches(data, 0, None, unpack)
    assert isinstance(columns, Columns)
    assert columns.header_offsets is columns.header_data is columns.header_validity is None
    nothing = (None,) * 6
    offsets, data = encoded([[], [("a", None)]])
    with pytest.raises(ValueError, match="only records have headers"):
        kernel.build_from_columns(*nothing, 2, 0, 0, 1, 5, offsets, data)
    assert kernel.build_from_columns(*nothing, 1, 0, 0, 1, 5, offsets, data)


@pytest.mark.parametrize(
    "blob",
    [b"\x01", b"\x02", b"\x02\x02a", b"\x02\x01\x00", b"\x02\x02a\x06", b"\x00\x00", b"\xff" * 6],
)
def test_damaged_rows(kernel: ModuleType, blob: bytes) -> None:
    """A row that does not end with its last header, or has one without a name, is named."""
    column = [b"", blob]
    with pytest.raises(ValueError, match="the headers of row 1 are damaged"):
        kernel.header_lists(offsets_of(column), b"".join(column), 2)


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({0: array("i", [0, 3]).tobytes()}, "offsets of row 0 are outside"),
        ({0: array("i", [2, 1]).tobytes()}, "offsets of row 0 are outside"),
        ({0: array("i", [0]).tobytes()}, "fewer Arrow offsets than rows"),
        ({2: array("i", [0, 1, 9]).tobytes()}, "offsets of row 0 are outside"),
        ({4: b"\x02"}, "a header of row 0 has no name"),
        ({8: 5}, "fewer Arrow offsets than rows"),
        ({9: -1}, "rows must be from 0"),
    ],
)
def test_lists_that_cannot_be(kernel: ModuleType, changed: dict[int, Any], error: str) -> None:
    """Everything is checked before it is read."""
    whole = array("i", [0, 1, 2]).tobytes()
    lists = array("i", [0, 2]).tobytes()
    given = [lists, None, whole, b"ab", None, whole, b"xy", None, 2, 1]
    kernel.encode_headers(*given)
    with pytest.raises(ValueError, match=error):
        kernel.encode_headers(*[changed.get(n, value) for n, value in enumerate(given)])
