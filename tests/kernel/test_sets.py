"""One level of a message set: check, number, search, recover, list and build."""

from __future__ import annotations

from struct import pack
from types import ModuleType

import pytest

from kafka08.kernel.types import CorruptMessage, EntryTooLarge, Run, UnknownCodec
from tests.kernel.sets import entry, plain, raw_entry, wrapper

NO_LIMIT = 1 << 40
THREE = [(b"k", b"value"), (None, b"x" * 10), (b"", None)]
SAMPLE = bytes.fromhex(
    "0000000000000000 0000001a e4ffc829 00 00 00000005 6b65792d30 00000007 76616c75652d30"
)
"""key-0, value-0 at offset 0, as Kafka 0.8.2.2 stored it."""


def flipped(data: bytes, position: int, bits: int = 1) -> bytes:
    return data[:position] + bytes((data[position] ^ bits,)) + data[position + 1 :]


# ---- validate ----


def test_summary_of_a_sound_set(kernel: ModuleType) -> None:
    """The summary has count, bytes, first and last offset, codec, largest entry and whether offsets
    rise."""
    summary = kernel.validate(plain(THREE, 7), NO_LIMIT)
    assert (3, 32 + 36 + 26, 7, 9) == (
        summary.count,
        summary.size,
        summary.first_offset,
        summary.last_offset,
    )
    assert (0, 36, True) == (summary.codec, summary.largest_entry, summary.monotonic)


def test_summary_of_an_empty_set(kernel: ModuleType) -> None:
    """An empty set is valid and has no offsets."""
    summary = kernel.validate(b"", NO_LIMIT)
    assert (0, 0, -1, -1) == (
        summary.count,
        summary.size,
        summary.first_offset,
        summary.last_offset,
    )
    assert summary.monotonic


def test_partial_entry_at_the_end_is_not_counted(kernel: ModuleType) -> None:
    """Cut at every byte, a set is valid up to its last whole entry."""
    data = plain(THREE)
    ends = [0, 32, 68, 94]
    for size in range(len(data) + 1):
        summary = kernel.validate(data[:size], NO_LIMIT)
        assert max(end for end in ends if end <= size) == summary.size
        assert summary.count == ends.index(summary.size)


def test_every_flipped_byte_behind_the_offset_is_found(kernel: ModuleType) -> None:
    """CRC and sizes protect every byte of an entry but its offset."""
    data = plain(THREE)
    for position in range(12, 32):
        with pytest.raises(CorruptMessage, match="crc") as caught:
            kernel.validate(flipped(data, position), NO_LIMIT)
        assert (0, 0) == (caught.value.position, caught.value.offset)
    for position in range(8, 11):  # a size so large that the entry looks partial
        assert kernel.validate(flipped(data, position), NO_LIMIT).count == 0
    with pytest.raises(CorruptMessage):
        kernel.validate(flipped(data, 11), NO_LIMIT)


@pytest.mark.parametrize("size", [13, 0, -1, -(1 << 31)])
def test_size_below_14_is_corrupt(kernel: ModuleType, size: int) -> None:
    """This holds even if the entry is cut right behind its size, as in ByteBufferMessageSet."""
    data = plain(THREE) + pack(">qi", 99, size)
    with pytest.raises(CorruptMessage, match="corrupt size") as caught:
        kernel.validate(data, NO_LIMIT)
    assert (94, 99) == (caught.value.position, caught.value.offset)


def test_size_beyond_the_data_is_a_partial_entry(kernel: ModuleType) -> None:
    """The largest int32 as a size reads nothing beyond the end."""
    data = plain(THREE) + pack(">qi", 99, (1 << 31) - 1) + bytes(100)
    assert kernel.validate(data, NO_LIMIT).count == 3


def test_limit_counts_the_whole_entry(kernel: ModuleType) -> None:
    """The 12 bytes of the header count towards max.message.bytes."""
    assert kernel.validate(plain(THREE), 36).count == 3
    with pytest.raises(EntryTooLarge) as caught:
        kernel.validate(plain(THREE), 35)
    assert (32, 36, 35) == (caught.value.position, caught.value.size, caught.value.limit)


def test_limit_is_checked_before_the_crc(kernel: ModuleType) -> None:
    """The order of Log.analyzeAndValidateMessageSet decides the error code."""
    with pytest.raises(EntryTooLarge):
        kernel.validate(flipped(plain(THREE), 12), 31)


def test_codec_of_the_last_wrapper(kernel: ModuleType) -> None:
    """The last of several codecs in a set counts, also before plain entries."""
    data = wrapper(0, b"") + wrapper(1, b"", codec=3) + entry(2, None, b"x")
    assert kernel.validate(data, NO_LIMIT).codec == 3


@pytest.mark.parametrize("codec", [4, 5, 6, 7])
def test_unknown_codec(kernel: ModuleType, codec: int) -> None:
    """The codec is checked after the CRC; bits above the lowest three are ignored."""
    with pytest.raises(UnknownCodec, match=str(codec)):
        kernel.validate(entry(0, None, b"x", attributes=codec | 0x78), NO_LIMIT)
    with pytest.raises(CorruptMessage):
        kernel.validate(flipped(entry(0, None, b"x", attributes=codec), 12), NO_LIMIT)
    assert kernel.validate(entry(0, None, b"x", attributes=0x78), NO_LIMIT).codec == 0


@pytest.mark.parametrize(
    ("offsets", "monotonic"), [([3, 4, 9], True), ([3, 3], False), ([4, 3], False), ([-1], False)]
)
def test_monotonic(kernel: ModuleType, offsets: list[int], monotonic: bool) -> None:
    """Every offset is above the one before, and none is negative."""
    data = b"".join(entry(offset, None, b"x") for offset in offsets)
    assert kernel.validate(data, NO_LIMIT).monotonic is monotonic


# ---- number ----


def test_numbers_in_place(kernel: ModuleType) -> None:
    """Offsets change and no other byte does; the bytes behind the last whole entry stay."""
    data = bytearray(plain(THREE) + b"partial")
    summary = kernel.validate_and_assign(data, 1000, NO_LIMIT)
    assert plain(THREE, 1000) + b"partial" == data
    assert (3, 1000, 1002) == (summary.count, summary.first_offset, summary.last_offset)


def test_numbers_a_slice_of_a_larger_buffer(kernel: ModuleType) -> None:
    """A request is numbered inside the receive buffer."""
    buffer = bytearray(b"head" + plain(THREE) + b"tail")
    kernel.validate_and_assign(memoryview(buffer)[4:-4], 5, NO_LIMIT)
    assert b"head" + plain(THREE, 5) + b"tail" == buffer


def test_numbering_returns_the_codec(kernel: ModuleType) -> None:
    """Numbering returns the set's codec, because a compressed set must be unpacked first."""
    data = bytearray(wrapper(2, plain(THREE)))
    assert kernel.validate_and_assign(data, 5, NO_LIMIT).codec == 1


def test_crc_can_be_left_out(kernel: ModuleType) -> None:
    """Messages inside a wrapper are numbered without checking their CRC, as the JVM does."""
    data = bytearray(flipped(plain(THREE), 12))
    assert kernel.validate_and_assign(data, 0, NO_LIMIT, verify_crc=False).count == 3


def test_read_only_data_is_refused(kernel: ModuleType) -> None:
    """Numbering in place raises BufferError for a bytes object."""
    with pytest.raises(BufferError):
        kernel.validate_and_assign(plain(THREE), 0, NO_LIMIT)


@pytest.mark.parametrize("base_offset", [-1, (1 << 63) - 1])
def test_offsets_stay_within_63_bits(kernel: ModuleType, base_offset: int) -> None:
    """A base offset that is negative or would overflow is an OverflowError."""
    with pytest.raises(OverflowError):
        kernel.validate_and_assign(bytearray(plain(THREE)), base_offset, NO_LIMIT)
    with pytest.raises(OverflowError):
        kernel.build_set(THREE, base_offset)


def test_large_sets_without_the_gil(kernel: ModuleType) -> None:
    """A set for which the GIL is released gives the same result."""
    data = bytearray(plain([(b"key", b"v" * 1000)] * 300))
    summary = kernel.validate_and_assign(data, 10, NO_LIMIT)
    assert (300, 309) == (summary.count, summary.last_offset)
    data[-1] ^= 1
    with pytest.raises(CorruptMessage):
        kernel.validate_and_assign(data, 10, NO_LIMIT)


def test_runs(kernel: ModuleType) -> None:
    """Adjacent plain entries form one run, each wrapper its own, and a partial entry none."""
    first, second = plain(THREE), wrapper(9, b"inner")
    data = first + second + second + first + first[:20]
    a, b = len(first), len(second)
    assert kernel.runs(data) == [
        Run(0, a, 0),
        Run(a, a + b, 1),
        Run(a + b, a + 2 * b, 1),
        Run(a + 2 * b, 2 * a + 2 * b, 0),
    ]
    assert kernel.runs(b"") == []
    with pytest.raises(UnknownCodec):
        kernel.runs(entry(0, None, None, attributes=5))
    with pytest.raises(CorruptMessage):
        kernel.runs(pack(">qi", 0, 13) + bytes(20))


# ---- recover ----


def test_recover_stops_at_the_first_broken_entry(kernel: ModuleType) -> None:
    """The bytes before it count as valid; the error has its position."""
    data = plain(THREE, 5)
    found = kernel.recover(flipped(data, 85), 4096, 0)
    assert (68, 6, 2) == (found.valid_bytes, found.last_offset, found.count)
    assert isinstance(found.error, CorruptMessage)
    assert found.error.position == 68


def test_recover_takes_an_incomplete_entry_for_the_end_of_the_chunk(kernel: ModuleType) -> None:
    """It is no error: the next chunk begins with that entry."""
    data = plain(THREE, 5)
    found = kernel.recover(data[:-1], 4096, 0)
    assert (68, 6, None) == (found.valid_bytes, found.last_offset, found.error)
    found = kernel.recover(data[found.valid_bytes :], 4096, found.since_last_index)
    assert (26, 7, None) == (found.valid_bytes, found.last_offset, found.error)


def test_recover_points_of_the_sparse_index(kernel: ModuleType) -> None:
    """An index point comes before an entry once strictly more bytes than the interval lie behind
    the last point."""
    data = plain([(None, b"x" * 74)] * 10, 20) + wrapper(35, b"inner")
    found = kernel.recover(data, 200, 0)
    assert found.index_points == [(300, 23, 0), (600, 26, 0), (900, 29, 0)]
    assert found.since_last_index == len(data) - 900
    found = kernel.recover(data, 999, 0)
    assert found.index_points == [(1000, 35, 1)]


def test_recover_in_chunks_finds_the_same_points(kernel: ModuleType) -> None:
    """Positions are relative to the chunk; the distance to the last point is passed from call to
    call."""
    data = plain([(None, b"x" * 74)] * 10, 20)
    whole = kernel.recover(data, 150, 0)
    points = []
    position = since = 0
    while position < len(data):
        found = kernel.recover(data[position : position + 250], 150, since)
        points += [(position + at, offset, codec) for at, offset, codec in found.index_points]
        position += found.valid_bytes
        since = found.since_last_index
    assert whole.index_points == points


def test_recover_many_points(kernel: ModuleType) -> None:
    """An interval of 0 gives a point for every entry but the first."""
    found = kernel.recover(plain([(None, b"x")] * 1000), 0, 0)
    assert len(found.index_points) == 999


# ---- list ----


def test_entries_show_everything(kernel: ModuleType) -> None:
    """Entries have all fields of both magics and their positions."""
    data = entry(3, b"k", b"v", magic=1, attributes=0x08, timestamp_ms=99) + wrapper(7, b"inner")
    first, second = kernel.entries(data, verify_crc=True)
    assert (3, 1, 0x08, 99, b"k", b"v") == (
        first.offset,
        first.magic,
        first.attributes,
        first.timestamp_ms,
        first.key,
        first.value,
    )
    assert (0, 24, 36) == (first.position, first.size, first.entry_size)
    assert (7, 36, 1, -1) == (second.offset, second.position, second.codec, second.timestamp_ms)
    assert "offset=3" in repr(first)


def test_entries_of_a_captured_message(kernel: ModuleType) -> None:
    """A message that 0.8.2.2 stored is read, and built again byte for byte."""
    (only,) = kernel.entries(SAMPLE, verify_crc=True)
    assert (0xE4FFC829, b"key-0", b"value-0") == (only.crc, only.key, only.value)
    assert kernel.build_set([(b"key-0", b"value-0")]) == SAMPLE


def test_entries_check_the_crc_on_request(kernel: ModuleType) -> None:
    """A flipped bit is CorruptMessage with verify_crc, and passes without."""
    data = flipped(plain(THREE), 31)
    assert len(list(kernel.entries(data))) == 3
    with pytest.raises(CorruptMessage, match="crc"):
        list(kernel.entries(data, verify_crc=True))


NULL, HUGE = pack(">i", -1), pack(">i", (1 << 31) - 1)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"\x02\x00" + NULL + NULL, "magic 2"),
        (b"\xff\x00" + NULL + NULL, "magic 255"),
        (b"\x01\x00" + bytes(8), "key or value"),
        (b"\x01\x00" + bytes(8) + NULL, "key or value"),
        (b"\x00\x00" + HUGE + NULL, "key or value"),
        (b"\x00\x00" + pack(">i", 5) + NULL, "key or value"),
        (b"\x00\x00" + pack(">i", 1) + NULL, "key or value"),
        (b"\x00\x00" + NULL + HUGE, "key or value"),
        (b"\x00\x00" + NULL + pack(">i", 1), "key or value"),
    ],
)
def test_entries_whose_fields_leave_the_message(
    kernel: ModuleType, body: bytes, reason: str
) -> None:
    """Lengths inside a message are compared with the message's end, not with that of the data."""
    data = raw_entry(4, body) + plain(THREE)
    with pytest.raises(CorruptMessage, match=reason) as caught:
        list(kernel.entries(data))
    assert (0, 4) == (caught.value.position, caught.value.offset)


def test_negative_lengths_are_null_and_bytes_behind_the_value_ignored(
    kernel: ModuleType,
) -> None:
    """0.8: the JVM reads any negative length as null and never reads behind the value."""
    data = raw_entry(0, b"\x00\x00" + pack(">ii", -7, -(1 << 31)) + b"more")
    (only,) = kernel.entries(data, verify_crc=True)
    assert (None, None) == (only.key, only.value)


# ---- build ----


def test_build_set(kernel: ModuleType) -> None:
    """Messages are numbered from the base offset, with the given attributes; no messages are no
    bytes."""
    assert plain(THREE, 7) == kernel.build_set(THREE, 7)
    assert kernel.build_set([]) == b""
    assert kernel.build_set([(None, b"x")], 1, attributes=0x78) == entry(
        1, None, b"x", attributes=0x78
    )


def test_build_set_takes_any_bytes_like_field(kernel: ModuleType) -> None:
    """bytearray and memoryview give the same set as bytes."""
    pairs = [(bytearray(b"k"), memoryview(b"value")), (None, bytearray(10)), (b"", None)]
    assert plain([(b"k", b"value"), (None, bytes(10)), (b"", None)]) == kernel.build_set(pairs)


@pytest.mark.parametrize("pair", [("text", None), (None, 5)])
def test_build_set_refuses_text_and_numbers(kernel: ModuleType, pair: tuple[object]) -> None:
    """A key of text, or a number as value, is a TypeError."""
    with pytest.raises(TypeError):
        kernel.build_set([pair])


def test_wrap(kernel: ModuleType) -> None:
    """The result is one entry without a key around the compressed bytes, with the given offset and
    codec."""
    assert entry(9, None, b"packed", attributes=2) == kernel.wrap(b"packed", 9, 2)
    assert entry(9, None, b"", attributes=3) == kernel.wrap(memoryview(b""), 9, 3)


@pytest.mark.parametrize("size", [0, 1, 1 << 20])
def test_a_new_buffer_has_its_size_and_takes_bytes(kernel: ModuleType, size: int) -> None:
    """It is an ordinary bytearray with undefined contents."""
    buffer = kernel.new_buffer(size)
    assert type(buffer) is bytearray
    assert len(buffer) == size
    memoryview(buffer)[:] = bytes(range(256))[: size % 256] or bytes(size)
    assert buffer == (bytes(range(256))[: size % 256] or bytes(size))
