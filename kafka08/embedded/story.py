"""Story: what was done to a cluster, and what its processes printed, in one order of time."""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Iterable
from datetime import datetime
from typing import Final, NamedTuple

LOGGED: Final = re.compile(r"\[?(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)[,.](\d{3})\]? (.*)")
"""A line of a broker's log, or of a JVM's."""
TEXT_MAX: Final = 300
"""The most characters of a line: some print the whole configuration of a topic."""
EVENTS_MAX: Final = 1000
ELLIPSIS: Final = " …"


class Event(NamedTuple):
    """at: the time, so that times sort as texts; who: a process, or "test"."""

    at: str
    who: str
    text: str


class Doings:
    """The last EVENTS_MAX things that a test has done to a cluster."""

    def __init__(self) -> None:
        self.events: deque[Event] = deque(maxlen=EVENTS_MAX)

    def note(self, what: str) -> None:
        self.events.append(Event(time_of(time.time()), "test", what))


def time_of(seconds: float) -> str:
    """The local time of `seconds` since 1970, as logs have it."""
    return datetime.fromtimestamp(seconds).isoformat(" ", "milliseconds")


def logged(who: str, text: str) -> list[Event]:
    """The lines of a log; one without a time, of a traceback say, belongs to the line before."""
    found: list[Event] = []
    for line in text.splitlines():
        if (parts := LOGGED.match(line)) is not None:
            found.append(Event(f"{parts[1]}.{parts[2]}", who, parts[3]))
        else:
            found.append(Event(found[-1].at if found else "", who, line))
    return found


def told(events: Iterable[Event], most: int) -> str:
    """The last events, a line each, in the order of their times; equal times keep their order."""
    last = sorted(events, key=lambda event: event.at)[-most:]
    width = max((len(event.who) for event in last), default=0)
    return "\n".join(f"{event.at[11:]:12}  {event.who:{width}}  {shortened(event.text)}"
                     for event in last)  # fmt: skip


def shortened(text: str) -> str:
    return text if len(text) <= TEXT_MAX else text[: TEXT_MAX - len(ELLIPSIS)] + ELLIPSIS
