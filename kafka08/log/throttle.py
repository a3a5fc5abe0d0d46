"""Throttle: limits work to a rate. Source: kafka.utils.Throttler 0.8.2.2."""

from __future__ import annotations

from typing import Final

from kafka08.clock import Clock

CHECK_S: Final = 0.3


class Throttle:
    """Limits work to `bytes_per_second` on average, checked every CHECK_S; shared by
    workers."""

    def __init__(self, bytes_per_second: float, clock: Clock) -> None:
        self._bytes_per_second = bytes_per_second
        self._clock = clock
        self._since = clock.monotonic()
        self._observed = 0

    def observe(self, size: int) -> None:
        """Count `size` bytes, and sleep if they exceed the rate. May switch."""
        self._observed += size
        now = self._clock.monotonic()
        elapsed = now - self._since
        if elapsed <= CHECK_S:
            return
        early = self._observed / self._bytes_per_second - elapsed
        if early > 0:
            self._clock.sleep(early)
            now = self._clock.monotonic()
        self._since = now
        self._observed = 0
