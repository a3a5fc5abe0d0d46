"""The one way in which tests wait for another thread or process."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from typing import Final, TypeVar

TIMEOUT_S: Final = 90.0
"""A limit for what takes milliseconds: only a test that fails anyway waits so long."""
FIRST_PAUSE_S: Final = 0.002
LONGEST_PAUSE_S: Final = 0.1
T = TypeVar("T")


def until(
    condition: Callable[[], T | None],
    what: str = "",
    seconds: float = TIMEOUT_S,
    *,
    explain: Callable[[], str] | None = None,
) -> T:
    """Call `condition` until its result is true, and return it; pauses grow from 2 to 100 ms.

    AssertionError after the time: it has `what` was expected, or the source of the condition, then
    what `explain()` finds out.
    """
    end = time.monotonic() + seconds
    pause_s = FIRST_PAUSE_S
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > end:
            clue = f": {explain()}" if explain is not None else ""
            raise AssertionError(f"not within {seconds:.0f} s: {what or _source(condition)}{clue}")
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


def _source(condition: Callable[[], object]) -> str:
    try:
        return inspect.getsource(condition).strip()
    except (OSError, TypeError):
        return repr(condition)
