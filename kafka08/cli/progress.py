"""The progress of a command that sends or copies messages."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from kafka08.cli.echo import say
from kafka08.cli.signals import Stopped, StopRequest
from kafka08.clock import SYSTEM_CLOCK, Clock

if TYPE_CHECKING:
    from kafka08.mirror import Mirror
    from kafka08.mirror.move import Move
    from kafka08.runtime import Event

REPORT_S: Final = 1.0


def copy_until_stopped(
    copying: Mirror | Move, stopping: StopRequest, *, shows_progress: bool
) -> None:
    """Run it; with `shows_progress` print its messages each second."""
    if shows_progress:
        threading.Thread(target=report_messages, args=(copying, stopping), daemon=True).start()
    try:
        copying.run(stopping, starting=stopping.waiting)
    except Stopped:
        pass  # before it had anything to copy
    finally:
        stopping.set()


def report_messages(copying: Mirror | Move, stopping: Event) -> None:
    """Print a line each second, on stderr, until `stopping` is set."""
    before = 0
    while not stopping.wait(REPORT_S):
        messages = copying.counts.messages
        say(f"{messages} messages, {(messages - before) / REPORT_S:.0f} a second")
        before = messages


class Progress:
    """Prints a line on stderr each second: number of messages, rate, and the longest time to an
    acknowledgement. `shown` False: nothing."""

    def __init__(self, shown: bool, clock: Clock = SYSTEM_CLOCK) -> None:
        self._shown = shown
        self._clock = clock
        self._total = self._recent = 0
        self._slowest_s = 0.0
        self._since = clock.monotonic()

    def add(self, count: int, seconds: float) -> None:
        """`count` messages were acknowledged, `seconds` after they were sent."""
        self._total += count
        self._recent += count
        self._slowest_s = max(self._slowest_s, seconds)
        now = self._clock.monotonic()
        elapsed = now - self._since
        if self._shown and elapsed >= REPORT_S:
            say(
                f"{self._total} messages, {self._recent / elapsed:.0f} a second, acknowledged "
                f"within {self._slowest_s * 1000:.1f} ms",
            )
            self._recent, self._slowest_s, self._since = 0, 0.0, now
