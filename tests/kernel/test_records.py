"""Batches of records that a producer builds: what the reader finds in them is what was put in."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.format import batches
from kafka08.format.v2 import V2, encoded_headers, packed, stamp
from kafka08.protocol.compression import GZIP, decompress
from kafka08.protocol.record_batches import compress

FIELD = st.none() | st.binary(max_size=200)
TIME = st.integers(0, 1 << 62)
ROWS = st.lists(st.tuples(FIELD, FIELD, TIME), min_size=1, max_size=20)
HEADERS = st.lists(st.tuples(st.text(max_size=5), FIELD), max_size=3)
MAGIC = V2.magic
HEAD_BYTES = V2.head_bytes


def rows(kernel: ModuleType, data: bytes) -> list[tuple[Any, ...]]:
    found = kernel.messages(data, "t", 0, 0, lambda codec, value: decompress(codec, value, 1 << 30))
    return [(m.offset, m.key, m.value, m.timestamp, m.headers) for m in found]


def builder(kernel: ModuleType, capacity: int = 10_000) -> Any:
    class Mine(kernel.MessageRef):  # type: ignore[name-defined,misc]
        __slots__ = ()

    return kernel.SetBuilder(capacity, "owner", Mine, MAGIC)


@given(given_rows=ROWS, headers=HEADERS, capacity=st.integers(HEAD_BYTES, 2000))
def test_a_batch_that_grows(
    kernel: ModuleType, given_rows: list[tuple[Any, Any, int]], headers: list[Any], capacity: int
) -> None:
    """It has the records that fit, whatever their times and headers; one that does not fit changes
    nothing."""
    building = builder(kernel, capacity)
    expected: list[tuple[Any, ...]] = []
    for n, (key, value, time) in enumerate(given_rows):
        some = headers if n % 2 else []
        encoded = encoded_headers(some) if some else None
        if building.append(key, value, None, time, encoded) is not None:
            expected.append((len(expected), key, value, time, tuple(some)))
    data = building.finish()
    assert rows(kernel, data) == expected
    assert len(data) <= capacity
    if expected:
        (batch,) = batches(data)
        assert batch.record_count == len(expected) == batch.last_offset + 1
        assert batch.max_timestamp_ms == max(row[3] for row in expected)
        assert (batch.producer_id, batch.base_sequence) == (-1, -1)
        assert kernel.validate(data, 1 << 30).count == 1


@given(given_rows=ROWS, keyed=st.booleans())
def test_a_batch_of_lists_is_that_which_grows(
    kernel: ModuleType, given_rows: list[tuple[Any, Any, int]], keyed: bool
) -> None:
    """The same bytes, also with one time for all, and without a time."""
    keys = [row[0] for row in given_rows] if keyed else None
    values, times = [row[1] for row in given_rows], [row[2] for row in given_rows]
    for some_times in (times, 7):
        building = builder(kernel)
        for n, value in enumerate(values):
            time = some_times if isinstance(some_times, int) else some_times[n]
            building.append(keys[n] if keys else None, value, None, time)
        built = kernel.build_from_lists(
            keys, values, 0, len(values), magic=MAGIC, timestamps=some_times
        )
        assert built == building.finish()
    timeless = kernel.build_from_lists(keys, values, 0, len(values), magic=MAGIC)
    assert {row[3] for row in rows(kernel, timeless)} == {-1}


def test_a_batch_of_columns_is_that_of_lists(kernel: ModuleType) -> None:
    """Arrow's columns with nulls, an offset and times."""
    pa = pytest.importorskip("pyarrow")
    keys, values = [b"a", None, b"", b"c"], [b"1", b"22", None, b"4444"]
    times = [5, 9, 3, 7]
    columns = [pa.array(column, pa.binary()).buffers() for column in (keys, values)]
    parts = [part for valid, offsets, data in columns for part in (offsets, data, valid)]
    stamps = pa.array(times, pa.int64()).buffers()[1]
    built = kernel.build_from_columns(
        *parts, rows=3, start=1, magic=MAGIC, timestamps=memoryview(stamps)
    )
    expected = kernel.build_from_lists(keys, values, 1, 4, magic=MAGIC, timestamps=times[1:])
    assert built == expected
    one = kernel.build_from_columns(*parts, rows=4, magic=MAGIC, timestamps=5)
    assert one == kernel.build_from_lists(keys, values, 0, 4, magic=MAGIC, timestamps=5)


def test_what_is_no_batch(kernel: ModuleType) -> None:
    """A batch needs a record and room for its head; messages have no headers."""
    with pytest.raises(ValueError, match="needs a record"):
        kernel.build_from_lists(None, [], 0, 0, magic=MAGIC)
    with pytest.raises(ValueError, match="no room for its head"):
        builder(kernel, HEAD_BYTES - 1)
    assert builder(kernel).finish() == b""
    messages = kernel.SetBuilder(1000, "owner", kernel.MessageRef, 1)
    with pytest.raises(ValueError, match="only records have headers"):
        messages.append(None, b"", None, 1, b"\0")
    with pytest.raises(ValueError, match="before 1970"):
        builder(kernel).append(None, b"", None, -2)


def test_packed_and_stamped(kernel: ModuleType) -> None:
    """A batch that is compressed, and gets its producer and sequence, is a sound one."""
    values = [b"value %d" % n for n in range(100)]
    data = kernel.build_from_lists(None, values, 0, 100, magic=MAGIC, timestamps=5)
    records = compress(GZIP, memoryview(data)[HEAD_BYTES:])
    small = packed(data, GZIP, records, kernel.crc32c)
    stamp(small, 7, 3, 100, is_transactional=True, checksum=kernel.crc32c)
    (batch,) = batches(small)
    assert (batch.codec, batch.producer_id, batch.producer_epoch) == (GZIP, 7, 3)
    assert (batch.base_sequence, batch.is_transactional) == (100, True)
    assert [row[2] for row in rows(kernel, bytes(small))] == values
    stamp(small, 7, 4, 0, checksum=kernel.crc32c)
    (batch,) = batches(small)
    assert (batch.producer_epoch, batch.base_sequence, batch.is_transactional) == (4, 0, False)
    kernel.validate(small, 1 << 30)


@pytest.mark.parametrize("wrong", [[("a",)], [(b"a", b"")], [("a", "text")], ["ab"]])
def test_what_is_no_header(wrong: Any) -> None:
    """The error shows it."""
    with pytest.raises(TypeError, match="a header is"):
        encoded_headers(wrong)
