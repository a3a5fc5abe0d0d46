"""LogBackground: runs the slow work of a broker's logs: fsync, delayed deletes."""

from __future__ import annotations

import logging
from collections.abc import Callable

from kafka08.broker.halt import halt_on
from kafka08.broker.timer import Timer
from kafka08.errors import StorageError
from kafka08.log.background import PendingFlush
from kafka08.runtime import BrokerRuntime
from kafka08.runtime.disk import Close

logger = logging.getLogger(__name__)


class LogBackground:
    """fsync and the freeing of deleted files in native threads, deletes by the timing wheel.

    A `kafka08.log.background.Background`.
    """

    def __init__(self, runtime: BrokerRuntime, timer: Timer) -> None:
        self._runtime = runtime
        self._timer = timer

    def flush_soon(self, flush: PendingFlush) -> None:
        def done(_: object, error: BaseException | None) -> None:
            if error is None:
                flush.complete()
            else:
                self._failed(error)

        self._runtime.run_native_later(done, flush.sync)

    def run_later(self, delay_ms: int, task: Callable[[], None]) -> None:
        def run() -> None:
            try:
                task()
            except StorageError as error:
                self._failed(error)

        self._timer.add(delay_ms, run)

    def close_soon(self, close: Close) -> None:
        # Without logging: a destructor must not wait for its lock.
        self._runtime.run_native_later(lambda *_: None, close)

    def _failed(self, error: BaseException) -> None:
        if isinstance(error, StorageError):
            halt_on(error, self._runtime)
        logger.error("Uncaught exception in a flush or deletion of a log", exc_info=error)
