"""Memory for a frame; that of a large one is allocated as its bytes arrive.

We must not allocate a size just because a peer announces it, and a buffer that is copied when it
grows costs quadratic time. These buffers are anonymous memory maps: the system allocates a page at
the first write to it, growing copies nothing, and all memory returns to the system with the last
view. (kafka.network.BoundedByteBufferReceive 0.8.2.2 allocates the announced size.)
"""

from __future__ import annotations

import mmap
from typing import Final, TypeAlias

from kafka08 import kernel

GrowingBuffer: TypeAlias = mmap.mmap

FIRST_BYTES: Final = 1024 * 1024
"""Initial buffer of a frame above this size; a smaller frame gets its full size at once."""


def whole(frame_bytes: int) -> bytearray:
    """A buffer for a small frame, which does not grow. Its content is undefined: fill all of it."""
    return kernel.new_buffer(frame_bytes)


def begin(frame_bytes: int) -> GrowingBuffer:
    """A buffer for the first bytes of a frame of `frame_bytes`."""
    return _reserve(min(frame_bytes, FIRST_BYTES))


def grow(buffer: GrowingBuffer, frame_bytes: int) -> GrowingBuffer:
    """A buffer with the same bytes, twice as long but not longer than the frame. It replaces
    `buffer`, of which no views may remain."""
    size = min(frame_bytes, 2 * len(buffer))
    try:
        buffer.resize(size)
    except SystemError:  # this system cannot grow a map in place
        grown = _reserve(size)
        grown[: len(buffer)] = buffer[:]
        return grown
    return buffer


def _reserve(size: int) -> GrowingBuffer:
    return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
