"""Messages as Arrow buffers, and back."""

from __future__ import annotations

from array import array
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.kernel.types import Buffer, Columns, CorruptMessage, UnknownCodec
from tests import strategies
from tests.kernel.sets import entry, plain, refuse, unpack, wrapper

THREE = [(b"k", b"value"), (None, b"x" * 10), (b"", None)]
Row = tuple[int, bytes | None, bytes | None]


def column(offsets: Buffer, data: Buffer, validity: Buffer | None, count: int) -> list[Any]:
    """The values of an Arrow `binary` column, read by the definition of the format."""
    ends = memoryview(offsets).cast("i")
    assert len(ends) == count + 1
    assert ends[0] == 0
    assert ends[count] == len(data)
    assert validity is None or len(validity) == (count + 7) // 8
    return [
        bytes(data[ends[row] : ends[row + 1]])
        if validity is None or validity[row // 8] >> row % 8 & 1
        else None
        for row in range(count)
    ]


def rows(found: Columns) -> list[Row]:
    assert found.key_offsets is not None
    assert found.key_data is not None
    assert found.value_offsets is not None
    assert found.value_data is not None
    keys = column(found.key_offsets, found.key_data, found.key_validity, found.count)
    values = column(found.value_offsets, found.value_data, found.value_validity, found.count)
    offsets = memoryview(found.offsets).cast("q")
    return list(zip(offsets, keys, values, strict=True))


def all_rows(kernel: ModuleType, data: bytes, from_offset: int = 0, **limits: int) -> list[Row]:
    batches = list(kernel.column_batches(data, from_offset, None, unpack, **limits))
    assert [True] * (len(batches) - 1) + [False] == [batch.more for batch in batches]
    return [row for batch in batches for row in rows(batch)]


def test_rows_are_the_messages(kernel: ModuleType) -> None:
    """Each row has offset, key and value of its message, distinguishes null from empty, and the
    batch has the next offset."""
    found = next(kernel.column_batches(plain(THREE, 5), 0, None, refuse))
    assert rows(found) == [(5, *THREE[0]), (6, *THREE[1]), (7, *THREE[2])]
    assert (8, False) == (found.next_offset, found.more)


def test_a_column_without_nulls_has_no_bitmap(kernel: ModuleType) -> None:
    """The bitmap is None, which Arrow reads as "all valid"; empty values are not null."""
    found = next(kernel.column_batches(plain([(b"", b"")] * 3), 0, None, refuse))
    assert (None, None) == (found.key_validity, found.value_validity)


def test_no_rows(kernel: ModuleType) -> None:
    """A set without offsets between from_offset and until_offset gives one empty batch."""
    for data, from_offset, until, next_offset in [
        (b"", 3, None, 3),
        (plain(THREE), 3, None, 3),
        (plain(THREE, 8), 2, 8, 8),
    ]:
        (found,) = kernel.column_batches(data, from_offset, until, refuse)
        assert rows(found) == []
        assert (next_offset, False) == (found.next_offset, found.more)


def test_unrequested_columns_are_not_built(kernel: ModuleType) -> None:
    """Their three buffers are None; rows are counted and other columns filled nevertheless."""
    found = next(kernel.column_batches(plain(THREE), 0, None, refuse, keys=False, values=False))
    assert found.count == 3
    assert found.key_offsets is found.key_data is found.key_validity is None
    assert found.value_offsets is found.value_data is found.value_validity is None
    found = next(kernel.column_batches(plain(THREE), 0, None, refuse, keys=False))
    assert found.key_data is None
    assert found.value_data == b"value" + b"x" * 10


def test_wrappers_are_unpacked(kernel: ModuleType) -> None:
    """Inner messages become rows with consecutive offsets, also from nested wrappers and from a
    part of one."""
    data = plain(THREE) + wrapper(5, plain(THREE, 3)) + wrapper(8, wrapper(8, plain(THREE, 6)))
    expected = [(i, *THREE[i % 3]) for i in range(9)]
    assert expected == all_rows(kernel, data)
    assert expected[4:] == all_rows(kernel, data, 4)
    found = next(kernel.column_batches(data, 4, 7, unpack))
    assert expected[4:7] == rows(found)
    assert (7, False) == (found.next_offset, found.more)


@pytest.mark.parametrize("limits", [{"max_rows": 2}, {"max_bytes": 12}, {"max_bytes": 0}])
def test_batches_are_limited_and_lose_nothing(kernel: ModuleType, limits: dict[str, int]) -> None:
    """Limits apply inside a wrapper too, which is unpacked once, and next_offset of each batch
    leads to the rest."""
    calls = []

    def count(codec: int, value: Buffer) -> bytes:
        calls.append(codec)
        return unpack(codec, value)

    data = wrapper(29, plain(THREE * 10)) + plain(THREE, 30)
    expected = [(i, *THREE[i % 3]) for i in range(33)]
    found: list[Row] = []
    for batch in kernel.column_batches(data, 0, None, count, **limits):
        assert batch.count <= limits.get("max_rows", 33)
        found += rows(batch)
        assert expected[batch.next_offset :] == all_rows(kernel, data, batch.next_offset)
    assert expected == found
    assert calls == [1]


def test_one_row_may_be_larger_than_max_bytes(kernel: ModuleType) -> None:
    """Such a row is a batch by itself; the rows behind it are limited again."""
    data = plain([(None, b"x" * 100), (None, b"y" * 50), (None, b"z" * 40)])
    batches = list(kernel.column_batches(data, 0, None, refuse, max_bytes=90))
    assert [batch.count for batch in batches] == [1, 2]


@pytest.mark.parametrize("limits", [{"max_rows": 0}, {"max_bytes": -1}, {"max_bytes": 1 << 31}])
def test_limits_have_a_range(kernel: ModuleType, limits: dict[str, int]) -> None:
    """Limits above 2 GiB, the end of i32 offsets, are refused."""
    with pytest.raises(ValueError, match="max_"):
        kernel.column_batches(b"", 0, None, refuse, **limits)


def test_rows_in_front_of_an_error_come_first(kernel: ModuleType) -> None:
    """The batch before an error has its rows, and the next one raises; a caller that stops early
    loses nothing."""
    data = plain(THREE) + entry(3, None, b"x")[:-1] + b"y"
    batches = kernel.column_batches(data, 0, None, refuse)
    first = next(batches)
    assert (3, 3, True) == (first.count, first.next_offset, first.more)
    with pytest.raises(CorruptMessage, match="crc"):
        next(batches)
    assert next(kernel.column_batches(data, 0, None, refuse, verify_crc=False)).count == 4


@given(strategies.pairs, st.integers(0, 9), st.integers(1, 40))
def test_values_moved_in_place(
    kernel: ModuleType, pairs: list[tuple[bytes | None, bytes | None]], start: int, limit: int
) -> None:
    """They are those of copied batches, in all batches at once: none overwrites another's."""
    data = plain(pairs)
    limits = {"max_bytes": limit, "max_rows": 5}
    copied = kernel.column_batches(data, start, None, refuse, **limits)
    limits["in_place"] = True
    moved = list(kernel.column_batches(bytearray(data), start, None, refuse, **limits))
    assert [rows(batch) for batch in moved] == [rows(batch) for batch in copied]


def test_values_in_place_need_no_memory() -> None:
    """The values of a batch are a view of the set that it was given (the twin copies them)."""
    native = pytest.importorskip("kafka08.kernel._native")
    whole = bytearray(plain([(b"k", b"v" * 100), (None, b"w" * 100)]))
    [found] = native.column_batches(whole, 0, None, refuse, in_place=True)
    assert found.value_data == b"v" * 100 + b"w" * 100
    begin = whole.index(b"v")
    whole[begin : begin + 3] = b"new"
    assert bytes(found.value_data[:4]) == b"newv"


def test_values_that_cannot_be_moved(kernel: ModuleType) -> None:
    """Read-only data are refused, a wrapper where it is met; without values nothing is moved."""
    with pytest.raises(ValueError, match="read-only"):
        kernel.column_batches(plain(THREE), 0, None, unpack, in_place=True)
    mixed = plain(THREE) + wrapper(5, plain(THREE, 3))
    batches = kernel.column_batches(bytearray(mixed), 0, None, unpack, in_place=True)
    assert next(batches).count == 3
    with pytest.raises(UnknownCodec, match="1 is an unknown"):
        next(batches)
    [found] = kernel.column_batches(mixed, 0, None, unpack, values=False, in_place=True)
    assert (6, None) == (found.count, found.value_data)


def test_many_rows_of_changing_sizes(kernel: ModuleType) -> None:
    """Buffers grow with the rows, above and below the size at which the GIL is released."""
    pairs = [(b"k" * (i % 7), b"v" * (i * 37 % 1009)) for i in range(2000)]
    assert [(i, *pair) for i, pair in enumerate(pairs)] == all_rows(kernel, plain(pairs))
    falling = [(None, b"v" * (9000 >> i // 20)) for i in range(300)]
    assert [(i, *pair) for i, pair in enumerate(falling)] == all_rows(kernel, plain(falling))


@given(pairs=strategies.pairs, max_rows=st.integers(1, 9), max_bytes=st.integers(0, 90))
def test_any_messages(
    kernel: ModuleType,
    pairs: list[tuple[bytes | None, bytes | None]],
    max_rows: int,
    max_bytes: int,
) -> None:
    """The rows of all batches are the messages in order, compressed or not, with any limits."""
    data = wrapper(len(pairs) - 1, plain(pairs)) + plain(pairs, len(pairs))
    found = all_rows(kernel, data, max_rows=max_rows, max_bytes=max_bytes)
    assert [(i, *pair) for i, pair in enumerate(pairs + pairs)] == found


# ---- building ----


def arrow(values: list[bytes | None]) -> tuple[Buffer, Buffer, Buffer]:
    """offsets, data and validity of an Arrow `binary` column."""
    offsets = array("i", [0])
    data = bytearray()
    bits = bytearray((len(values) + 7) // 8)
    for row, value in enumerate(values):
        data += value or b""
        offsets.append(len(data))
        bits[row // 8] |= (value is not None) << row % 8
    return offsets.tobytes(), bytes(data), bytes(bits)


@given(pairs=strategies.pairs, start=st.integers(0, 8))
def test_build_from_columns(
    kernel: ModuleType, pairs: list[tuple[bytes | None, bytes | None]], start: int
) -> None:
    """The set has the rows from `start` on, as Arrow gives a slice of an array."""
    start = min(start, len(pairs))
    keys, values = arrow([key for key, _ in pairs]), arrow([value for _, value in pairs])
    built = kernel.build_from_columns(*keys, *values, len(pairs) - start, 7, start)
    assert plain(pairs[start:], 7) == built


def test_build_from_columns_without_keys_or_bitmap(kernel: ModuleType) -> None:
    """Without a key column keys are null; without a bitmap no value is null."""
    offsets, data, _ = arrow([b"a", b"bc"])
    built = kernel.build_from_columns(None, None, None, offsets, data, None, 2)
    assert plain([(None, b"a"), (None, b"bc")]) == built


def test_columns_there_and_back(kernel: ModuleType) -> None:
    """A set built from its own columns has the same bytes."""
    found = next(kernel.column_batches(plain(THREE, 5), 0, None, refuse))
    built = kernel.build_from_columns(
        found.key_offsets,
        found.key_data,
        found.key_validity,
        found.value_offsets,
        found.value_data,
        found.value_validity,
        found.count,
        5,
    )
    assert plain(THREE, 5) == built


@pytest.mark.parametrize(
    ("offsets", "data", "validity", "rows", "reason"),
    [
        ([0, 1], b"a", None, 2, "fewer Arrow offsets"),
        ([], b"", None, 0, "fewer Arrow offsets"),
        ([0, 2], b"a", None, 1, "outside the data"),
        ([-1, 1], b"a", None, 1, "outside the data"),
        ([1, 0], b"a", None, 1, "outside the data"),
        ([0, -(1 << 31)], b"a", None, 1, "outside the data"),
        ([0] * 10, b"", b"\xff", 9, "bitmap"),
        ([0, 1], None, None, 1, "outside the data"),
        ([0], b"", None, -1, "rows"),
    ],
)
def test_build_from_columns_checks_before_it_reads(
    kernel: ModuleType,
    offsets: list[int],
    data: bytes | None,
    validity: bytes | None,
    rows: int,
    reason: str,
) -> None:
    """Buffers that contradict each other or the number of rows are a ValueError."""
    packed = array("i", offsets).tobytes()
    with pytest.raises(ValueError, match=reason):
        kernel.build_from_columns(packed, data, validity, None, None, None, rows)
    with pytest.raises(ValueError, match=reason):
        kernel.build_from_columns(None, None, None, packed, data, validity, rows)
