"""What happened in a run, as one hash and as the last lines of a story.

The hash covers each step and each message in their order, with their times: two runs are the same
if and only if their hashes are.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable
from typing import Final

from kafka08.simulation.timeline import Timeline

LINES_KEPT: Final = 400


class Trace:
    """tell       called with each line of the story, if anybody wants it all
    timeline   takes note of what happens, if somebody wants a page of it
    """

    def __init__(
        self,
        tell: Callable[[str], object] | None = None,
        timeline: Timeline | None = None,
    ) -> None:
        self.timeline = timeline
        self._hash = hashlib.blake2b(digest_size=16)
        self._tell = tell
        self.lines: deque[str] = deque(maxlen=LINES_KEPT)
        """The story's last lines: faults, and what processes did, without single steps."""

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()

    def step(self, now: float, process: str, name: str) -> None:
        """One step of a process."""
        self._hash.update(f"{now!r} {process} {name}\n".encode())

    def message(self, now: float, source: str, target: str, checksum: int) -> None:
        """Something arrived over the network."""
        self._hash.update(f"{now!r} {source} > {target} {checksum}\n".encode())

    def event(self, now: float, text: str) -> None:
        """Something that belongs to the story."""
        line = f"{now:10.4f}  {text}"
        self._hash.update(line.encode())
        self.lines.append(line)
        if self.timeline is not None:
            self.timeline.note(now, text)
        if self._tell is not None:
            self._tell(line)
