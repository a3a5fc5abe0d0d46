"""The lock that keeps a second broker, ours or the JVM's, out of a log directory.

Source: kafka.utils.FileLock 0.8.2.2.
"""

from __future__ import annotations

from pathlib import Path

from kafka08.errors import StorageError
from kafka08.log.files import storage_errors
from kafka08.log.names import LOCK_FILE
from kafka08.runtime.disk import Disk
from kafka08.runtime.system_disk import SYSTEM_DISK


class DirectoryLock:
    """Holds `.lock` of a log directory from construction to `release`; the file stays.

    StorageError if another process or thread holds it.
    """

    def __init__(self, directory: Path, disk: Disk = SYSTEM_DISK) -> None:
        path = directory / LOCK_FILE
        with storage_errors("lock", path):
            try:
                self._lock = disk.lock(path)
            except BlockingIOError:
                raise StorageError(
                    f"Failed to acquire lock on file {LOCK_FILE} in {directory}. A Kafka instance "
                    "in another process or thread is using this directory."
                ) from None

    @property
    def identity(self) -> str:
        """The directory as no copy of it has it (runtime/disk.py)."""
        return self._lock.identity

    def release(self) -> None:
        """Unlock. A second call does nothing."""
        self._lock.release()
