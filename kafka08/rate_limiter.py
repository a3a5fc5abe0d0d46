"""RateLimiter: spreads operations evenly over time."""

from __future__ import annotations

import threading

from kafka08.clock import SYSTEM_CLOCK, Clock


class RateLimiter:
    """Limits operations to `rate` a second, evenly; None: no limit. Thread-safe.

    slices   the number of bursts per second
    """

    def __init__(self, rate: float | None, clock: Clock = SYSTEM_CLOCK, *, slices: int = 1) -> None:
        self._rate = rate
        self._clock = clock
        self._slices = slices
        self._lock = threading.Lock()
        self._free_at = clock.monotonic()

    def slice_of(self, count: int) -> int:
        """The part of `count` that may go in one burst, at least one."""
        if self._rate is None:
            return count
        return min(count, max(1, int(self._rate / self._slices)))

    def wait_s(self, count: int = 1) -> float:
        """Seconds to wait before the next `count` operations, which count as done. Unused time is
        not saved up."""
        if self._rate is None:
            return 0.0
        with self._lock:
            now = self._clock.monotonic()
            start = max(now, self._free_at)
            self._free_at = start + count / self._rate
        return start - now
