"""The memory of this process."""

from __future__ import annotations

import mmap
from pathlib import Path


def resident_bytes() -> int:
    """Pages of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE
