"""Memory: keeps freed buffers in the process.

glibc returns freed memory to the operating system early: blocks above 128 KB one by one, the end of
the heap as soon as twice that is free. The next request of that size then pays a page fault for
every 4 KB, which for a compressed set of 200 KB took as long as recompressing it.
"""

from __future__ import annotations

import ctypes
from typing import Final

M_TRIM_THRESHOLD: Final = -1
M_MMAP_THRESHOLD: Final = -3
"""Parameters of mallopt(3)."""
FREE_BYTES_KEPT: Final = 16 << 20
"""The end of the heap is returned to the system when more than this is free there."""
MAPPED_FROM_BYTES: Final = 4 << 20
"""Blocks from this size on are mapped separately and unmapped when they are freed."""


def keep_freed_memory() -> bool:
    """Reuse freed buffers before asking the system for more, for the life of this process: at most
    FREE_BYTES_KEPT of them stay at the end of its heap. False without glibc, where nothing
    changes."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    return bool(
        mallopt(M_MMAP_THRESHOLD, MAPPED_FROM_BYTES) and mallopt(M_TRIM_THRESHOLD, FREE_BYTES_KEPT)
    )
