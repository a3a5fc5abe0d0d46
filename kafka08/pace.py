"""How fast something may be done."""

from __future__ import annotations

import threading

from kafka08.clock import SYSTEM_CLOCK, Clock


class Pace:
    """At most `rate` of something a second, evenly; None: no limit. Thread-safe.

    slices   how many times a second some may go together
    """

    def __init__(self, rate: float | None, clock: Clock = SYSTEM_CLOCK, *, slices: int = 1) -> None:
        self._rate = rate
        self._clock = clock
        self._slices = slices
        self._lock = threading.Lock()
        self._free_at = clock.monotonic()

    def slice_of(self, count: int) -> int:
        """How many of `count` may go together, at least one."""
        if self._rate is None:
            return count
        return min(count, max(1, int(self._rate / self._slices)))

    def wait_s(self, count: int = 1) -> float:
        """Seconds to wait before `count` more go; they are taken for gone. Time that was not used
        is not made up for."""
        if self._rate is None:
            return 0.0
        with self._lock:
            now = self._clock.monotonic()
            start = max(now, self._free_at)
            self._free_at = start + count / self._rate
        return start - now
