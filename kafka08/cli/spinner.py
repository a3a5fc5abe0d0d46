"""A spinner on stderr while the command waits for ZooKeeper or a broker; a line where stderr is no
terminal."""

from __future__ import annotations

import itertools
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, TextIO

AFTER_S: Final = 1.0
"""Shorter waits show nothing."""
SILENCE_S: Final = 1.5
"""In a pipe, between two lines about waits, and before the first one."""
PLAIN_AFTER_S: Final = 0.5
"""There shorter waits are not named, though nothing was written for that long."""
STEP_S: Final = 0.1
FRAMES: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
PLAIN_FRAMES: Final = "|/-\\"
ERASE_LINE: Final = "\r\x1b[K"


def show_waits(*, plainly: bool) -> None:
    """Show every long wait for ZooKeeper or a broker: by a spinner if stderr is a terminal, else,
    and if `plainly`, by lines."""
    from kafka08.waiting import announce_with

    if sys.stderr is None:
        return
    if sys.stderr.isatty():
        announce_with(Spinner(sys.stderr).wait_for)
    elif plainly:
        announce_with(PlainWaits(sys.stderr).wait_for)


class Spinner:
    """Shows the longest wait once it has lasted `after_s`; without one the line is empty again. A
    wait costs its thread two changes of a dict: one thread, started at the first wait, reads
    them."""

    def __init__(self, terminal: TextIO, after_s: float = AFTER_S) -> None:
        self._terminal = terminal
        self._after_s = after_s
        self._waits: dict[object, tuple[float, object]] = {}
        """key → (start in monotonic seconds, name of the peer)."""
        self._begun = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    @contextmanager
    def wait_for(self, who: object) -> Iterator[None]:
        """Show a wait, in any thread."""
        key = object()
        self._waits[key] = time.monotonic(), who
        if self._thread is None:
            self._start()
        self._begun.set()
        try:
            yield
        finally:
            del self._waits[key]

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="spinner", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while True:
            self._begun.wait()
            self._begun.clear()
            time.sleep(self._after_s)
            self._turn()

    def _turn(self) -> None:
        """Turn until there is no such wait."""
        unicode = (self._terminal.encoding or "").lower().startswith("utf")
        shown = False
        for frame in itertools.cycle(FRAMES if unicode else PLAIN_FRAMES):
            longest = min(list(self._waits.values()), default=None, key=lambda wait: wait[0])
            if longest is None or time.monotonic() - longest[0] < self._after_s:
                break
            self._terminal.write(f"{ERASE_LINE}{frame} Waiting for {longest[1]}")
            self._terminal.flush()
            shown = True
            time.sleep(STEP_S)
        if shown:
            self._terminal.write(ERASE_LINE)
            self._terminal.flush()


class PlainWaits(Spinner):
    """Writes a line about the longest wait whenever nothing was written for `silence_s`."""

    def __init__(self, stream: TextIO, silence_s: float = SILENCE_S) -> None:
        super().__init__(stream, min(PLAIN_AFTER_S, silence_s))
        self._silence_s = silence_s
        self._began = self._said = time.monotonic()

    def _turn(self) -> None:
        while waits := list(self._waits.values()):
            began, who = min(waits, key=lambda wait: wait[0])
            now = time.monotonic()
            if now - self._said >= self._silence_s and now - began >= self._after_s:
                self._said = now
                self._terminal.write(f"Waiting for {who} ({now - self._began:.0f} s)\n")
                self._terminal.flush()
            time.sleep(min(STEP_S, self._after_s))
