"""unpack_snappy: elements of every kind, where they end, and what must not be believed."""

from __future__ import annotations

from struct import pack
from types import ModuleType

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.kernel.choice import load_python
from tests.kernel.conftest import native_or_skip

HEADER = b"\x82SNAPPY\0" + pack(">ii", 1, 1)
LIMIT = 1 << 20
NOISE = bytes(n * 197 % 251 for n in range(300))


def block(elements: bytes, size: int) -> bytes:
    """A raw block that declares `size` bytes."""
    head = bytearray()
    while size >= 0x80:
        head.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes([*head, size]) + elements


def stream(*blocks: bytes) -> bytes:
    return HEADER + b"".join(pack(">i", len(each)) + each for each in blocks)


def literal(data: bytes, length_bytes: int = 0) -> bytes:
    """With the length in the tag, or in so many bytes behind it."""
    size = len(data) - 1
    if not length_bytes:
        return bytes([size << 2]) + data
    return bytes([(59 + length_bytes) << 2]) + size.to_bytes(length_bytes, "little") + data


def copy(length: int, back: int, offset_bytes: int) -> bytes:
    if offset_bytes == 1:
        return bytes([back >> 8 << 5 | (length - 4) << 2 | 1, back & 0xFF])
    tag = (length - 1) << 2 | (2 if offset_bytes == 2 else 3)
    return bytes([tag]) + back.to_bytes(offset_bytes, "little")


def copied(data: bytes, length: int, back: int) -> bytes:
    for _ in range(length):
        data += data[-back:][:1]
    return data


@pytest.mark.parametrize("room", [0, 200])
@pytest.mark.parametrize("offset_bytes", [1, 2, 4])
def test_copies_of_every_length_and_distance(
    kernel: ModuleType, offset_bytes: int, room: int
) -> None:
    """A copy repeats what begins so far back, at the end of the block or before other elements."""
    for back in [*range(1, 40), 64, 100, 255, 256, 300]:
        for length in range(4, 12) if offset_bytes == 1 else range(1, 65):
            elements = literal(NOISE, 2) + copy(length, back, offset_bytes)
            expected = copied(NOISE, length, back) + NOISE[:room]
            elements += literal(NOISE[:room], 1) if room else b""
            found = kernel.unpack_snappy(block(elements, len(expected)), LIMIT)
            assert found == expected, (back, length)


@pytest.mark.parametrize("length_bytes", range(5))
@pytest.mark.parametrize("size", [1, 15, 16, 17, 59, 60, 61, 256])
def test_literals(kernel: ModuleType, size: int, length_bytes: int) -> None:
    """A literal has its length in the tag, or in 1 to 4 bytes behind it."""
    if length_bytes or size <= 60:
        elements = literal(NOISE[:size], length_bytes) * 2 + literal(b"end!")
        expected = NOISE[:size] * 2 + b"end!"
        assert expected == kernel.unpack_snappy(block(elements, len(expected)), LIMIT)


def test_a_stream_of_blocks(kernel: ModuleType) -> None:
    """The blocks of a stream follow each other; `first_only` stops after one. A stream may have
    none, and up to three bytes behind them."""
    data = stream(block(literal(b"ab") + copy(6, 2, 1), 8), block(b"", 0), block(literal(b"c"), 1))
    assert kernel.unpack_snappy(data + b"xyz", LIMIT) == b"ababababc"
    assert kernel.unpack_snappy(data, LIMIT, True) == b"abababab"
    assert kernel.unpack_snappy(HEADER, LIMIT) == kernel.unpack_snappy(HEADER, 0, True) == b""
    assert kernel.unpack_snappy(block(b"", 0), 0) == b""


def test_a_copy_does_not_reach_into_the_block_before(kernel: ModuleType) -> None:
    """Each block stands for itself."""
    with pytest.raises(ValueError, match="does not unpack to the 4 bytes"):
        kernel.unpack_snappy(stream(block(literal(b"ab"), 2), block(copy(4, 2, 1), 4)), LIMIT)


def test_the_limit(kernel: ModuleType) -> None:
    """None if the blocks declare more than the limit, whatever their elements."""
    data = stream(block(literal(b"ab"), 2), block(literal(b"c"), 1))
    assert kernel.unpack_snappy(data, 3) == b"abc"
    assert kernel.unpack_snappy(data, 2) is None
    assert kernel.unpack_snappy(data, 2, True) == b"ab"
    assert kernel.unpack_snappy(block(b"\xff" * 20, 400), 399) is None


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "block does not begin with its size"),
        (b"\x80" * 9, "block does not begin with its size"),
        (block(literal(b"x"), 100), "block does not begin with its size"),
        (HEADER[:11] + b"\0" + HEADER[12:], "stream of version 0"),
        (HEADER[:8] + b"\xff" * 8, "stream of version -1"),
        (HEADER + pack(">i", 0), "block of 0 bytes leaves the stream"),
        (HEADER + pack(">i", -5) + b"\0" * 9, "block of -5 bytes leaves the stream"),
        (HEADER + pack(">i", 3) + b"\0\0", "block of 3 bytes leaves the stream"),
        (block(literal(b"abc"), 2), "does not unpack to the 2 bytes"),
        (block(literal(b"abc"), 4), "does not unpack to the 4 bytes"),
        (block(literal(b"a"), 0), "does not unpack to the 0 bytes"),
        (block(literal(b"abc")[:-1], 3), "does not unpack to the 3 bytes"),
        (block(b"\xf0\0a", 1), "does not unpack to the 1 bytes"),
        (block(b"\xfc\xff\xff\xff\xff" + b"a" * 20, 20), "does not unpack to the 20 bytes"),
        (block(copy(4, 1, 1), 4), "does not unpack to the 4 bytes"),
        (block(literal(b"a") + copy(4, 0, 1), 5), "does not unpack to the 5 bytes"),
        (block(literal(b"a") + copy(4, 2, 2), 5), "does not unpack to the 5 bytes"),
        (block(literal(b"a") + copy(64, 1, 4), 64), "does not unpack to the 64 bytes"),
        (block(literal(b"a") + copy(4, 1, 1)[:1], 5), "does not unpack to the 5 bytes"),
        (block(literal(b"a") + copy(4, 1, 2)[:2], 5), "does not unpack to the 5 bytes"),
        (block(literal(b"a") + copy(4, 1, 4)[:4], 5), "does not unpack to the 5 bytes"),
    ],
)
def test_malformed(kernel: ModuleType, data: bytes, reason: str) -> None:
    """A malformed stream or block is a ValueError that says what is wrong."""
    with pytest.raises(ValueError, match=reason):
        kernel.unpack_snappy(data, LIMIT)


@given(st.lists(st.binary(min_size=1, max_size=12), max_size=12), st.integers(1, 30), st.data())
def test_any_bytes_there_and_back(pieces: list[bytes], times: int, data: st.DataObject) -> None:
    """What cramjam packs is what both kernels unpack; they agree about the same with one byte
    changed, too."""
    native, twin = native_or_skip(), load_python()
    text = b"".join(piece * times for piece in pieces)
    packed = bytearray(cramjam.snappy.compress_raw(text))
    assert text == native.unpack_snappy(packed, LIMIT) == twin.unpack_snappy(packed, LIMIT)
    packed[data.draw(st.integers(0, len(packed) - 1))] = data.draw(st.integers(0, 255))
    assert outcome(native, packed) == outcome(twin, packed)


def outcome(kernel: ModuleType, data: bytearray) -> object:
    try:
        return kernel.unpack_snappy(data, LIMIT)
    except ValueError as error:
        return str(error)
