"""Memory for one large frame, taken as the frame's bytes arrive.

A size that a peer announces must not make us allocate it, and a buffer that is copied whenever more
arrives costs time with the square of the frame. These buffers are anonymous maps: the system gives
a page when one of its bytes is first written, growing moves no byte, and everything goes back to
the system when the last view is gone. (kafka.network.BoundedByteBufferReceive 0.8.2.2 allocates
the announced size.)
"""

from __future__ import annotations

import mmap
from typing import Final, TypeAlias

GrowingBuffer: TypeAlias = mmap.mmap

FIRST_BYTES: Final = 1024 * 1024
"""What a frame above this size starts with; a frame up to it gets all its room at once."""


def begin(frame_bytes: int) -> GrowingBuffer:
    """Room for the first bytes of a frame of `frame_bytes`."""
    return _reserve(min(frame_bytes, FIRST_BYTES))


def grow(buffer: GrowingBuffer, frame_bytes: int) -> GrowingBuffer:
    """A buffer with the same bytes, twice as long but not longer than the frame. Use it instead of
    `buffer`, of which no view may be left."""
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
