"""Unpacks snappy (twin): xerial's stream of raw blocks, or one raw block."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

import cramjam

from kafka08.kernel._python_sets import new_buffer
from kafka08.kernel.types import (
    XERIAL_BLOCK_SIZE,
    XERIAL_HEADER,
    XERIAL_MAGIC,
    XERIAL_VERSION,
    Buffer,
)

SNAPPY_MAX_RATIO: Final = 22
"""A raw block expands at most 64 bytes for 3, so a larger declared size is false."""


def unpack_snappy(data: Buffer, max_bytes: int, first_only: bool = False) -> bytearray | None:
    """The unpacked bytes of the blocks in `data`, or of its first block; None if these are more
    than `max_bytes`.

    `data` is xerial's stream: magic, two versions, then blocks `size:i32 raw-snappy`, and up to
    three bytes at the end that do not count. Anything without its magic is one raw block. Never
    allocates more than `max_bytes`. ValueError if the stream or a block is malformed.
    """
    blocks = list(islice(_blocks(memoryview(data)), 1 if first_only else None))
    total = sum(size for _, size in blocks)
    if total > max_bytes:
        return None
    unpacked = new_buffer(total)
    position = 0
    with memoryview(unpacked) as target:
        for block, size in blocks:
            _unpack(block, target[position : position + size])
            position += size
    return unpacked


def _unpack(block: memoryview, target: memoryview) -> None:
    """Fill `target` from a raw block."""
    try:
        if cramjam.snappy.decompress_raw_into(block, target) == len(target):
            return
    except cramjam.DecompressionError:
        pass
    raise ValueError(f"block does not unpack to the {len(target)} bytes of its size")


def _blocks(data: memoryview) -> Iterator[tuple[memoryview, int]]:
    """The raw blocks, each with the size that it declares."""
    if len(data) < XERIAL_HEADER.size or bytes(data[: len(XERIAL_MAGIC)]) != XERIAL_MAGIC:
        yield data, _declared_size(data)
        return
    _, version, _ = XERIAL_HEADER.unpack_from(data)
    if version < XERIAL_VERSION:
        raise ValueError(f"stream of version {version}")
    position = XERIAL_HEADER.size
    while len(data) - position >= XERIAL_BLOCK_SIZE.size:
        (size,) = XERIAL_BLOCK_SIZE.unpack_from(data, position)
        position += XERIAL_BLOCK_SIZE.size
        if not 0 < size <= len(data) - position:
            raise ValueError(f"block of {size} bytes leaves the stream")
        block = data[position : position + size]
        yield block, _declared_size(block)
        position += size


def _declared_size(block: memoryview) -> int:
    """Unpacked size that a raw block declares: a little-endian base-128 number of 32 bits."""
    size = 0
    for place, byte in enumerate(block[:5]):
        size |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            if size <= min(len(block) * SNAPPY_MAX_RATIO, 0xFFFFFFFF):
                return size
            break
    raise ValueError("block does not begin with its size")
