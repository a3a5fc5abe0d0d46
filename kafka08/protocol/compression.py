"""The compression codecs of 0.8, for the values of wrapper messages, and that of record batches.

    1 gzip    gzip members; other bytes after the last member are ignored
    2 snappy  written in xerial's stream (snappy-java): magic, two versions, then blocks
              `size:i32 raw-snappy` of at most 32 KiB of input each; reads a bare raw block, too
    3 lz4     an LZ4 frame of independent 64 KiB blocks without checksums or content size; inside a
              wrapper of magic 0 its header checksum is computed over the wrong bytes, see
              `kafka_header_checksum`
    4 zstd    Zstandard frames, in record batches from 2.1 on: for clients of later brokers

Every function is pure and thread-safe; the codec itself runs with the GIL released
(snappy's unpacking only from 64 KB on). Source:
kafka.message.CompressionFactory, org.apache.kafka.common.message.KafkaLZ4Block*Stream 0.8.2.2,
snappy-java 1.1.1.7; magic 1 as KafkaLZ4Block*Stream 0.10.2.2.
"""

from __future__ import annotations

from functools import lru_cache
from struct import Struct, error
from typing import Any, Final

import cramjam
import lz4.frame
from isal import isal_zlib

from kafka08 import kernel
from kafka08.kernel import UnknownCodec
from kafka08.kernel.types import (
    XERIAL_BLOCK_SIZE,
    XERIAL_HEADER,
    XERIAL_MAGIC,
    XERIAL_VERSION,
)
from kafka08.protocol.types import Buffer

NONE: Final = 0
GZIP: Final = 1
SNAPPY: Final = 2
LZ4: Final = 3
ZSTD: Final = 4
CODECS: Final = {NONE: "none", GZIP: "gzip", SNAPPY: "snappy", LZ4: "lz4"}
CLIENT_CODECS: Final = {**CODECS, ZSTD: "zstd"}
"""Those that a client has for later brokers, too."""

GZIP_LEVEL: Final = 2
"""ISA-L has levels 0 to 3. For text: 630 MB/s, and 9 % larger than zlib's level 6 at 28 MB/s."""
GZIP_WINDOW_BITS: Final = 31
"""zlib's wbits: 32 KiB window, gzip header and trailer."""
GZIP_MAGIC: Final = b"\x1f\x8b\x08"
GZIP_PIECE_BYTES: Final = 256
"""The start of a member after the first one. A reader keeps a copy of what follows its member."""

XERIAL_BLOCK_BYTES: Final = 32 << 10
SNAPPY_BLOCK_MAX: Final = cramjam.snappy.compress_raw_max_len(bytes(XERIAL_BLOCK_BYTES))
"""Bytes that such a block takes at most."""
NO_LIMIT: Final = (1 << 63) - 1

LZ4_HEADER_BYTES: Final = 7
"""magic, FLG, BD, header checksum."""
LZ4_CHECKSUM_POSITION: Final = LZ4_HEADER_BYTES - 1
"""In a header without content size, the only kind that Kafka writes."""
LZ4_MAGIC_BYTES: Final = 4
LZ4_BLOCK_SIZE: Final = Struct("<I")
LZ4_SIZE_MASK: Final = 0x7FFFFFFF
"""The highest bit marks a block that is stored uncompressed."""
LZ4_FLAGS_0_8: Final = frozenset({0x60, 0x70})
"""FLG that 0.8 reads: version 01, independent blocks, with or without block checksums."""
LZ4_FLAGS_0_10: Final = frozenset(0x60 | bits for bits in range(0, 0x20, 4))
"""FLG that 0.10 reads: with or without block checksums, content size, content checksum."""


ZSTD_MAGIC: Final = 0xFD2FB528
ZSTD_SKIPPABLE: Final = 0x184D2A50
ZSTD_WORD: Final = Struct("<I")
ZSTD_BLOCK_BYTES: Final = 128 << 10
"""What a compressed block unpacks to at most."""
ZSTD_RLE: Final = 1
ZSTD_COMPRESSED: Final = 2


class DecompressionError(ValueError):
    """The bytes are not valid for their codec."""


class UnpacksToMore(DecompressionError):
    """The bytes decompress to more than the limit."""


def by_name(name: str) -> int:
    """The codec for a name or number of `compression.codec`; ValueError if unknown."""
    for codec, codec_name in CODECS.items():
        if name.strip().lower() in (codec_name, str(codec)):
            return codec
    raise ValueError(f"{name!r} is not a compression codec: use none, gzip, snappy, lz4 or 0 to 3")


def compress(codec: int, data: Buffer, magic: int = 0) -> bytes | bytearray:
    """`data` as the value of a wrapper of that codec and magic; for `NONE` the bytes themselves."""
    if codec == NONE:
        return bytes(data)
    if codec == GZIP:
        return isal_zlib.compress(data, GZIP_LEVEL, GZIP_WINDOW_BITS)
    if codec == SNAPPY:
        return _compress_snappy(data)
    if codec == LZ4:
        return _compress_lz4(data, magic)
    if codec == ZSTD:
        return bytes(cramjam.zstd.compress(data))
    raise UnknownCodec(codec)


def decompress(
    codec: int, data: Buffer, max_size: int, *, strict: bool = False, magic: int | None = None
) -> bytes | bytearray:
    """The decompressed value of a wrapper of that codec, at most `max_size` bytes.

    `strict` accepts only LZ4 frames that 0.8.2.2 accepts, as a broker must; without it, every
    standard frame, and the standard header checksum. `magic` instead accepts what 0.10.2.2 accepts
    in a wrapper of that magic: any header checksum for 0, only the standard one for 1. Brokers use
    one of the two, and have no zstd.

    DecompressionError if `data` is malformed or ends early, UnpacksToMore if it would decompress to
    more; never allocates more than `max_size`. UnknownCodec for a codec that 0.8 does not have.
    """
    if codec == NONE:
        return _check_size(bytes(data), max_size)
    if codec == GZIP:
        return _decompress_gzip(data, max_size)
    if codec == SNAPPY:
        return _decompress_snappy(data, max_size)
    if codec == LZ4:
        return _decompress_lz4(_standard_lz4(data, strict, magic), max_size)
    if codec == ZSTD and magic is None and not strict:
        return _decompress_zstd(memoryview(data), max_size)
    raise UnknownCodec(codec)


def decompress_start(codec: int, data: Buffer, size: int) -> Buffer:
    """The first `size` decompressed bytes of a wrapper's value, or fewer if it has no more. Does
    not check later bytes. DecompressionError, UnknownCodec."""
    if codec == NONE:
        return bytes(data[:size])
    if codec == GZIP:
        return _read_gzip(isal_zlib.decompressobj(GZIP_WINDOW_BITS), data, size)
    if codec == SNAPPY:
        return _decompress_snappy(data, NO_LIMIT, first_only=True)[:size]
    if codec == LZ4:
        return _read_lz4(lz4.frame.LZ4FrameDecompressor(), _standard_lz4(data, False, None), size)
    raise UnknownCodec(codec)


def _check_size(data: bytes, max_size: int) -> bytes:
    if len(data) > max_size:
        raise _too_large(max_size)
    return data


def _too_large(max_size: int) -> UnpacksToMore:
    return UnpacksToMore(f"unpacks to more than the {max_size} bytes allowed")


def _decompress_gzip(data: Buffer, max_size: int) -> bytes:
    """Requests one byte more than allowed, to tell "exactly the limit" from "too much". Members are
    joined at the end, so that the time grows with bytes and members, not with their product."""
    view = memoryview(data)
    unpacked: list[bytes] = []
    size = position = 0
    while True:
        member = isal_zlib.decompressobj(GZIP_WINDOW_BITS)
        # The first one gets everything: mostly there is no other.
        room = GZIP_PIECE_BYTES if unpacked else len(view)
        while not member.eof:
            piece = view[position : position + room]
            if not piece and unpacked:
                raise DecompressionError("gzip: data ends within a member")
            unpacked.append(_read_gzip(member, piece, max_size - size + 1))
            size += len(unpacked[-1])
            if size > max_size:
                raise _too_large(max_size)
            position += len(piece) - len(member.unused_data)
            room *= 2
        if bytes(view[position : position + len(GZIP_MAGIC)]) != GZIP_MAGIC:
            return unpacked[0] if len(unpacked) == 1 else b"".join(unpacked)


def _read_gzip(member: Any, data: Buffer, size: int) -> bytes:
    try:
        unpacked: bytes = member.decompress(data, size)
    except isal_zlib.IsalError as cause:  # type: ignore[misc]  # its stub says instance
        raise DecompressionError(f"gzip: {cause}") from cause
    return unpacked


def _compress_snappy(data: Buffer) -> bytearray:
    view = memoryview(data)
    header = XERIAL_HEADER.pack(XERIAL_MAGIC, XERIAL_VERSION, XERIAL_VERSION)
    if not view:
        return bytearray(header)
    if len(view) <= XERIAL_BLOCK_BYTES:
        block = memoryview(cramjam.snappy.compress_raw(view))
        return bytearray().join((header, XERIAL_BLOCK_SIZE.pack(len(block)), block))
    blocks = -(-len(view) // XERIAL_BLOCK_BYTES)
    packed = kernel.new_buffer(len(header) + blocks * (XERIAL_BLOCK_SIZE.size + SNAPPY_BLOCK_MAX))
    packed[: len(header)] = header
    position = len(header)
    with memoryview(packed) as target:
        for start in range(0, len(view), XERIAL_BLOCK_BYTES):
            size = cramjam.snappy.compress_raw_into(
                view[start : start + XERIAL_BLOCK_BYTES],
                target[position + XERIAL_BLOCK_SIZE.size :],
            )
            XERIAL_BLOCK_SIZE.pack_into(packed, position, size)
            position += XERIAL_BLOCK_SIZE.size + size
    del packed[position:]
    return packed


def _decompress_snappy(data: Buffer, max_size: int, first_only: bool = False) -> bytearray:
    """`first_only`: the first block of a stream alone."""
    try:
        unpacked = kernel.unpack_snappy(data, max_size, first_only)
    except ValueError as cause:
        raise DecompressionError(f"snappy: {cause}") from cause
    if unpacked is None:
        raise _too_large(max_size)
    return unpacked


def _compress_lz4(data: Buffer, magic: int) -> bytearray:
    frame = bytearray(
        lz4.frame.compress(
            data,
            block_size=lz4.frame.BLOCKSIZE_MAX64KB,
            block_linked=False,
            store_size=False,
        )
    )
    if magic == 0:
        frame[LZ4_CHECKSUM_POSITION] = kafka_header_checksum(frame)
    return frame


def _decompress_lz4(frame: bytearray, max_size: int) -> bytes:
    reader = lz4.frame.LZ4FrameDecompressor()
    # It allocates memory for the largest allowed result at once.
    unpacked = _read_lz4(reader, frame, min(max_size, _lz4_bound(frame)) + 1)
    _check_size(unpacked, max_size)
    if not reader.eof:
        raise DecompressionError("lz4: frame ends early")
    return unpacked


def _read_lz4(reader: Any, frame: bytearray, size: int) -> bytes:
    try:
        unpacked: bytes = reader.decompress(frame, size)
    except RuntimeError as cause:
        raise DecompressionError(f"lz4: {cause}") from cause
    return unpacked


def _standard_lz4(data: Buffer, strict: bool, magic: int | None) -> bytearray:
    """The frame with the header checksum of the standard; `strict`, `magic` as in `decompress`."""
    frame = bytearray(data)
    if len(frame) < LZ4_HEADER_BYTES:
        raise DecompressionError("lz4: frame ends within its header")
    flags = frame[LZ4_MAGIC_BYTES]
    at = _lz4_blocks_position(flags) - 1
    if at >= len(frame):
        raise DecompressionError("lz4: frame ends within its header")
    standard = _checksum_byte(frame[LZ4_MAGIC_BYTES:at])
    is_kafkas = frame[at] == kafka_header_checksum(frame)
    if (strict and not is_kafkas) or (magic == 1 and frame[at] != standard):
        raise DecompressionError(f"lz4: frame header checksum is not the one of {_release(strict)}")
    if magic == 0 or is_kafkas:
        frame[at] = standard
    if (strict and flags not in LZ4_FLAGS_0_8) or (
        magic is not None and flags not in LZ4_FLAGS_0_10
    ):
        raise DecompressionError(f"lz4: frame flags {flags:#x} are not read by {_release(strict)}")
    return frame


def _release(strict: bool) -> str:
    return "0.8" if strict else "0.10"


def _lz4_blocks_position(flags: int) -> int:
    """Position of the first block of a frame, behind content size and dictionary id."""
    return LZ4_HEADER_BYTES + (8 if flags & 0x08 else 0) + (4 if flags & 0x01 else 0)


def _lz4_bound(frame: bytearray) -> int:
    """Upper bound of the frame's decompressed size; lz4 itself reports malformed blocks."""
    flags, sizes = frame[LZ4_MAGIC_BYTES], frame[LZ4_MAGIC_BYTES + 1]
    block_bytes = 1 << 8 + 2 * (sizes >> 4 & 7)
    checksum_bytes = 4 if flags & 0x10 else 0
    position = _lz4_blocks_position(flags)
    bound = 0
    while len(frame) - position >= LZ4_BLOCK_SIZE.size:
        (size,) = LZ4_BLOCK_SIZE.unpack_from(frame, position)
        if not size:
            break
        bound += block_bytes
        position += LZ4_BLOCK_SIZE.size + (size & LZ4_SIZE_MASK) + checksum_bytes
    return bound


def _decompress_zstd(data: memoryview, max_size: int) -> bytearray:
    bound = _zstd_bound(data)
    unpacked = kernel.new_buffer(min(bound, max_size))
    if not bound:
        return unpacked
    try:
        size = cramjam.zstd.decompress_into(data, unpacked)
    except cramjam.DecompressionError as cause:
        if bound > max_size and "whole buffer" in str(cause):
            raise _too_large(max_size) from cause
        raise DecompressionError(f"zstd: {cause}") from cause
    del unpacked[size:]
    return unpacked


def _zstd_bound(data: memoryview) -> int:
    """Upper bound of what the frames unpack to: Java and librdkafka write no content size."""
    at = bound = 0
    try:
        while at < len(data):
            (magic,) = ZSTD_WORD.unpack_from(data, at)
            if magic & ~0xF == ZSTD_SKIPPABLE:
                at += 2 * ZSTD_WORD.size + ZSTD_WORD.unpack_from(data, at + ZSTD_WORD.size)[0]
                continue
            if magic != ZSTD_MAGIC:
                raise DecompressionError("zstd: not the start of a frame")
            flags = data[at + 4]
            has_window = not flags & 0x20
            size_bytes = (1 - has_window, 2, 4, 8)[flags >> 6]
            at += 5 + has_window + (0, 1, 2, 4)[flags & 3] + size_bytes
            is_last = False
            while not is_last:
                head = int.from_bytes(data[at : at + 2], "little") | data[at + 2] << 16
                is_last, kind, size = bool(head & 1), head >> 1 & 3, head >> 3
                at += 3 + (1 if kind == ZSTD_RLE else size)
                bound += ZSTD_BLOCK_BYTES if kind == ZSTD_COMPRESSED else size
            at += ZSTD_WORD.size if flags & 4 else 0
    except (IndexError, error) as cause:
        raise DecompressionError("zstd: frame ends early") from cause
    return bound


def kafka_header_checksum(frame: Buffer) -> int:
    """The header checksum that 0.8 and 0.9 write and require: over magic, FLG and BD.

    # 0.8: the LZ4 frame format says FLG and BD only. For 0.8's own header this gives 0x1a where
    the standard has 0x82.
    """
    return _checksum_byte(frame[:LZ4_CHECKSUM_POSITION])


def _checksum_byte(data: Buffer) -> int:
    return xxh32_short(bytes(data)) >> 8 & 0xFF


@lru_cache(maxsize=64)
def xxh32_short(data: bytes) -> int:
    """XXH32 with seed 0 of fewer than 16 bytes: enough for LZ4 frame headers."""
    prime_1, prime_2, prime_3 = 2654435761, 2246822519, 3266489917
    prime_4, prime_5, mask = 668265263, 374761393, 0xFFFFFFFF
    words = len(data) // 4 * 4
    value = prime_5 + len(data)
    for at in range(0, words, 4):
        value = value + int.from_bytes(data[at : at + 4], "little") * prime_3 & mask
        value = (value << 17 | value >> 15) * prime_4 & mask
    for byte in data[words:]:
        value = value + byte * prime_5 & mask
        value = (value << 11 | value >> 21) * prime_1 & mask
    value = (value ^ value >> 15) * prime_2 & mask
    value = (value ^ value >> 13) * prime_3 & mask
    return value ^ value >> 16
