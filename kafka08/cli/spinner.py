"""A spinner on stderr while the command waits for ZooKeeper or a broker; a line where stderr is no
terminal."""

from __future__ import annotations

import itertools
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TextIO

from kafka08.cli.echo import last_said

AFTER_S: Final = 1.0
"""Shorter waits show nothing."""
SILENCE_S: Final = 1.5
"""In a pipe, between two lines about waits, and before the first one."""
PLAIN_AFTER_S: Final = 0.5
"""There shorter waits are not named, though nothing was written for that long."""
WORKING_S: Final = 2.0
"""There a command that neither ended nor wrote a line to stderr for that long says so itself:
its waits may be many and short, or it computes."""
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
        waits = PlainWaits(sys.stderr)
        announce_with(waits.wait_for)
        waits.start()
        _plain.append(waits)


_plain: Final[list[PlainWaits]] = []
"""Those of the command that runs."""


def show_no_waits() -> None:
    """Write none from now on: the command ended, or it serves, with its own log or screen."""
    from kafka08.waiting import announce_with

    announce_with(None)
    while _plain:
        _plain.pop().end()


class Spinner:
    """Shows the longest wait once it has lasted `after_s`; without one the line is empty again. A
    wait costs its thread two changes of a dict: one thread, started at the first wait, reads
    them."""

    def __init__(
        self,
        terminal: TextIO,
        after_s: float = AFTER_S,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._terminal = terminal
        self._after_s = after_s
        self._monotonic = monotonic
        self._waits: dict[object, tuple[float, object]] = {}
        """key → (start in monotonic seconds, name of the peer)."""
        self._begun = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    @contextmanager
    def wait_for(self, who: object) -> Iterator[None]:
        """Show a wait, in any thread."""
        key = object()
        self._waits[key] = self._monotonic(), who
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
            if longest is None or self._monotonic() - longest[0] < self._after_s:
                break
            self._terminal.write(f"{ERASE_LINE}{frame} Waiting for {longest[1]}")
            self._terminal.flush()
            shown = True
            time.sleep(STEP_S)
        if shown:
            self._terminal.write(ERASE_LINE)
            self._terminal.flush()


class PlainWaits(Spinner):
    """Writes a line whenever nothing was written to stderr for `silence_s`: about the longest wait
    or, after `working_s`, that the command works."""

    def __init__(
        self,
        stream: TextIO,
        silence_s: float = SILENCE_S,
        working_s: float = WORKING_S,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(stream, min(PLAIN_AFTER_S, silence_s), monotonic)
        self._silence_s = silence_s
        self._working_s = working_s
        self._began = self._said = monotonic()
        self._ended = threading.Event()

    def start(self) -> None:
        """Write lines from now on, also without any wait."""
        self._start()

    def end(self) -> None:
        self._ended.set()

    def _run(self) -> None:
        wait_s = self._silence_s  # a command that ends soon never has a turn
        while not self._ended.wait(wait_s):
            wait_s = min(STEP_S, self._after_s)
            self._turn()

    def _turn(self) -> None:
        now = self._monotonic()
        quiet_s = now - max(self._said, last_said())
        if quiet_s < self._silence_s:
            return
        longest = min(list(self._waits.values()), default=None, key=lambda wait: wait[0])
        if longest is not None and now - longest[0] >= self._after_s:
            text = f"Waiting for {longest[1]}"
        elif quiet_s >= self._working_s:
            text = "Working"
        else:
            return
        self._said = now
        self._terminal.write(f"{text} ({now - self._began:.0f} s)\n")
        self._terminal.flush()
