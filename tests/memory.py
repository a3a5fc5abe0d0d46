"""The memory of this process."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from statistics import median_low


def resident_bytes() -> int:
    """Pages of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE


def lasting_growth(sizes: Sequence[int]) -> int:
    """The growth from the first size to the last, if each step were as large as the median (of two,
    the smaller one), and what is given back later had never been taken: an allocator takes much now
    and then, and a thread while it runs."""
    kept = list(accumulate(reversed(sizes), min))[::-1]
    steps = [after - before for before, after in pairwise(kept)]
    return median_low(steps) * len(steps)
