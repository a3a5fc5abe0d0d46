"""The progress of a command, on a clock that the test moves."""

from __future__ import annotations

import pytest

from kafka08.cli.progress import Progress
from tests.mock_clock import MockClock


def test_progress_is_a_line_a_second(capsys: pytest.CaptureFixture[str]) -> None:
    """Each second prints the count, the rate of the last second, and the slowest acknowledgement;
    without --progress nothing is printed."""
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
