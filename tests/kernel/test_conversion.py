"""Messages of one magic made into messages of another."""

from __future__ import annotations

from struct import pack
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.kernel.types import CorruptMessage
from tests import strategies
from tests.kernel.sets import entry, plain, raw_entry, wrapper

THREE = [(b"k", b"value"), (None, b"x" * 10), (b"", None)]


def converted(kernel: ModuleType, data: bytes, magic: int, *options: Any) -> bytes:
    output = bytearray(2 * len(data))
    done = kernel.convert(data, output, magic, *options)
    assert done.read == len(data)
    return bytes(output[: done.written])


def test_down(kernel: ModuleType) -> None:
    """Magic 0 has no timestamp; offset, key and value stay."""
    assert plain(THREE, 5) == converted(kernel, plain(THREE, 5, 1), 0)


def test_up(kernel: ModuleType) -> None:
    """Messages of magic 0 get the given timestamp, or none."""
    expected = [entry(5 + i, *pair, magic=1, timestamp_ms=-1) for i, pair in enumerate(THREE)]
    assert b"".join(expected) == converted(kernel, plain(THREE, 5), 1)
    stamped = entry(5, b"k", b"v", magic=1, timestamp_ms=77, attributes=8)
    assert stamped == converted(kernel, entry(5, b"k", b"v"), 1, 0, 77, True)


def test_messages_of_the_wanted_magic_keep_every_byte(kernel: ModuleType) -> None:
    """Messages that have the magic already keep timestamp, type, unknown attributes and bytes
    behind the value."""
    odd = entry(6, b"k", b"v", magic=1, timestamp_ms=9, attributes=0xF8)
    assert odd + entry(7, None, b"", magic=1) == converted(
        kernel, odd + entry(7, None, b"", attributes=0xF0), 1
    )


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("position", [18, 22])
def test_a_length_below_0_is_null(kernel: ModuleType, magic: int, position: int) -> None:
    """Any negative length means null, and becomes -1, with the CRC of what is written."""
    odd = bytearray(entry(5, None, None, magic=1 - magic))
    position += 8 * (1 - magic)
    odd[position : position + 4] = pack(">i", -7)
    data = raw_entry(5, bytes(odd[16:]))
    assert entry(5, None, None, magic=magic) == converted(kernel, data, magic)


@given(pairs=strategies.pairs, magic=st.integers(0, 1), shift=st.integers(-5, 1 << 40))
def test_any_messages_with_any_shift(
    kernel: ModuleType, pairs: list[Any], magic: int, shift: int
) -> None:
    """The result has the same messages in the other magic, with shifted offsets."""
    expected = [
        entry(5 + shift + i, *pair, magic=magic, timestamp_ms=-1) for i, pair in enumerate(pairs)
    ]
    assert b"".join(expected) == converted(kernel, plain(pairs, 5, 1 - magic), magic, shift)


def test_any_output_size_gives_the_same_bytes(kernel: ModuleType) -> None:
    """Repeated calls with a small output make the same bytes as one call."""
    data = plain(THREE, 5)
    whole = converted(kernel, data, 1)
    for room in range(44, len(whole) + 1):
        rest, found = memoryview(data), b""
        while rest:
            output = bytearray(room)
            done = kernel.convert(rest, output, 1)
            assert done.entries
            rest, found = rest[done.read :], found + output[: done.written]
        assert whole == found


def test_no_room_for_the_first(kernel: ModuleType) -> None:
    """An output too small for the first message reads and writes nothing."""
    assert (0, 0, 0, False) == kernel.convert(plain(THREE), bytearray(37), 1)


def test_stops_in_front_of_a_wrapper(kernel: ModuleType) -> None:
    """Conversion stops at a wrapper, which the caller unpacks."""
    head = plain(THREE)
    data = head + wrapper(4, head) + head
    assert (len(head), len(head), 3, True) == kernel.convert(data, bytearray(999), 0)
    assert (0, 0, 0, True) == kernel.convert(data[len(head) :], bytearray(999), 0)


def test_cut_entry_waits(kernel: ModuleType) -> None:
    """At every cut the whole entries before it are converted."""
    data = plain(THREE, 0, 1)
    ends = [40, 84, 118]
    for size in range(len(data) + 1):
        done = kernel.convert(data[:size], bytearray(999), 0)
        count = sum(end <= size for end in ends)
        assert (count, ends[count - 1] if count else 0) == (done.entries, done.read)


def test_broken_entry(kernel: ModuleType) -> None:
    """The entries before it are converted and the next call raises: a new CRC must not hide a wrong
    one."""
    good = entry(0, b"k", b"v", magic=1)
    bad_crc = good[:-1] + b"x"
    for bad, reason in (
        (bad_crc, "stored crc"),
        (bytes(12), "corrupt size"),
        (entry(0, b"", b"", magic=3), "magic 3"),
        (good[:26] + b"\x00\xff\xff\xff" + good[30:], "extends beyond the message"),
    ):
        assert (len(good), 28, 1, False) == kernel.convert(good + bad, bytearray(999), 0)
        with pytest.raises(CorruptMessage, match=reason):
            kernel.convert(bad, bytearray(999), 0)
    assert kernel.convert(bad_crc, bytearray(999), 1).entries == 1


def test_unknown_magic_is_not_written(kernel: ModuleType) -> None:
    """Magic 2 is refused, since it is no message set."""
    with pytest.raises(ValueError, match="magic 2 cannot be written"):
        kernel.convert(b"", bytearray(), 2)
    with pytest.raises(BufferError):
        kernel.convert(b"", b"", 0)
