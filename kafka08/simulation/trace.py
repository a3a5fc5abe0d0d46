"""The trace of a run: a hash of all events, and the last lines about faults and processes.

The hash covers all steps and messages in their order, with their times: two runs are equal if and
only if their hashes are.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable
from typing import Final

from kafka08.simulation.timeline import Timeline

LINES_KEPT: Final = 400


class Trace:
    """on_line       called with each line; None: no call
    timeline   records the events; None: no timeline
    """

    def __init__(
        self,
        on_line: Callable[[str], object] | None = None,
        timeline: Timeline | None = None,
    ) -> None:
        self.timeline = timeline
        self._hash = hashlib.blake2b(digest_size=16)
        self._on_line = on_line
        self.lines: deque[str] = deque(maxlen=LINES_KEPT)
        """The last lines: faults, and starts and ends of processes."""

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()

    def step(self, now: float, process: str, name: str) -> None:
        """One step of a process."""
        self._hash.update(f"{now!r} {process} {name}\n".encode())

    def message(self, now: float, source: str, target: str, checksum: int) -> None:
        """A message arrived over the network."""
        self._hash.update(f"{now!r} {source} > {target} {checksum}\n".encode())

    def event(self, now: float, text: str) -> None:
        """A fault, or an event of a process."""
        line = f"{now:10.4f}  {text}"
        self._hash.update(line.encode())
        self.lines.append(line)
        if self.timeline is not None:
            self.timeline.note(now, text)
        if self._on_line is not None:
            self._on_line(line)
