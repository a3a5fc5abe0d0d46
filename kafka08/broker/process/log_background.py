"""LogBackground: runs the slow work of a broker's logs: fsync, delayed deletes."""

from __future__ import annotations

from collections.abc import Callable

from kafka08.log.background import PendingFlush
from kafka08.runtime import BrokerRuntime
from kafka08.runtime.disk import Close
from kafka08.runtime.timer import Timer


class LogBackground:
    """fsync and the freeing of deleted files in native threads, deletes by the timing wheel.

    A `kafka08.log.background.Background`.
    """

    def __init__(self, runtime: BrokerRuntime, timer: Timer) -> None:
        self._runtime = runtime
        self._timer = timer

    def flush_soon(self, flush: PendingFlush) -> None:
        def done(_: object, error: BaseException | None) -> None:
            if error is not None:
                raise error  # the root of a native job's end halts the broker
            flush.complete()

        self._runtime.run_native_later(done, flush.sync)

    def run_later(self, delay_ms: int, task: Callable[[], None]) -> None:
        self._timer.add(delay_ms, task)

    def close_soon(self, close: Close) -> None:
        # Without logging: a destructor must not wait for its lock.
        self._runtime.run_native_later(lambda *_: None, close)
