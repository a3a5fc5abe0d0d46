"""Throttle: a rate limit for background work."""

from __future__ import annotations

from kafka08.log.throttle import CHECK_S, Throttle
from tests.mock_clock import MockClock


def test_work_that_is_too_fast_waits() -> None:
    """1,000 bytes at 100 bytes a second take ten seconds, however early they were read."""
    clock = MockClock()
    throttle = Throttle(100, clock)
    start = clock.monotonic()
    throttle.observe(500)
    assert [] == clock.slept
    clock.advance(1)
    throttle.observe(500)
    assert 10 == round(clock.monotonic() - start)


def test_slow_work_does_not_wait() -> None:
    """Work at exactly the limit never waits."""
    clock = MockClock()
    throttle = Throttle(100, clock)
    for _ in range(10):
        clock.advance(1)
        throttle.observe(100)
    assert [] == clock.slept


def test_idle_time_is_not_saved_up() -> None:
    """After a pause the limit applies at once. An average since the start would allow a burst."""
    clock = MockClock()
    throttle = Throttle(100, clock)
    clock.advance(1000)
    throttle.observe(1)
    clock.advance(2 * CHECK_S)
    start = clock.monotonic() - 2 * CHECK_S
    throttle.observe(1000)
    assert 10 == round(clock.monotonic() - start)
