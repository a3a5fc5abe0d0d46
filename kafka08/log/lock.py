"""The lock that keeps a second broker, ours or the JVM's, out of a log directory.

Source: kafka.utils.FileLock 0.8.2.2; Java's FileChannel.tryLock is a POSIX record lock.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from kafka08.errors import StorageError
from kafka08.log.files import NEW, OpenFile, storage_errors
from kafka08.log.names import LOCK_FILE


class DirectoryLock:
    """Holds `.lock` of a log directory from construction to `release`; the file stays.

    StorageError if somebody else holds it. POSIX locks belong to the process and are lost when
    any of its descriptors of the file closes, so the process keeps its own list and never opens a
    file twice.
    """

    _held_here: set[tuple[int, int]] = set()

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._file: OpenFile | None = None
        path = directory / LOCK_FILE
        if path.exists() and _identity(path) in self._held_here:
            raise self._taken()
        file = OpenFile(path, NEW)
        try:
            fcntl.lockf(file.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise self._taken() from None
        self._identity = _identity(path)
        self._held_here.add(self._identity)
        self._file = file

    def release(self) -> None:
        """Let others in. Does nothing the second time."""
        if self._file is not None:
            self._held_here.discard(self._identity)
            self._file = None

    def _taken(self) -> StorageError:
        return StorageError(
            f"Failed to acquire lock on file {LOCK_FILE} in {self._directory}. A Kafka instance "
            "in another process or thread is using this directory."
        )


def _identity(path: Path) -> tuple[int, int]:
    with storage_errors("open", path):
        status = os.stat(path)
    return status.st_dev, status.st_ino
