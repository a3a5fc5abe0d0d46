"""Work in a thread of its own, which no signal interrupts.

A signal's exception is raised in the main thread, wherever that is at the time: also inside a
library that takes it for an error of its own and goes on. So a command that asks ZooKeeper for as
long as it runs does it here, and its main thread only waits.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

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
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def result(self, patience_s: float | None = None) -> T:
        """What the work returned, or raises what it raised. Waits for its end; after `patience_s`
        it raises Unfinished."""
        self._thread.join(patience_s)
        if self._thread.is_alive():
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
            self._on_end()
