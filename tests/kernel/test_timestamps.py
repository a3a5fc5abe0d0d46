"""Timestamps of magic 1, wherever sets are built, read and searched."""

from __future__ import annotations

import time
from array import array
from types import ModuleType
from typing import Any

import pytest

from kafka08.kernel.types import Buffer, CorruptMessage, Unpacker
from tests.kernel.sets import entry, plain, refuse, unpack, wrapper

THREE = [(b"k", b"value"), (None, b"x" * 10), (b"", None)]
CREATE, APPEND, NONE = 0, 1, -1


def times(kernel: ModuleType, data: Buffer) -> list[tuple[int, int, int]]:
    """(offset, timestamp, type) of each message."""
    found = kernel.messages(data, "t", 0, 0, unpack)
    return [(message.offset, message.timestamp, message.timestamp_type) for message in found]


# ---- read ----


def test_messages_of_both_magics(kernel: ModuleType) -> None:
    """Magic 0 gives timestamp -1 and type -1; magic 1 gives its timestamp and its type."""
    data = (
        entry(5, None, b"old")
        + entry(6, None, b"v", magic=1, timestamp_ms=77)
        + entry(7, None, b"v", magic=1, timestamp_ms=78, attributes=8)
        + entry(8, None, b"v", magic=1, timestamp_ms=-1)
    )
    expected = [(5, -1, NONE), (6, 77, CREATE), (7, 78, APPEND), (8, -1, CREATE)]
    assert expected == times(kernel, data)
    assert expected == [
        (found.offset, found.timestamp_ms, found.timestamp_type) for found in kernel.entries(data)
    ]


def test_create_time_inside_a_wrapper(kernel: ModuleType) -> None:
    """Every message has its own timestamp; the type is the wrapper's."""
    inner = entry(0, None, b"a", magic=1, timestamp_ms=3, attributes=8) + entry(
        1, None, b"b", magic=1, timestamp_ms=2
    )
    data = wrapper(101, inner, magic=1, timestamp_ms=3)
    assert [(100, 3, CREATE), (101, 2, CREATE)] == times(kernel, data)


def test_append_time_inside_a_wrapper(kernel: ModuleType) -> None:
    """All messages have the wrapper's timestamp, whatever the producer set."""
    data = bytearray(wrapper(102, plain(THREE, 0, 1), magic=1, codec=1 | 8, timestamp_ms=5000))
    assert [(100 + i, 5000, APPEND) for i in range(3)] == times(kernel, data)


def test_messages_in_a_wrapper_of_magic_0_keep_their_time(kernel: ModuleType) -> None:
    """A wrapper of magic 0 has no timestamp, so the inner messages keep theirs."""
    data = wrapper(6, plain([(None, b"a")], 5) + plain([(None, b"b")], 6, 1))
    assert [(5, -1, NONE), (6, 1006, CREATE)] == times(kernel, data)


def test_wrapper_offset_below_its_last_inner_one(kernel: ModuleType) -> None:
    """Where the base offset would be negative the inner offsets are used unchanged, as in
    0.10.2.2."""
    assert [0, 1, 2] == [o for o, *_ in times(kernel, wrapper(0, plain(THREE, 0, 1), magic=1))]
    assert [5, 6, 7] == [o for o, *_ in times(kernel, wrapper(7, plain(THREE, 5, 1), magic=1))]
    gaps = entry(1, None, b"", magic=1) + entry(4, None, b"", magic=1)
    assert [97, 100] == [o for o, *_ in times(kernel, wrapper(100, gaps, magic=1))]


def test_message_is_a_value_with_its_time(kernel: ModuleType) -> None:
    """Messages are equal only with the same timestamp, and repr shows it."""
    first, second = kernel.messages(
        entry(5, b"k", b"v", magic=1, timestamp_ms=7) + entry(5, b"k", b"v"), "t", 0, 0, refuse
    )
    assert first != second
    assert first == kernel.MessageAndMetadata("t", 0, 5, b"k", b"v", 7, CREATE)
    assert repr(first).endswith(", timestamp=7, timestamp_type=0)")
    assert "timestamp" not in repr(second)


def test_column_of_timestamps(kernel: ModuleType) -> None:
    """The column has i64 in native byte order over all batches, and only on request."""
    data = entry(3, None, b"v") + wrapper(6, plain(THREE, 0, 1), magic=1) + plain(THREE, 7, 1)
    found = array("q")
    for batch in kernel.column_batches(data, 4, None, unpack, max_rows=2, timestamps=True):
        assert len(batch.timestamps) == 8 * batch.count
        found.frombytes(bytes(batch.timestamps))
    assert [1000, 1001, 1002, 1007, 1008, 1009] == list(found)
    (batch,) = kernel.column_batches(data, 4, None, unpack)
    assert batch.timestamps is None
    (batch,) = kernel.column_batches(b"", 4, None, unpack, timestamps=True)
    assert b"" == batch.timestamps
    assert batch.timestamp_validity is None


def test_columns_of_timestamp_types_and_nulls(kernel: ModuleType) -> None:
    """Each row has its type, inside a wrapper the wrapper's. The bitmap has a 0 for each row
    without a timestamp, and is None if all have one."""
    data = b"".join(
        (
            entry(0, None, b"v"),
            plain(THREE, 1, 1),
            wrapper(6, plain(THREE, 0, 1), magic=1, codec=1 | 8, timestamp_ms=7),
            entry(7, None, b"v", magic=1, timestamp_ms=-1),
            plain(THREE, 8, 1),
        )
    )
    columns = {"timestamps": True, "timestamp_types": True}
    (batch,) = kernel.column_batches(data, 0, None, unpack, **columns)
    types = array("i", bytes(batch.timestamp_types))
    assert [NONE, *[CREATE] * 3, *[APPEND] * 3, *[CREATE] * 4] == list(types)
    first, second = batch.timestamp_validity
    assert (0b01111110, 0b111) == (first, second & 0b111)
    (batch,) = kernel.column_batches(data, 8, None, unpack, **columns)
    assert batch.timestamp_validity is None
    (batch,) = kernel.column_batches(data, 8, None, unpack)
    assert batch.timestamp_types is None


# ---- summaries, recovery ----


def test_summary_has_magics_and_the_largest_timestamp(kernel: ModuleType) -> None:
    """Both come from shallow entries, as followers and recovery need them."""
    data = entry(3, None, b"v") + plain(THREE, 4, 1) + entry(9, b"", b"", magic=1, timestamp_ms=2)
    summary = kernel.validate(data, 1 << 20)
    assert (0b11, 1006, 6) == (
        summary.magics,
        summary.max_timestamp_ms,
        summary.max_timestamp_offset,
    )
    summary = kernel.validate(plain(THREE), 1 << 20)
    assert (0b01, -1, -1) == (
        summary.magics,
        summary.max_timestamp_ms,
        summary.max_timestamp_offset,
    )


def test_recovery_gives_time_points(kernel: ModuleType) -> None:
    """Each index point has the largest timestamp up to its entry, that included, also over several
    chunks."""
    first = b"".join(
        entry(i, None, b"x" * 10, magic=1, timestamp_ms=time)
        for i, time in enumerate((10, 30, 20, 40))
    )
    found = kernel.recover(first, 40, 0)
    assert [1, 2, 3] == [offset for _, offset, _ in found.index_points]
    assert [(30, 1), (30, 1), (40, 3)] == found.time_points
    assert (40, 3) == (found.max_timestamp_ms, found.max_timestamp_offset)
    later = entry(4, None, b"", magic=1, timestamp_ms=39)
    found = kernel.recover(later, 40, 41, found.max_timestamp_ms, found.max_timestamp_offset)
    assert ([(40, 3)], 40, 3) == (
        found.time_points,
        found.max_timestamp_ms,
        found.max_timestamp_offset,
    )


def test_broken_entry_has_no_time(kernel: ModuleType) -> None:
    """Recovery ends in front of it, and its timestamp does not count."""
    data = bytearray(plain(THREE, 0, 1))
    data[-1] ^= 1
    found = kernel.recover(data, 0, 1)
    assert (1001, 1, 2) == (found.max_timestamp_ms, found.max_timestamp_offset, found.count)


# ---- search ----

STORED = (
    entry(0, None, b"old")
    + plain(THREE, 1, 1)
    + wrapper(6, plain(THREE, 4, 1), magic=1, timestamp_ms=1006)
)


def test_scan_for_a_timestamp(kernel: ModuleType) -> None:
    """The scan finds the first shallow entry at or after the timestamp."""
    assert (True, 0, 0) == kernel.scan_timestamp(STORED, -1)
    assert (True, 29, 1) == kernel.scan_timestamp(STORED, 0)
    assert (True, 29, 1) == kernel.scan_timestamp(STORED, 1001)
    found = kernel.scan_timestamp(STORED, 1004)
    assert (True, 6) == (found.found, found.offset)
    assert (False, len(STORED), -1) == kernel.scan_timestamp(STORED, 1007)


def test_scan_needs_the_timestamp(kernel: ModuleType) -> None:
    """The scan needs 26 bytes of an entry; with fewer it returns the position to read from."""
    data = entry(5, None, b"v" * 50, magic=1, timestamp_ms=9)
    for size in range(26):
        assert (False, 0, -1) == kernel.scan_timestamp(data[:size], 9)
    assert (True, 0, 5) == kernel.scan_timestamp(data[:26], 9)
    assert (False, len(data), -1) == kernel.scan_timestamp(data[:26], 10)


def test_find_a_timestamp(kernel: ModuleType) -> None:
    """The result is the first message at or after the timestamp, inside wrappers too."""
    for target, expected in (
        (-1, (0, -1)),
        (0, (1, 1001)),
        (1003, (3, 1003)),
        (1005, (5, 1005)),
        (1006, (6, 1006)),
        (1007, None),
    ):
        assert expected == kernel.find_timestamp(STORED, target, unpack)
    assert (5, 1005) == kernel.find_timestamp(STORED, 0, unpack, 5)


def test_older_wrappers_are_not_unpacked(kernel: ModuleType) -> None:
    """A wrapper's own timestamp is the largest inside, which suffices to skip it."""
    data = wrapper(2, plain(THREE, 0, 1), magic=1, timestamp_ms=1002)
    assert kernel.find_timestamp(data, 1003, refuse) is None
    assert kernel.find_timestamp(wrapper(2, plain(THREE)), 0, refuse) is None


def test_find_in_a_wrapper_of_append_time(kernel: ModuleType) -> None:
    """The wrapper's first message has the wrapper's timestamp."""
    data = wrapper(12, plain(THREE, 0, 1), magic=1, codec=1 | 8, timestamp_ms=5000)
    assert (10, 5000) == kernel.find_timestamp(data, 4000, unpack)


# ---- build ----


def test_build_with_timestamps(kernel: ModuleType) -> None:
    """There is one timestamp for each message; without any, messages have none."""
    assert plain(THREE, 5, 1) == kernel.build_set(THREE, 5, 0, 1, (1005, 1006, 1007))
    assert entry(0, b"k", b"v", magic=1) == kernel.build_set([(b"k", b"v")], magic=1)


def test_build_refuses_impossible_arguments(kernel: ModuleType) -> None:
    """Unsupported magics, timestamps in magic 0, and more or fewer timestamps than messages are
    refused."""
    for magic, given, reason in (
        (2, None, "magic 2 cannot be written"),
        (-1, None, "magic -1 cannot be written"),
        (0, [1, 2, 3], "magic 0 have no timestamps"),
        (1, [1, 2], "2 timestamps for 3 messages"),
    ):
        with pytest.raises(ValueError, match=reason):
            kernel.build_set(THREE, magic=magic, timestamps=given)


def test_wrapper_with_a_timestamp(kernel: ModuleType) -> None:
    """A wrapper of magic 1 has a timestamp of either type, one of magic 0 has none."""
    assert entry(5, None, b"v", magic=1, attributes=2, timestamp_ms=7) == kernel.wrap(
        b"v", 5, 2, 1, 7
    )
    assert entry(5, None, b"v", magic=1, attributes=10, timestamp_ms=7) == kernel.wrap(
        b"v", 5, 2, 1, 7, True
    )
    assert entry(5, None, b"v", attributes=2) == kernel.wrap(b"v", 5, 2, 0, 7, True)


def test_builder_with_timestamps(kernel: ModuleType) -> None:
    """Timestamps count towards the capacity, and the builder returns the largest one for the
    wrapper."""
    builder: Any = kernel.SetBuilder(118, None, kernel.MessageRef, 1)
    assert builder.max_timestamp_ms == -1
    for i, (key, value) in enumerate(THREE):
        assert builder.append(key, value, None, 1000 + i).index == i
    assert builder.append(b"", b"", None, 9999) is None
    assert builder.max_timestamp_ms == 1002
    assert plain(THREE, 0, 1) == builder.finish()
    assert array("q", [1000, 1001, 1002]).tobytes() == builder.timestamps
    with pytest.raises(ValueError, match="magic 3"):
        kernel.SetBuilder(118, None, kernel.MessageRef, 3)


def test_builder_stamps_messages(kernel: ModuleType) -> None:
    """A message without a timestamp gets the clock's; a negative one is refused without a trace."""
    clock = iter([70, 80])
    builder = kernel.SetBuilder(200, None, kernel.MessageRef, 1, lambda: next(clock))
    builder.append(None, b"a")
    builder.append(None, b"b", None, 75)
    builder.append(None, b"c", None, -1)
    with pytest.raises(ValueError, match="-2 is before 1970"):
        builder.append(None, b"d", None, -2)
    messages = [(None, b"a"), (None, b"b"), (None, b"c")]
    assert kernel.build_set(messages, magic=1, timestamps=[70, 75, 80]) == builder.finish()
    assert builder.max_timestamp_ms == 80


def test_builder_reads_the_systems_clock(kernel: ModuleType) -> None:
    """Without a clock of the caller's; magic 0 has no timestamps."""
    before = time.time_ns() // 1_000_000
    builder = kernel.SetBuilder(200, None, kernel.MessageRef, 1)
    builder.append(None, b"a")
    builder.finish()
    assert before <= builder.max_timestamp_ms <= time.time_ns() // 1_000_000
    plain_builder = kernel.SetBuilder(200, None, kernel.MessageRef)
    plain_builder.append(None, b"a")
    plain_builder.finish()
    assert (plain_builder.timestamps, plain_builder.max_timestamp_ms) == (None, -1)


def test_one_timestamp_for_all_messages(kernel: ModuleType) -> None:
    """A number stands for a column of equal timestamps."""
    stamps = kernel.build_set(THREE, magic=1, timestamps=[7, 7, 7])
    assert stamps == kernel.build_set(THREE, magic=1, timestamps=7)
    offsets = array("i", [0, 1]).tobytes()
    column = (None, None, None, offsets, b"a", None, 1, 0, 0)
    assert kernel.build_set([(None, b"a")], magic=1, timestamps=[7]) == kernel.build_from_columns(
        *column, 1, 7
    )
    with pytest.raises(ValueError, match="no timestamps"):
        kernel.build_set(THREE, timestamps=7)
    with pytest.raises(ValueError, match="no timestamps"):
        kernel.build_from_columns(*column, 0, 7)


def test_build_from_columns_with_timestamps(kernel: ModuleType) -> None:
    """Timestamps come from Arrow's i64 buffer, from row `start` on."""
    offsets, data = array("i", [0, 1, 2, 3]).tobytes(), b"abc"
    stamps = array("q", [7, 8, 9]).tobytes()
    expected = entry(5, None, b"b", magic=1, timestamp_ms=8) + entry(
        6, None, b"c", magic=1, timestamp_ms=9
    )

    def build(magic: int, times: Any) -> Any:
        return kernel.build_from_columns(
            None, None, None, offsets, data, None, 2, 5, 1, magic, times
        )

    assert expected == build(1, stamps)
    assert entry(5, None, b"b", magic=1) + entry(6, None, b"c", magic=1) == build(1, None)
    for magic, times, reason in (
        (1, stamps[:-8], "fewer timestamps"),
        (0, stamps, "no timestamps"),
        (3, None, "magic 3"),
    ):
        with pytest.raises(ValueError, match=reason):
            build(magic, times)


# ---- the budget ----


def test_one_budget_for_an_outermost_wrapper(kernel: ModuleType) -> None:
    """Nested wrappers share the budget of their outermost wrapper; the next outermost one has its
    own."""
    limits = []

    def unpack_some(codec: int, value: Buffer, limit: int) -> bytes:
        limits.append(limit)
        return unpack(codec, value)

    innermost = plain([(None, b"x" * 74)])
    middle = wrapper(0, innermost) + wrapper(1, innermost)
    data = wrapper(1, middle) + wrapper(2, innermost)
    walk = kernel.messages(data, "t", 0, 0, Unpacker(unpack_some, 1000), verify_crc=False)
    list(walk)
    assert [1000, 1000 - len(middle), 900 - len(middle), 1000] == limits


def test_beyond_the_budget(kernel: ModuleType) -> None:
    """A wrapper above the budget is an error of the set, for messages and columns."""

    def unpack_some(codec: int, value: Buffer, limit: int) -> bytes:
        inner = unpack(codec, value)
        if len(inner) > limit:
            raise ValueError("too large")
        return inner

    data = wrapper(0, wrapper(0, plain([(None, b"x" * 74)])))
    decompress = Unpacker(unpack_some, 130)
    with pytest.raises(CorruptMessage, match="too large"):
        list(kernel.messages(data, "t", 0, 0, decompress))
    with pytest.raises(CorruptMessage, match="too large"):
        list(kernel.column_batches(data, 0, None, decompress))
