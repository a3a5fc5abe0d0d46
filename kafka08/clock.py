"""Clock: the source of time. Code that needs time takes a `Clock`; tests pass one that they
move."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Wall time for stored times and comparisons with files, monotonic time for waits."""

    def time_ms(self) -> int:
        """Milliseconds since 1970, as stored in znodes, commits and compared with file mtimes."""

    def monotonic(self) -> float:
        """Seconds from an arbitrary start; never goes back."""

    def sleep(self, seconds: float) -> None:
        """Wait (a green wait in a patched program)."""


class SystemClock:
    """The real clock."""

    monotonic = staticmethod(time.monotonic)
    """The function itself, without a wrapper: streams call it for every message."""

    @staticmethod
    def time_ms() -> int:
        return time.time_ns() // 1_000_000

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


SYSTEM_CLOCK = SystemClock()
