"""A clock that tests move: sleeping passes at once and is written down."""

from __future__ import annotations


class MockClock:
    """Both times start at `start_ms`; `sleep` and `advance` move them."""

    def __init__(self, start_ms: int = 1_000_000) -> None:
        self._now_ms = float(start_ms)
        self.slept: list[float] = []

    def time_ms(self) -> int:
        return int(self._now_ms)

    def monotonic(self) -> float:
        return self._now_ms / 1000

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        self._now_ms += seconds * 1000
