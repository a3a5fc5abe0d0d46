"""The cleaner's offset map: what goes in, what finds no room, what stays of a set."""

from __future__ import annotations

from hashlib import md5
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.kernel.types import CorruptMessage, Retained
from tests.kernel.sets import entry, plain, raw_entry

keys = st.binary(max_size=3) | st.sampled_from([b"k" * size for size in (55, 56, 63, 64, 65, 200)])
messages = st.lists(st.tuples(keys | st.none(), st.binary(max_size=5) | st.none()), max_size=30)


def retained(offset_map: object, data: bytes, *, keep_tombstones: bool = True) -> bytes:
    output = bytearray(len(data))
    found = offset_map.retain(data, output, keep_tombstones)  # type: ignore[attr-defined]
    return bytes(output[: found.written])


def test_the_last_message_of_a_key_stays(kernel: ModuleType) -> None:
    """The last message of each key keeps its offset; the empty key is a key."""
    data = plain([(b"a", b"1"), (b"b", b"2"), (b"a", b"3"), (b"", b"4"), (b"", b"5")], 10)
    offset_map = kernel.OffsetMap(10, 5)
    assert -1 == offset_map.add(data)
    assert 3 == len(offset_map)
    last = entry(11, b"b", b"2") + entry(12, b"a", b"3") + entry(14, b"", b"5")
    assert last == retained(offset_map, data)


def test_messages_outside_the_map_stay(kernel: ModuleType) -> None:
    """Messages below `from_offset` are not mapped; of a mapped key only older messages are
    removed."""
    data = plain([(b"a", b"1"), (b"b", b"2"), (b"a", b"3")], 10)
    offset_map = kernel.OffsetMap(10, 5)
    assert -1 == offset_map.add(data, 12)
    later = entry(20, b"a", b"9")
    assert data[-len(entry(12, b"a", b"3")) :] + later == retained(
        offset_map, plain([(b"a", b"1")], 10) + entry(12, b"a", b"3") + later
    )
    assert entry(11, b"b", b"2") == retained(offset_map, entry(11, b"b", b"2"))


def test_tombstones_stay_only_on_request(kernel: ModuleType) -> None:
    """A tombstone counts in the map like any other message."""
    data = entry(1, b"a", b"1") + entry(2, b"a", None)
    offset_map = kernel.OffsetMap(10, 5)
    offset_map.add(data)
    assert entry(2, b"a", None) == retained(offset_map, data, keep_tombstones=True)
    assert b"" == retained(offset_map, data, keep_tombstones=False)


def test_messages_without_key_are_dropped_and_counted(kernel: ModuleType) -> None:
    """They are never mapped, and `retain` returns how many it dropped."""
    data = entry(1, None, b"1") + entry(2, b"", b"2") + entry(3, None, None)
    offset_map = kernel.OffsetMap(10, 5)
    assert -1 == offset_map.add(data)
    output = bytearray(len(data))
    kept = entry(2, b"", b"2")
    assert Retained(len(kept), 3, 1, 2) == offset_map.retain(data, output, True)


def test_messages_that_cannot_be_read_stay(kernel: ModuleType) -> None:
    """A message of an unknown magic, or with a key beyond its end, stays and does not affect the
    others."""
    unknown = entry(1, b"a", b"1", magic=9)
    broken = raw_entry(2, b"\0\0" + b"\0\0\0\x64" + b"\0\0\0\0")
    data = unknown + broken + entry(3, b"a", b"3")
    offset_map = kernel.OffsetMap(10, 5)
    assert -1 == offset_map.add(data)
    assert 1 == len(offset_map)
    assert data == retained(offset_map, data)


def test_magic_1_is_read_by_its_own_layout(kernel: ModuleType) -> None:
    """The key lies behind the timestamp, and a retained message keeps both."""
    data = entry(1, b"a", b"1", magic=1, timestamp_ms=5) + entry(2, b"a", b"2", magic=1)
    offset_map = kernel.OffsetMap(10, 5)
    offset_map.add(data)
    assert entry(2, b"a", b"2", magic=1) == retained(offset_map, data)


def test_a_full_map_returns_the_first_refused_offset(kernel: ModuleType) -> None:
    """Known keys are still mapped, and so is every message before the refused one."""
    offset_map = kernel.OffsetMap(3, 2)
    data = plain([(b"a", b""), (b"b", b""), (b"a", b""), (b"c", b""), (b"b", b"")], 7)
    assert 10 == offset_map.add(data)
    assert 2 == len(offset_map)
    kept = [entry(8, b"b", b""), entry(9, b"a", b""), entry(10, b"c", b""), entry(11, b"b", b"")]
    assert b"".join(kept) == retained(offset_map, data)


def test_many_keys_in_a_table_that_is_nearly_full(kernel: ModuleType) -> None:
    """With 999 keys in 1000 slots collisions are resolved, and each key has its own offset."""
    offset_map = kernel.OffsetMap(1000, 999)
    data = plain([(b"%d" % number, b"") for number in range(999)])
    assert -1 == offset_map.add(data)
    assert -1 == offset_map.add(data)
    assert 999 == len(offset_map)
    assert data == retained(offset_map, data)
    assert 999 == offset_map.add(entry(999, b"one more", b""))


def test_a_partial_entry_is_left_out(kernel: ModuleType) -> None:
    """A set that ends within an entry is mapped and copied up to its last whole entry."""
    data = plain([(b"a", b"1"), (b"b", b"2")])
    offset_map = kernel.OffsetMap(10, 5)
    assert -1 == offset_map.add(data[:-1])
    assert 1 == len(offset_map)
    assert plain([(b"a", b"1")]) == retained(offset_map, data[:-1])


def test_a_corrupt_size_is_an_error(kernel: ModuleType) -> None:
    """Both `add` and `retain` raise CorruptMessage, with the size in its text."""
    data = entry(1, b"a", b"1") + bytes(12)
    offset_map = kernel.OffsetMap(10, 5)
    with pytest.raises(CorruptMessage, match="size 0"):
        offset_map.add(data)
    with pytest.raises(CorruptMessage, match="size 0"):
        offset_map.retain(data, bytearray(100), True)


@pytest.mark.parametrize(("slots", "capacity"), [(0, 0), (1, 1), (5, 5), (5, 0), (1 << 40, 5)])
def test_impossible_maps(kernel: ModuleType, slots: int, capacity: int) -> None:
    """A map has at least one free slot, or a search would not end; other sizes are refused."""
    with pytest.raises(ValueError, match="slots"):
        kernel.OffsetMap(slots, capacity)


def test_buffers_that_do_not_fit(kernel: ModuleType) -> None:
    """A smaller output or a negative offset is a ValueError, a read-only output a BufferError."""
    offset_map = kernel.OffsetMap(10, 5)
    with pytest.raises(ValueError, match="smaller"):
        offset_map.retain(bytes(50), bytearray(49), True)
    with pytest.raises(BufferError):
        offset_map.retain(bytes(5), bytes(5), True)
    with pytest.raises(ValueError, match="negative"):
        offset_map.add(b"", -1)


@given(pairs=messages, later=messages, keep=st.booleans(), room=st.integers(1, 40))
def test_any_messages(
    kernel: ModuleType,
    pairs: list[tuple[bytes | None, bytes | None]],
    later: list[tuple[bytes | None, bytes | None]],
    keep: bool,
    room: int,
) -> None:
    """Over two sets the map equals a dict of MD5 → offset."""
    data = plain(pairs + later, 100)
    offset_map = kernel.OffsetMap(room + 1, room)
    model: dict[bytes, int] = {}
    refused = -1
    for offset, (key, _) in enumerate(pairs + later, 100):
        if key is None:
            continue
        digest = md5(key).digest()
        if len(model) == room and digest not in model:
            refused = offset
            break
        model[digest] = offset
    assert refused == offset_map.add(data)
    assert len(model) == len(offset_map)
    expected = b"".join(
        entry(offset, key, value)
        for offset, (key, value) in enumerate(pairs + later, 100)
        if key is not None
        and (keep or value is not None)
        and offset >= model.get(md5(key).digest(), -1)
    )
    assert expected == retained(offset_map, data, keep_tombstones=keep)
