"""What a log leaves to its owner, because it may block or must wait: fsync and delayed deletes.

A log has no thread and no timer. It makes a `PendingFlush` or names a task, and the `Background`
it was given decides where and when that runs; the broker's uses native threads and its wheel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from kafka08.log.files import storage_errors
from kafka08.runtime.disk import Close, Syncable


class PendingFlush:
    """An fsync that has been decided on. `sync` may run in any thread: it touches nothing but
    open files, so the log may be deleted meanwhile. `complete` belongs to the thread of the log
    and moves its recovery point.

    name    of the log, for errors
    files   what is to be synced, in this order: segments, and the directory for new names in it
    """

    def __init__(self, name: str, files: Sequence[Syncable], complete: Callable[[], None]) -> None:
        self._name = name
        self._files = files
        self.complete = complete

    def sync(self) -> None:
        """Wait until all of it is on disk; StorageError if it cannot be."""
        with storage_errors("sync", self._name):
            for file in self._files:
                file.sync()

    def then(self, call: Callable[[], object]) -> PendingFlush:
        """The same flush, whose `complete` also calls `call`."""

        def complete() -> None:
            self.complete()
            call()

        return PendingFlush(self._name, self._files, complete)

    def run(self) -> None:
        """Both halves, here and now."""
        self.sync()
        self.complete()


class Background(Protocol):
    """Runs what a log must not wait for."""

    def flush_soon(self, flush: PendingFlush) -> None:
        """Run `flush.sync()` where blocking does not hurt, then `flush.complete()` at home."""

    def run_later(self, delay_ms: int, task: Callable[[], None]) -> None:
        """Run `task` (a few unlinks) in `delay_ms`. It need not survive the process: what it
        leaves undone, the next load does."""

    def close_soon(self, close: Close) -> None:
        """Close a deleted file where blocking does not hurt. Called from any thread, by a
        destructor (see `File.close_by`)."""


class Inline:
    """Everything at once: for tools and tests that have no runtime."""

    def flush_soon(self, flush: PendingFlush) -> None:
        flush.run()

    def run_later(self, delay_ms: int, task: Callable[[], None]) -> None:
        task()

    def close_soon(self, close: Close) -> None:
        close()
