"""RateLimiter, by a clock that the test moves."""

from __future__ import annotations

import pytest

from kafka08.rate_limiter import RateLimiter
from tests.mock_clock import MockClock


def test_messages_go_at_the_rate() -> None:
    """1000 in slices of a 20th of a second take 10 s at 100 a second; time lost is not made up."""
    clock = MockClock()
    limiter = RateLimiter(100, clock, slices=20)
    started, left = clock.monotonic(), 1000
    while left:
        count = limiter.slice_of(left)
        assert count == 5
        clock.sleep(limiter.wait_s(count))
        left -= count
    assert clock.monotonic() - started == pytest.approx(10, abs=0.1)
    clock.advance(100)
    assert limiter.wait_s(5) == 0
    assert limiter.wait_s(5) == pytest.approx(0.05)


def test_a_slow_rate_goes_one_by_one() -> None:
    """Without a rate no call waits."""
    assert [RateLimiter(r, MockClock()).slice_of(10) for r in (0.5, 2.5, 50.0)] == [1, 2, 10]
    free = RateLimiter(None, MockClock())
    assert (free.slice_of(10), free.wait_s(10)) == (10, 0)
