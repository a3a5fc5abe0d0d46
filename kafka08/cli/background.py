"""Work in a background thread, which no signal interrupts.

A signal raises its exception in the main thread, wherever that is: also inside a library that
mistakes it for its own error and continues. So a command that uses ZooKeeper for as long as it runs
does that here, and its main thread only waits.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from kafka08.cli.signals import StopRequest, wait_in_ticks

T = TypeVar("T")


class Unfinished(Exception):
    """The work has not ended."""


class Background(Generic[T]):
    """Begins at once, in a thread that does not keep the process alive.

    on_end   called in that thread when the work has ended, however it did
    """

    def __init__(
        self, work: Callable[[], T], *, name: str, on_end: Callable[[], object] = lambda: None
    ) -> None:
        self._work = work
        self._on_end = on_end
        self._error: BaseException | None = None
        self._returned: list[T] = []
        self._ended = threading.Event()
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def result(self, timeout_s: float | None = None) -> T:
        """Wait for the end of the work, and return its result or raise its error. Raises Unfinished
        after `timeout_s`; never once `on_end` is called."""
        if not wait_in_ticks(self._ended.wait, timeout_s):
            raise Unfinished
        if self._error is not None:
            raise self._error
        [found] = self._returned
        return found

    def _run(self) -> None:
        try:
            self._returned.append(self._work())
        except BaseException as error:  # noqa: BLE001 - `result` raises it
            self._error = error
        finally:
            self._ended.set()
            self._on_end()


def run_until_stopped(
    work: Callable[[], T], stopping: StopRequest, *, name: str, patience_s: float
) -> T | None:
    """Run work that reads alone in the background; its end sets `stopping`. Returns its result, or
    None if it has not ended so long after a stop: then nothing is half done."""
    running = Background(work, name=name, on_end=stopping.set)
    stopping.wait()
    try:
        return running.result(patience_s)
    except Unfinished:
        return None
