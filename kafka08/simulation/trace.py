"""The trace of a run: a hash of all events, and the last lines about faults and processes.

The hash covers all steps and messages in their order, with their times: two runs are equal if and
only if their hashes are. Names are hashed when they first occur, and as numbers from then on.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from kafka08.simulation.timeline import Timeline

LINES_KEPT: Final = 400
HASHED_BYTES: Final = 1 << 16
"""Steps are hashed when they take this many bytes, since one at a time takes longer."""
STEP, MESSAGE, TEXT = 0, 1, 2
TIME_LETTERS: Final = 12
"""The length of the time at the beginning of a line."""
FOLDED: Final = 4
"""A line that is one of so many before it is not repeated."""
REPEATED: Final = re.compile(r"(.)\1{20,}")
"""Long names in a run repeat one letter: a line has it once."""
_step = struct.Struct("<BdII").pack
_message = struct.Struct("<BdIII").pack


class Names(dict[str, int]):
    """Name → its number. `hashed` receives each new name."""

    def __init__(self, hashed: bytearray) -> None:
        super().__init__()
        self._hashed = hashed

    def __missing__(self, name: str) -> int:
        number = self[name] = len(self)
        self._hashed += bytes([TEXT]) + f"{number} {name}\n".encode()
        return number


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
        self._pending = bytearray()
        """Bytes that are not hashed yet."""
        self._numbers = Names(self._pending)
        self._on_line = on_line
        self.lines: deque[str] = deque(maxlen=LINES_KEPT)
        """The last lines: faults, and starts and ends of processes."""

    @property
    def digest(self) -> str:
        self._add_pending()
        return self._hash.hexdigest()

    def step(self, now: float, process: str, name: str) -> None:
        """One step of a process."""
        numbers, pending = self._numbers, self._pending
        step = _step(STEP, now, numbers[process], numbers[name])
        pending += step
        if len(pending) > HASHED_BYTES:
            self._add_pending()

    def message(self, now: float, source: str, target: str, checksum: int) -> None:
        """A message arrived over the network."""
        numbers = self._numbers
        message = _message(MESSAGE, now, numbers[source], numbers[target], checksum)
        self._pending += message

    def event(self, now: float, text: str) -> None:
        """A fault, or an event of a process."""
        text = REPEATED.sub(r"\1...", text)
        line = f"{now:10.4f}  {text}"
        self._pending += bytes([TEXT]) + line.encode()
        self.lines.append(line)
        if self.timeline is not None:
            self.timeline.note(now, text)
        if self._on_line is not None:
            self._on_line(line)

    def _add_pending(self) -> None:
        self._hash.update(self._pending)
        self._pending.clear()


def folded(lines: Iterable[str]) -> list[str]:
    """The lines without those that repeat one of the few before them, which gets their number: a
    tool that is refused again, an ISR that changes to and fro."""
    found: list[tuple[str, int, str]] = []
    for line in lines:
        time, text = line[:TIME_LETTERS], line[TIME_LETTERS:]
        for place in range(len(found) - 1, max(-1, len(found) - 1 - FOLDED), -1):
            first, count, _ = found[place]
            if first[TIME_LETTERS:] == text:
                found[place] = (first, count + 1, time.strip())
                break
        else:
            found.append((line, 1, ""))
    return [
        line if count == 1 else f"{line} ({count} times, the last at {last})"
        for line, count, last in found
    ]
