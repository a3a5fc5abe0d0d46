"""Plain sets at the ends of many logs: what is appended, what is left, and what both kernels do."""

from __future__ import annotations

import random
from types import ModuleType
from typing import Any

import pytest

from kafka08.kernel import _python
from kafka08.kernel._python_append import SegmentTail
from kafka08.kernel.types import Buffer, Rules
from tests.kernel.conftest import native_or_skip
from tests.kernel.sets import entry, plain, wrapper

NOW_MS = 5000
FIELDS = tuple(name for name in SegmentTail.__slots__ if name != "write")


class File:
    """What was written, as (position, bytes); `fails`: nothing is."""

    def __init__(self) -> None:
        self.written: list[tuple[int, bytes]] = []
        self.fails = False

    def write(self, data: Buffer, position: int) -> None:
        if self.fails:
            raise OSError(28, "No space left on device")
        self.written.append((position, bytes(data)))


def a_tail(kernel: ModuleType, file: File, **fields: Any) -> Any:
    tail = kernel.SegmentTail()
    values = {
        "size": 1000,
        "end_offset": 40,
        "tail_offset": 30,
        "tail_position": 900,
        "bytes_since_index": 100,
        "created_ms": 1000,
        "first_ms": -1,
        "max_timestamp_ms": -1,
        "max_timestamp_offset": 0,
        "max_entry_bytes": 10_000,
        "segment_bytes": 100_000,
        "index_interval_bytes": 200,
        "age_max_ms": 1_000_000,
        "takes_plain_sets": True,
        "is_full": False,
        "index_is_due": False,
        "rules": None,
        "write": file.write,
    }
    for name, value in (values | fields).items():
        setattr(tail, name, value)
    return tail


def state(tail: Any) -> dict[str, Any]:
    return {name: getattr(tail, name) for name in FIELDS}


def test_sets_go_to_their_tails(kernel: ModuleType) -> None:
    """Numbered from the end, written behind what is there; where the next one goes moves on."""
    first, second = File(), File()
    tails = [a_tail(kernel, first), a_tail(kernel, second, end_offset=7, size=10)]
    sets = [bytearray(plain([(None, b"a"), (None, b"b")])), bytearray(plain([(b"k", b"c")]))]
    assert [40, 7] == kernel.append_plain_sets(tails, sets, NOW_MS)
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
    """The bytes count again from the set that has it."""
    data = bytearray(plain([(None, b"a")]))
    for since, is_due in ((200, False), (201, True)):
        tail = a_tail(kernel, File(), bytes_since_index=since)
        kernel.append_plain_sets([tail], [data], NOW_MS)
        expected = len(data) if is_due else since + len(data)
        assert (is_due, expected) == (tail.index_is_due, tail.bytes_since_index)


def test_timestamps_are_checked_and_kept(kernel: ModuleType) -> None:
    """With rules: the largest one of the segment."""
    data = plain([(None, b"a"), (None, b"b")], magic=1)
    file = File()
    tail = a_tail(kernel, file, rules=Rules(magic=1), max_timestamp_ms=900)
    assert [40] == kernel.append_plain_sets([tail], [bytearray(data)], NOW_MS)
    assert (1001, 41) == (tail.max_timestamp_ms, tail.max_timestamp_offset)
    tail = a_tail(kernel, file, rules=Rules(magic=1, max_difference_ms=10))
    assert [-1] == kernel.append_plain_sets([tail], [bytearray(data)], NOW_MS)


PLAIN = plain([(None, b"a"), (None, b"b")])
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
    "another magic": (PLAIN, {"rules": Rules(magic=1)}),
    "another magic further on": (STAMPED + PLAIN, {"rules": Rules(magic=1)}),
    "an unknown codec": (entry(0, None, b"a", attributes=7), {}),
    "a message without its key": (STAMPED, {"rules": Rules(magic=1, keys_required=True)}),
    "256 KB": (plain([(None, bytes(9000))] * 30), {"segment_bytes": 1 << 20}),
}


@pytest.mark.parametrize("reason", LEFT)
def test_what_is_not_the_rule_is_left(kernel: ModuleType, reason: str) -> None:
    """Nothing is written, the tail stays as it was, and so do the messages; the set beside it is
    appended. Without the reason the set is taken, where it is one of the tail."""
    data, fields = LEFT[reason]
    file, other = File(), File()
    tail = a_tail(kernel, file, **fields)
    before = state(tail)
    tails = [tail, None, a_tail(kernel, other)]
    sets = [bytearray(data), bytearray(PLAIN), bytearray(PLAIN)]
    assert [-1, -1, 40] == kernel.append_plain_sets(tails, sets, NOW_MS)
    assert before == state(tail)
    assert data[8:30] == sets[0][8:30]
    assert ([], 1) == (file.written, len(other.written))
    if data is PLAIN and "rules" not in fields:
        assert [40] == kernel.append_plain_sets([a_tail(kernel, file)], [sets[0]], NOW_MS)


def test_what_cannot_be_written_is_left(kernel: ModuleType) -> None:
    """Whoever tries again meets the error; the tail stays as it was."""
    file = File()
    file.fails = True
    tail = a_tail(kernel, file)
    before = state(tail)
    assert [-1] == kernel.append_plain_sets([tail], [bytearray(PLAIN)], NOW_MS)
    assert before == state(tail)


def test_bugs_are_loud(kernel: ModuleType) -> None:
    """Of a caller, and of what writes."""
    tail = a_tail(kernel, File())
    with pytest.raises(ValueError, match="as many"):
        kernel.append_plain_sets([tail], [], NOW_MS)

    def fail(data: Buffer, position: int) -> None:
        raise RuntimeError("a bug")

    tail.write = fail
    with pytest.raises(RuntimeError):
        kernel.append_plain_sets([tail], [bytearray(PLAIN)], NOW_MS)


@pytest.mark.parametrize("seed", range(20))
def test_both_kernels_append_the_same(seed: int) -> None:
    """Random sets, sound and broken, to tails of every kind, one after the other."""
    native, drawn = native_or_skip(), random.Random(seed)
    rules = drawn.choice([None, Rules(), Rules(magic=1), Rules(magic=1, log_append_time=True)])
    fields = {"rules": rules, "segment_bytes": 3000, "first_ms": drawn.choice([-1, 500])}
    fields["age_max_ms"] = drawn.choice([600, 1 << 40])
    files = {kernel: File() for kernel in (native, _python)}
    tails = {kernel: a_tail(kernel, file, **fields) for kernel, file in files.items()}
    for _ in range(60):
        magic = drawn.randrange(2)
        data = bytearray(plain([(b"k", bytes(drawn.randrange(90)))] * drawn.randrange(4), 9, magic))
        if data and drawn.random() < 0.2:
            data[drawn.randrange(len(data))] ^= 1 << drawn.randrange(8)
        if drawn.random() < 0.1:
            del data[drawn.randrange(len(data) + 1) :]
        copies = {kernel: bytearray(data) for kernel in tails}
        now_ms = NOW_MS + drawn.randrange(1000)
        results = [
            kernel.append_plain_sets([tail], [copies[kernel]], now_ms)
            for kernel, tail in tails.items()
        ]
        assert results[0] == results[1], data.hex()
        assert state(tails[native]) == state(tails[_python])
    assert files[native].written == files[_python].written
