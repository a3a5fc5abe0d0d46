"""Both kernels do the same to anything, sound or broken, and nothing makes either crash."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.kernel import _python
from kafka08.kernel.types import (
    BadTimestamp,
    CorruptMessage,
    EntryTooLarge,
    Rules,
    UnknownCodec,
    Unpacker,
)
from tests import strategies
from tests.kernel.conftest import native_or_skip
from tests.kernel.sets import GZIP, entry, plain, records, unpack, wrapper

SAMPLE = (
    plain([(b"k", b"value"), (None, b"x" * 10)], 5)
    + wrapper(9, plain([(b"a", None), (None, b""), (b"", b"inner")], 7))
    + entry(10, None, b"v", magic=1, timestamp_ms=1)
    + wrapper(
        12, wrapper(1, entry(0, b"k", b"1", magic=1) + entry(1, b"k", b"2", magic=1), magic=1)
    )
)
RECORDS = (
    records(5, [(b"k", b"value"), (None, b"x" * 10)])
    + records(7, [(b"a", None), (None, b"")], headers=(("h", b"1"), ("", None)))
    + records(9, [(b"", b"inner"), (b"k", b"last")], codec=GZIP)
    + records(11, [(b"k", b"stamped")], append_time=True)
    + records(12, [(b"\0\0\0\0", b"\0\0\0\0\0\0")], control=True)
    + entry(13, None, b"v", magic=1, timestamp_ms=1)
)
SAMPLES = {"messages": SAMPLE, "records": RECORDS}
KNOWN = (BadTimestamp, CorruptMessage, EntryTooLarge, UnknownCodec)
STRICT = Rules(magic=1, max_difference_ms=500, keys_required=True)
APPENDED = Rules(magic=1, log_append_time=True)


@pytest.fixture(scope="module")
def native() -> ModuleType:
    return native_or_skip()


def validate(kernel: ModuleType, data: bytes) -> Any:
    return repr(kernel.validate(data, 60))


def number(kernel: ModuleType, data: bytes) -> Any:
    target = bytearray(data)
    found = kernel.validate_and_assign(target, 100, 1 << 20, verify_crc=False)
    return found.codec or (repr(found), target)


def find_offset(kernel: ModuleType, data: bytes) -> Any:
    return [kernel.find_offset(data, target) for target in (0, 6, 9, 1 << 62)]


def recover(kernel: ModuleType, data: bytes) -> Any:
    found = kernel.recover(data, 30, 10)
    return (
        found.valid_bytes,
        found.last_offset,
        found.count,
        found.index_points,
        found.since_last_index,
        repr(found.error),
        found.time_points,
        found.max_timestamp_ms,
        found.max_timestamp_offset,
    )


def runs(kernel: ModuleType, data: bytes) -> Any:
    return kernel.runs(data)


def entries(kernel: ModuleType, data: bytes) -> Any:
    return gather(
        kernel.entries(data, verify_crc=True),
        lambda e: (
            (e.offset, e.magic, e.attributes, e.crc, e.key, e.value, e.position, e.size),
            (e.timestamp_ms, e.timestamp_type),
        ),
    )


def messages(kernel: ModuleType, data: bytes, verify_crc: bool = True) -> Any:
    iterator = kernel.messages(data, "t", 0, 6, unpack, None, None, verify_crc, 12)
    found = gather(iterator, repr)
    return found, iterator.next_offset, iterator.position_offset


def unchecked_messages(kernel: ModuleType, data: bytes) -> Any:
    """Without CRCs a flipped byte gets as far as lengths, codecs and offsets."""
    return messages(kernel, data, verify_crc=False)


def columns(kernel: ModuleType, data: bytes) -> Any:
    return gather(
        kernel.column_batches(
            *(data, 6, 12, unpack),
            verify_crc=False,
            max_rows=2,
            timestamps=True,
            timestamp_types=True,
        ),
        lambda c: (
            c.count,
            bytes(c.offsets),
            bytes(c.key_offsets),
            bytes(c.key_data),
            c.key_validity,
            bytes(c.value_offsets),
            bytes(c.value_data),
            c.value_validity,
            c.next_offset,
            c.more,
            bytes(c.timestamps),
            c.timestamp_validity,
            bytes(c.timestamp_types),
        ),
    )


def columns_in_place(kernel: ModuleType, data: bytes) -> Any:
    whole = bytearray(data)
    return gather(
        kernel.column_batches(whole, 6, 12, unpack, verify_crc=False, max_rows=2, in_place=True),
        lambda c: (
            bytes(c.offsets),
            bytes(c.key_offsets),
            bytes(c.key_data),
            bytes(c.value_offsets),
            bytes(c.value_data),
            c.value_validity,
            c.next_offset,
            c.more,
        ),
    )


def compaction(kernel: ModuleType, data: bytes) -> Any:
    offset_map = kernel.OffsetMap(4, 3)
    refused = offset_map.add(data, 6)
    output = bytearray(len(data))
    return refused, len(offset_map), offset_map.retain(data, output, False), output


def stamp(kernel: ModuleType, data: bytes, rules: Rules = STRICT) -> Any:
    target = bytearray(data)
    try:
        found = kernel.validate_and_stamp(target, 100, 1 << 20, rules, 1000)
    except KNOWN as error:
        return type(error), str(error), target
    return repr(found), target


def stamp_append_time(kernel: ModuleType, data: bytes) -> Any:
    return stamp(kernel, data, APPENDED)


def check_messages(kernel: ModuleType, data: bytes) -> Any:
    return repr(kernel.check_messages(data, STRICT, 1000))


def check_messages_inside(kernel: ModuleType, data: bytes) -> Any:
    return repr(kernel.check_messages(data, Rules(), 1000, 0))


def set_wrapper(kernel: ModuleType, data: bytes) -> Any:
    target = bytearray(data)
    kernel.set_wrapper(target, 77, 1006, False)
    return target


def convert(kernel: ModuleType, data: bytes) -> Any:
    """Up, down, and into little room."""
    found = []
    for magic, room in ((0, len(data)), (1, 2 * len(data)), (1, len(data) // 2)):
        output = bytearray(room)
        found.append((kernel.convert(data, output, magic, 3, 5000, True), output))
    return found


def scan_timestamp(kernel: ModuleType, data: bytes) -> Any:
    return [kernel.scan_timestamp(data, target) for target in (-1, 0, 1007, 1 << 62)]


def find_timestamp(kernel: ModuleType, data: bytes) -> Any:
    return [kernel.find_timestamp(data, target, unpack, 6) for target in (-1, 0, 1007, 1 << 62)]


def budget(kernel: ModuleType, data: bytes) -> Any:
    """The sizes allowed, in the order of the wrappers."""
    limits: list[int] = []

    def unpack_some(codec: int, value: Any, limit: int) -> bytes:
        limits.append(limit)
        return unpack(codec, value)

    walk = kernel.messages(data, "t", 0, 0, Unpacker(unpack_some, 1000), verify_crc=False)
    return gather(walk, repr), limits


def gather(iterator: Any, show: Callable[[Any], Any]) -> list[Any]:
    """The items of an iterator, its error last."""
    found = []
    try:
        for item in iterator:
            found.append(show(item))
    except KNOWN as error:
        found.append((type(error), str(error)))
    return found


CALLS = [
    validate,
    number,
    find_offset,
    recover,
    runs,
    entries,
    messages,
    unchecked_messages,
    columns,
    columns_in_place,
    compaction,
    stamp,
    stamp_append_time,
    check_messages,
    check_messages_inside,
    set_wrapper,
    convert,
    scan_timestamp,
    find_timestamp,
    budget,
]


def outcome(call: Callable[[ModuleType, bytes], Any], kernel: ModuleType, data: bytes) -> Any:
    """The result, or which of the known errors; any other fails the test."""
    try:
        return call(kernel, data)
    except KNOWN as error:
        return type(error), str(error)


def assert_same(native: ModuleType, call: Callable[..., Any], data: bytes) -> None:
    assert outcome(call, _python, data) == outcome(call, native, data), data.hex()


each_sample = pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES)
each_call = pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)


@each_call
@each_sample
def test_cut_at_every_byte(native: ModuleType, call: Callable[..., Any], sample: bytes) -> None:
    """Both kernels give the same result or the same error wherever the data ends."""
    for size in range(len(sample) + 1):
        assert_same(native, call, sample[:size])


@each_call
@each_sample
def test_every_byte_flipped(native: ModuleType, call: Callable[..., Any], sample: bytes) -> None:
    """For each byte inverted, or with its lowest or highest bit flipped, both kernels give the same
    error or the same messages."""
    for position in range(len(sample)):
        for bits in (0x01, 0x80, 0xFF):
            data = bytearray(sample)
            data[position] ^= bits
            assert_same(native, call, bytes(data))


@each_call
@given(
    pairs=strategies.pairs,
    magic=st.integers(0, 1),
    nested=st.booleans(),
    changes=st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 255)), max_size=4),
    cut=st.integers(0, 40),
)
def test_any_set_with_any_damage(
    native: ModuleType,
    call: Callable[..., Any],
    pairs: list[tuple[bytes | None, bytes | None]],
    magic: int,
    nested: bool,
    changes: list[tuple[int, int]],
    cut: int,
) -> None:
    """Both kernels agree on damage inside wrappers too, which no CRC of the wrapper reveals."""
    inner = damaged(plain(pairs, 5, magic), changes)
    wrappers = wrapper(9, inner) + wrapper(12, inner, magic=1, timestamp_ms=1010)
    data = wrappers if nested else inner
    assert_same(native, call, data[: len(data) - cut])


def damaged(data: bytes, changes: list[tuple[int, int]]) -> bytes:
    target = bytearray(data)
    for position, value in changes:
        if target:
            target[position % len(target)] = value
    return bytes(target)


@each_call
@given(
    pairs=strategies.pairs.filter(bool),
    codec=st.sampled_from([0, GZIP]),
    changes=st.lists(st.tuples(st.integers(57, 1 << 20), st.integers(0, 255)), max_size=4),
    cut=st.integers(0, 40),
)
def test_any_records_with_any_damage(
    native: ModuleType,
    call: Callable[..., Any],
    pairs: list[tuple[bytes | None, bytes | None]],
    codec: int,
    changes: list[tuple[int, int]],
    cut: int,
) -> None:
    """Both kernels agree on damage among records, which is found where CRCs are not checked."""
    data = records(5, pairs, headers=(("name", b"v"),), codec=codec)
    damage = [(57 + at % (len(data) - 57), value) for at, value in changes]
    assert_same(native, call, damaged(data, damage)[: len(data) - cut])


@each_call
@given(data=st.binary(max_size=120))
def test_noise(native: ModuleType, call: Callable[..., Any], data: bytes) -> None:
    """Both kernels give the same result or the same error for any bytes."""
    assert_same(native, call, data)
