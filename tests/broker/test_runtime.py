"""The native threads of the real runtime, with the event loop played by the test."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from kafka08.broker.runtime import NativePool

DEADLINE = 10.0


class Loop:
    """An event loop with one async watcher, whose callback the test calls."""

    def __init__(self) -> None:
        self.signals = threading.Semaphore(0)
        self.callback: Callable[[], object] | None = None

    def async_(self) -> Loop:
        return self

    def start(self, callback: Callable[[], object]) -> None:
        self.callback = callback

    def send(self) -> None:
        self.signals.release()


def test_a_job_whose_end_fails_holds_back_no_other() -> None:
    """One signal stands for several results; each is handed over."""
    loop = Loop()
    pool = NativePool(loop, 1)
    ended: list[Any] = []

    def fail(_result: object, _error: BaseException | None) -> None:
        raise RuntimeError("a bug in the end of a job")

    pool.submit(fail, len, ("ab",))
    pool.submit(lambda result, error: ended.append((result, error)), len, ("abc",))
    for _ in range(2):
        assert loop.signals.acquire(timeout=DEADLINE)
    assert loop.callback is not None
    loop.callback()
    assert [(3, None)] == ended
