"""Pace and progress of a command, by a clock that the test moves."""

from __future__ import annotations

import pytest

from kafka08.cli.pace import Pace, Progress
from tests.mock_clock import MockClock


def test_messages_go_at_the_rate() -> None:
    """1000 in slices of a 20th of a second take 10 s at 100 a second; time lost is not made up."""
    clock = MockClock()
    pace = Pace(100, clock)
    started, left = clock.monotonic(), 1000
    while left:
        count = pace.slice_of(left)
        assert count == 5
        clock.sleep(pace.wait_s(count))
        left -= count
    assert clock.monotonic() - started == pytest.approx(10, abs=0.1)
    clock.advance(100)
    assert pace.wait_s(5) == 0
    assert pace.wait_s(5) == pytest.approx(0.05)


def test_a_slow_rate_goes_one_by_one() -> None:
    """And without a rate nothing waits."""
    assert Pace(0.5, MockClock()).slice_of(10) == 1
    free = Pace(None, MockClock())
    assert (free.slice_of(10), free.wait_s(10)) == (10, 0)


def test_progress_is_a_line_a_second(capsys: pytest.CaptureFixture[str]) -> None:
    """Count, rate of the last second, slowest acknowledgement; nothing if it is not wanted."""
    clock = MockClock()
    shown, hidden = Progress(True, clock), Progress(False, clock)
    for n in range(25):
        clock.advance(0.1)
        shown.add(10, n / 1000)
        hidden.add(10, n / 1000)
    said = capsys.readouterr().err.splitlines()
    assert said == [
        "100 messages, 100 a second, acknowledged within 9.0 ms",
        "200 messages, 100 a second, acknowledged within 19.0 ms",
    ]
