"""Memory: what becomes of buffers that a broker frees.

glibc hands freed memory back to the operating system early: blocks above 128 KB one by one, the end
of the heap as soon as twice that is free. The next request of that size then pays a page fault for
every 4 KB, which for a compressed set of 200 KB took as long as unpacking and packing it.
"""

from __future__ import annotations

import ctypes
from typing import Final

M_TRIM_THRESHOLD: Final = -1
M_MMAP_THRESHOLD: Final = -3
"""Parameters of mallopt(3)."""
FREE_BYTES_KEPT: Final = 16 << 20
"""Free bytes at the end of the heap above which the end is given back."""
MAPPED_FROM_BYTES: Final = 4 << 20
"""Blocks from this size on are mapped on their own and given back when they are freed."""


def keep_freed_memory() -> bool:
    """Use freed buffers again before asking the system for more, for the life of this process: at
    most FREE_BYTES_KEPT of them stay at the end of its heap. False where the C library is not
    glibc; nothing changes then."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    return bool(
        mallopt(M_MMAP_THRESHOLD, MAPPED_FROM_BYTES) and mallopt(M_TRIM_THRESHOLD, FREE_BYTES_KEPT)
    )
