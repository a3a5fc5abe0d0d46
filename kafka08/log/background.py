"""The work that a log delegates, because it may block or must wait: fsync and delayed deletes.

A log has no thread and no timer. It creates a `PendingFlush` or a task, and its `Background`
decides where and when that runs; the broker's uses native threads and its timing wheel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from kafka08.log.files import storage_errors
from kafka08.runtime.disk import Close, Syncable


class PendingFlush:
    """An fsync that is due. `sync` may run in any thread: it uses only open files, so the log may
    be deleted meanwhile. `complete` runs in the log's own thread and advances its recovery point.

    name    of the log, for errors
    files   the files to sync, in this order: segments, and the directory for new names in it
    """

    def __init__(self, name: str, files: Sequence[Syncable], complete: Callable[[], None]) -> None:
        self._name = name
        self._files = files
        self.complete = complete

    def sync(self) -> None:
        """Wait until all files are on disk; StorageError if a sync fails."""
        with storage_errors("sync", self._name):
            for file in self._files:
                file.sync()

    def then(self, call: Callable[[], object]) -> PendingFlush:
        """The same flush, whose `complete` also calls `call`, if it fails, too."""

        def complete() -> None:
            try:
                self.complete()
            finally:
                call()

        return PendingFlush(self._name, self._files, complete)

    def run(self) -> None:
        """Both steps, here and now."""
        self.sync()
        self.complete()


class Background(Protocol):
    """Runs work that must not block a log."""

    def flush_soon(self, flush: PendingFlush) -> None:
        """Run `flush.sync()` where it may block, then `flush.complete()` in the log's thread."""

    def run_later(self, delay_ms: int, task: Callable[[], None]) -> None:
        """Run `task` (a few unlinks) in `delay_ms`. It need not survive the process: the next load
        finishes it."""

    def close_soon(self, close: Close) -> None:
        """Close a deleted file where closing may block. Called from any thread, by a destructor
        (see `File.close_by`)."""


class Inline:
    """Runs everything at once: for tools and tests without a runtime."""

    def flush_soon(self, flush: PendingFlush) -> None:
        flush.run()

    def run_later(self, delay_ms: int, task: Callable[[], None]) -> None:
        task()

    def close_soon(self, close: Close) -> None:
        close()
