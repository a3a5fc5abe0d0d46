"""What a log leaves to its owner, because it may block or must wait: fsync and delayed deletes.

A log has no thread and no timer. It makes a `PendingFlush` or names a task, and the `Background`
it was given decides where and when that runs; the broker's uses native threads and its wheel.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from kafka08.log.files import OpenFile, storage_errors, sync_directory


class PendingFlush:
    """An fsync that has been decided on. `sync` may run in any thread: it touches nothing but
    descriptors. `complete` belongs to the thread of the log and moves its recovery point."""

    def __init__(
        self,
        directory: Path,
        files: Sequence[OpenFile],
        complete: Callable[[], None],
        *,
        names_too: bool,
    ) -> None:
        self._directory = directory
        self._files = files
        self._names_too = names_too
        self.complete = complete

    def sync(self) -> None:
        """Wait until the files (and the names of new ones) are on disk; StorageError if not."""
        with storage_errors("sync", self._directory):
            for file in self._files:
                os.fsync(file.fd)
        if self._names_too:
            sync_directory(self._directory)

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

    def close_soon(self, descriptor: int) -> None:
        """Close the descriptor of a deleted file where blocking does not hurt. Called from any
        thread, by a destructor."""


class Inline:
    """Everything at once: for tools and tests that have no runtime."""

    def flush_soon(self, flush: PendingFlush) -> None:
        flush.run()

    def run_later(self, delay_ms: int, task: Callable[[], None]) -> None:
        task()

    def close_soon(self, descriptor: int) -> None:
        os.close(descriptor)
