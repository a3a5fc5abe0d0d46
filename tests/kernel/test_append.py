"""Sets at the ends of segments: what is appended, what is left, what both kernels do."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from pathlib import Path
from struct import pack
from types import ModuleType
from typing import Any

import pytest

from kafka08.kernel import _python
from kafka08.kernel.types import Buffer, Rules
from tests.kernel.conftest import native_or_skip
from tests.kernel.sets import entry, field, plain, raw_entry, wrapper
from tests.kernel.tails import NOW_MS, File, a_tail, an_index, state


def append(
    kernel: ModuleType, tails: Sequence[Any], sets: Sequence[Buffer], now_ms: int = NOW_MS
) -> list[int]:
    """The offsets that were given to sets which follow each other in a payload."""
    payload = bytearray(b"").join(map(bytes, sets))
    starts = [sum(map(len, sets[:number])) for number in range(len(sets))]
    base_offsets: list[int] = kernel.append_plain(
        memoryview(payload), list(tails), starts, list(map(len, sets)), now_ms
    )
    return base_offsets


def test_sets_go_to_their_tails(kernel: ModuleType) -> None:
    """Sets are numbered from the log end and written behind the existing bytes, and the tail's end
    advances."""
    first, second = File(), File()
    tails = [a_tail(kernel, first), a_tail(kernel, second, end_offset=7, size=10)]
    sets = [bytearray(plain([(None, b"a"), (None, b"b")])), bytearray(plain([(b"k", b"c")]))]
    assert [40, 7] == append(kernel, tails, sets)
    assert [(1000, plain([(None, b"a"), (None, b"b")], 40))] == first.written
    assert [(10, plain([(b"k", b"c")], 7))] == second.written
    size = len(sets[0])
    assert (42, 1000 + size, 40, 1000, 100 + size, False) == (
        tails[0].end_offset,
        tails[0].size,
        tails[0].tail_offset,
        tails[0].tail_position,
        tails[0].bytes_since_index,
        tails[0].index_is_due,
    )


def test_an_index_entry_is_due_above_the_interval(kernel: ModuleType) -> None:
    """An index entry is due when more bytes than the interval were appended; the count restarts
    with the set that gets it."""
    data = bytearray(plain([(None, b"a")]))
    for since, is_due in ((200, False), (201, True)):
        tail = a_tail(kernel, File(), bytes_since_index=since)
        append(kernel, [tail], [data])
        expected = len(data) if is_due else since + len(data)
        assert (is_due, expected) == (tail.index_is_due, tail.bytes_since_index)


def test_timestamps_are_checked_and_kept(kernel: ModuleType) -> None:
    """With timestamp rules the tail keeps the segment's largest timestamp."""
    data = plain([(None, b"a"), (None, b"b")], magic=1)
    file = File()
    tail = a_tail(kernel, file, rules=Rules(magic=1), max_timestamp_ms=900)
    assert [40] == append(kernel, [tail], [data])
    assert (1001, 41) == (tail.max_timestamp_ms, tail.max_timestamp_offset)
    tail = a_tail(kernel, file, rules=Rules(magic=1, max_difference_ms=10))
    assert [-1] == append(kernel, [tail], [data])


PLAIN = plain([(None, b"a"), (None, b"b")])
NO_ROOM = raw_entry(0, b"\0\0" + pack(">i", 90) + field(b"a"))
STAMPED = plain([(None, b"a")], magic=1)
LEFT: dict[str, tuple[bytes, dict[str, Any]]] = {
    "a tail that takes nothing": (PLAIN, {"takes_plain_sets": False}),
    "a full index": (PLAIN, {"is_full": True}),
    "an empty segment": (PLAIN, {"size": 0}),
    "a segment that would be too large": (PLAIN, {"segment_bytes": 1000 + len(PLAIN) - 1}),
    "a segment that is too old": (PLAIN, {"age_max_ms": NOW_MS - 1000 - 1}),
    "timestamps too far apart": (
        STAMPED,
        {"rules": Rules(magic=1), "first_ms": 400, "age_max_ms": 599},
    ),
    "nothing": (b"", {}),
    "a cut entry behind a whole one": (PLAIN[:-1], {}),
    "a cut entry": (PLAIN[:20], {}),
    "a wrapper": (wrapper(1, PLAIN), {}),
    "a wrapper behind a plain entry": (PLAIN + wrapper(2, PLAIN), {}),
    "a bad CRC": (PLAIN[:-1] + b"x", {}),
    "a message that is too large": (PLAIN, {"max_entry_bytes": 20}),
    "LogAppendTime": (STAMPED, {"rules": Rules(magic=1, log_append_time=True)}),
    "magic 1 where magic 0 is kept": (STAMPED, {"rules": Rules(magic=0)}),
    "magic 0 behind magic 1": (STAMPED + PLAIN, {"rules": Rules(magic=1)}),
    "magic 1 behind magic 0": (PLAIN + STAMPED, {"rules": Rules(magic=1)}),
    "an unknown magic": (entry(0, None, b"a", magic=2), {"rules": Rules(magic=1)}),
    "magic 0 for LogAppendTime": (PLAIN, {"rules": Rules(magic=1, log_append_time=True)}),
    "magic 0 where timestamps are checked": (PLAIN, {"rules": Rules(magic=1, max_difference_ms=9)}),
    "magic 0 without its key": (PLAIN, {"rules": Rules(magic=1, keys_required=True)}),
    "magic 0 with a bad CRC": (PLAIN[:-1] + b"x", {"rules": Rules(magic=1)}),
    "magic 0 with an impossible key": (NO_ROOM, {"rules": Rules(magic=1)}),
    "magic 0 behind which bytes are left": (PLAIN + PLAIN[:20], {"rules": Rules(magic=1)}),
    "magic 0 and a wrapper": (PLAIN + wrapper(1, PLAIN), {"rules": Rules(magic=1)}),
    "magic 0 that is too large as magic 1": (
        PLAIN,
        {"rules": Rules(magic=1), "max_entry_bytes": len(PLAIN) // 2 + 7},
    ),
    "a segment that would be too large with timestamps": (
        PLAIN,
        {"rules": Rules(magic=1), "segment_bytes": 1000 + len(PLAIN) + 15},
    ),
    "an unknown codec": (entry(0, None, b"a", attributes=7), {}),
    "a message without its key": (STAMPED, {"rules": Rules(magic=1, keys_required=True)}),
    "256 KB": (plain([(None, bytes(9000))] * 30), {"segment_bytes": 1 << 20}),
}


def unstamped(messages: Sequence[tuple[bytes | None, bytes | None]]) -> bytes:
    """Of magic 1, from offset 40 on."""
    entries = [entry(40 + n, key, value, magic=1) for n, (key, value) in enumerate(messages)]
    return b"".join(entries)


def test_magic_0_becomes_magic_1(kernel: ModuleType) -> None:
    """Converted messages are numbered and keep null and empty keys and values, without timestamps,
    attributes or bytes behind the value. The bytes that were given do not change."""
    messages = [(b"k", b"v" * 300), (None, b""), (b"", None)]
    data = plain(messages) + raw_entry(9, b"\0\x10" + field(b"k") + field(b"v") + b"behind")
    file = File()
    rules = Rules(magic=1, keys_required=False)
    tail = a_tail(kernel, file, rules=rules, max_timestamp_ms=7)
    payload = bytearray(data)
    assert [40] == kernel.append_plain(payload, [tail], [0], [len(data)], NOW_MS)
    assert data == payload
    expected = unstamped([*messages, (b"k", b"v")])
    assert [(1000, expected)] == file.written
    assert (44, 1000 + len(expected), 7) == (tail.end_offset, tail.size, tail.max_timestamp_ms)


def test_converted_sets_of_one_request_do_not_mix(kernel: ModuleType) -> None:
    """Short, long and short sets of one request each write their own bytes to their own file."""
    sets = [plain([(b"k", letter * size)]) for letter, size in ((b"a", 9), (b"b", 900), (b"c", 5))]
    files = [File() for _ in sets]
    tails = [a_tail(kernel, file, rules=Rules(magic=1, keys_required=True)) for file in files]
    assert [40] * 3 == append(kernel, tails, sets)
    assert [
        [(1000, unstamped([(b"k", letter * size)]))]
        for letter, size in ((b"a", 9), (b"b", 900), (b"c", 5))
    ] == [file.written for file in files]


@pytest.mark.parametrize("reason", LEFT)
def test_sets_that_need_python_are_left(kernel: ModuleType, reason: str) -> None:
    """A set that needs the Python path leaves file, tail and messages unchanged; the set beside it
    is appended. Without the reason the set would be appended."""
    data, fields = LEFT[reason]
    file, other = File(), File()
    tail = a_tail(kernel, file, **fields)
    before = state(tail)
    payload = bytearray(data + PLAIN + PLAIN)
    at, size = len(data), len(PLAIN)
    tails = [tail, None, a_tail(kernel, other)]
    found = kernel.append_plain(payload, tails, [0, at, at + size], [at, size, size], NOW_MS)
    assert [-1, -1, 40] == found
    assert before == state(tail)
    assert data[8:30] == payload[:at][8:30]
    assert ([], 1) == (file.written, len(other.written))
    if data is PLAIN and "rules" not in fields:
        assert [40] == append(kernel, [a_tail(kernel, file)], [data])


def test_a_failed_write_leaves_the_set(kernel: ModuleType) -> None:
    """The tail does not change, and the Python path meets the error."""
    file = File()
    file.fails = True
    tail = a_tail(kernel, file)
    before = state(tail)
    assert [-1] == append(kernel, [tail], [PLAIN])
    assert before == state(tail)


def test_errors_of_callbacks_are_raised(kernel: ModuleType) -> None:
    """Errors of write callbacks, and a wrong object as a tail, are raised. A set outside of the
    payload is not read."""
    tail = a_tail(kernel, File())

    def fail(data: Buffer, position: int) -> None:
        raise RuntimeError("a bug")

    tail.write = fail
    with pytest.raises(RuntimeError):
        append(kernel, [tail], [PLAIN])
    with pytest.raises((TypeError, AttributeError)):
        append(kernel, [object()], [PLAIN])
    usual, file = bytearray(PLAIN), File()
    for start, size in ((-1, 9), (0, -1), (0, len(PLAIN) + 1), (len(PLAIN), 1), (1 << 60, 1)):
        with pytest.raises(IndexError):
            kernel.append_plain(usual, [a_tail(kernel, file)], [start], [size], NOW_MS)
    with pytest.raises(ValueError):
        kernel.append_plain(usual, [a_tail(kernel, file)], [0, 0], [len(PLAIN)], NOW_MS)
    assert [] == file.written


def test_a_file_with_a_descriptor_is_written_at_its_position(
    kernel: ModuleType, tmp_path: Path
) -> None:
    """Bytes are at their position whether kernel or Python writes them; a descriptor that accepts
    no byte leaves the set."""
    path = tmp_path / "00.log"
    path.write_bytes(b"x" * 1000)
    with path.open("r+b", buffering=0) as file:
        descriptor = file.fileno()
        tail = a_tail(kernel, File(), descriptor=descriptor)
        tail.write = lambda data, position: os.pwrite(descriptor, data, position)
        assert [40] == append(kernel, [tail], [PLAIN])
    assert b"x" * 1000 + plain([(None, b"a"), (None, b"b")], 40) == path.read_bytes()
    with path.open("rb", buffering=0) as file:
        tail = a_tail(kernel, File(), descriptor=file.fileno())
        tail.write = lambda data, position: os.pwrite(file.fileno(), data, position)
        before = state(tail)
        assert [-1] == append(kernel, [tail], [PLAIN])
        assert before == state(tail)


def test_an_index_with_room_gets_its_entries(kernel: ModuleType) -> None:
    """Offset less the base, and position of the set; the segment is full with its index."""
    view = memoryview(bytearray(32))
    index = an_index(kernel, view, capacity=3)
    tail = a_tail(kernel, File(), bytes_since_index=500, index_tail=index)
    assert [40] == append(kernel, [tail], [PLAIN])
    assert not tail.index_is_due
    assert (2, 40, 1000, False) == (
        index.entries,
        index.last_offset,
        index.last_position,
        tail.is_full,
    )
    assert pack(">II", 35, 1000) == view[8:16]
    tail.bytes_since_index = 500
    assert [42] == append(kernel, [tail], [PLAIN])
    assert not tail.index_is_due
    assert (3, True) == (index.entries, tail.is_full)
    assert pack(">II", 37, 1000 + len(PLAIN)) == view[16:24]


@pytest.mark.parametrize(
    "fields",
    [
        {"view": None},
        {"view": memoryview(bytearray(15))},
        {"capacity": 0},
        {"capacity": 1},
        {"allocated": 15},
        {"last_offset": 40},
        {"last_position": 1000},
    ],
)
def test_an_index_without_room_is_left_to_its_owner(
    kernel: ModuleType, fields: dict[str, Any]
) -> None:
    """Also one that has an entry behind the set. Nothing in it changes."""
    view = memoryview(bytearray(32))
    index = an_index(kernel, **({"view": view} | fields))
    tail = a_tail(kernel, File(), bytes_since_index=500, index_tail=index)
    assert [40] == append(kernel, [tail], [PLAIN])
    assert tail.index_is_due
    assert (1, bytes(32)) == (index.entries, bytes(view))


def test_a_time_index_gets_the_largest_timestamp(kernel: ModuleType) -> None:
    """With the entry of the offset: timestamp, and its offset less the base. One that is no larger
    than the last gets none. The segment is full with one place left, which is for its end."""
    view, times_view = memoryview(bytearray(64)), memoryview(bytearray(48))
    index = an_index(kernel, view, capacity=8, allocated=64)
    times = an_index(kernel, times_view, entries=0, last_offset=5, allocated=48)
    fields = {"max_timestamp_ms": 900, "max_timestamp_offset": 33, "rules": Rules(magic=0)}
    tail = a_tail(
        kernel, File(), bytes_since_index=500, index_tail=index, time_tail=times, **fields
    )
    for timestamp_ms, offset, entries in ((900, 33, 1), (900, 33, 1), (950, 41, 2), (990, 46, 3)):
        tail.max_timestamp_ms, tail.max_timestamp_offset = timestamp_ms, offset
        tail.bytes_since_index = 500
        assert not tail.is_full
        append(kernel, [tail], [PLAIN])
        assert not tail.index_is_due
        assert (entries, timestamp_ms, offset) == (times.entries, times.last_ms, times.last_offset)
    assert tail.is_full
    assert index.entries == 5
    entries_written = ((900, 28), (950, 36), (990, 41))
    assert b"".join(pack(">qI", *one) for one in entries_written) == times_view[:36]


@pytest.mark.parametrize("fields", [{"view": None}, {"capacity": 1}, {"allocated": 23}])
def test_a_time_index_without_room_leaves_both_to_their_owner(
    kernel: ModuleType, fields: dict[str, Any]
) -> None:
    """Neither index has changed then."""
    view, times_view = memoryview(bytearray(32)), memoryview(bytearray(48))
    index = an_index(kernel, view)
    times = an_index(kernel, **({"view": times_view} | fields))
    tail = a_tail(
        kernel, File(), bytes_since_index=500, index_tail=index, time_tail=times,
        max_timestamp_ms=900, max_timestamp_offset=33,
    )  # fmt: skip
    assert [40] == append(kernel, [tail], [PLAIN])
    assert tail.index_is_due
    assert (1, 1, bytes(32), bytes(48)) == (
        index.entries,
        times.entries,
        bytes(view),
        bytes(times_view),
    )


@pytest.mark.parametrize("offset", [4, 29, 5 + (1 << 31)])
def test_a_timestamp_whose_offset_does_not_fit_gets_no_entry(
    kernel: ModuleType, offset: int
) -> None:
    """No CRC covers an offset: a damaged one may be below the last, or too far from the base."""
    times_view = memoryview(bytearray(48))
    index = an_index(kernel, memoryview(bytearray(32)))
    times = an_index(kernel, times_view, allocated=48)
    tail = a_tail(
        kernel, File(), bytes_since_index=500, index_tail=index, time_tail=times,
        max_timestamp_ms=900, max_timestamp_offset=offset,
    )  # fmt: skip
    append(kernel, [tail], [PLAIN])
    assert not tail.index_is_due
    assert (2, 1, bytes(48)) == (index.entries, times.entries, bytes(times_view))


@pytest.mark.parametrize("seed", range(20))
def test_both_kernels_append_the_same(seed: int) -> None:
    """Both kernels append random valid and invalid sets to tails of every kind alike."""
    native, drawn = native_or_skip(), random.Random(seed)
    rules = drawn.choice(
        [
            None,
            Rules(magic=0),
            Rules(magic=1),
            Rules(magic=1, keys_required=True),
            Rules(magic=1, log_append_time=True),
            Rules(magic=1, max_difference_ms=4000),
        ]
    )
    fields = {"rules": rules, "segment_bytes": 3000, "first_ms": drawn.choice([-1, 500])}
    fields["age_max_ms"] = drawn.choice([600, 1 << 40])
    files = {kernel: File() for kernel in (native, _python)}
    tails = {kernel: a_tail(kernel, file, **fields) for kernel, file in files.items()}
    room = {"capacity": drawn.randrange(1, 9), "allocated": drawn.randrange(96)}
    for kernel, tail in tails.items():
        tail.index_tail = an_index(kernel, memoryview(bytearray(64)), **room)
        tail.time_tail = an_index(kernel, memoryview(bytearray(96)), **room)
    for _ in range(60):
        magic = drawn.randrange(2)
        key = drawn.choice([None, b"k", b"k"])
        data = bytearray(plain([(key, bytes(drawn.randrange(90)))] * drawn.randrange(4), 9, magic))
        if drawn.random() < 0.1:
            data += plain([(key, b"v")], 9, drawn.randrange(2))
        if data and drawn.random() < 0.2:
            data[drawn.randrange(len(data))] ^= 1 << drawn.randrange(8)
        if drawn.random() < 0.1:
            del data[drawn.randrange(len(data) + 1) :]
        now_ms = NOW_MS + drawn.randrange(1000)
        results = [append(kernel, [tail], [data], now_ms) for kernel, tail in tails.items()]
        assert results[0] == results[1], data.hex()
        assert drawn_state(tails[native]) == drawn_state(tails[_python])
    assert files[native].written == files[_python].written


def drawn_state(tail: Any) -> dict[str, Any]:
    """The state of a tail and of its indexes, which are objects of one kernel."""
    found = state(tail)
    for name in ("index_tail", "time_tail"):
        index = found.pop(name)
        found |= {f"{name}.{field}": getattr(index, field) for field in INDEX_FIELDS}
        found[f"{name}.view"] = bytes(index.view)
    return found


INDEX_FIELDS = ("entries", "last_offset", "last_position", "last_ms")
