"""The story of a failed test."""

from __future__ import annotations

from kafka08.embedded.story import Event, logged, told

BROKER = """\
[2026-11-29 19:40:35,232] INFO leads [t,0]
[2026-11-29 19:40:36,000] ERROR Uncaught
Traceback:
  ValueError
"""


def test_sources_are_merged_by_time() -> None:
    """Lines of several logs and what was done stand in one order; lines without a time stay behind
    the one that they belong to."""
    events = [
        Event("2026-11-29 19:40:35.500", "test", "kills broker 1"),
        *logged("broker 0", BROKER),
        *logged("ZooKeeper", "2026-11-29 19:40:35,400 [myid:] - WARN closed\n"),
    ]
    assert told(events, 10).splitlines() == [
        "19:40:35.232  broker 0   INFO leads [t,0]",
        "19:40:35.400  ZooKeeper  [myid:] - WARN closed",
        "19:40:35.500  test       kills broker 1",
        "19:40:36.000  broker 0   ERROR Uncaught",
        "19:40:36.000  broker 0   Traceback:",
        "19:40:36.000  broker 0     ValueError",
    ]
    assert told(events, 1) == "19:40:36.000  broker 0    ValueError"


def test_long_lines_are_shortened() -> None:
    """One line that has everything must not hide the others."""
    assert len(told([Event("2026-11-29 19:40:35.232", "x", "y" * 1000)], 1)) < 330


def test_no_events_are_no_story() -> None:
    """A cluster to which nothing happened."""
    assert told([], 5) == ""
