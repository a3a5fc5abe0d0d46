"""Objects that garbage collection in Spark's Pythons need not look at."""

from __future__ import annotations

import gc
from functools import cache


@cache
def leave_modules_to_the_end() -> None:
    """Once per process: exclude imported modules from garbage collection. Spark's daemon collects
    after every task and every step of a plan: traversing the modules would be a quarter of the time
    of a 60 MB task, and most of the CPU of a plan."""
    gc.freeze()
