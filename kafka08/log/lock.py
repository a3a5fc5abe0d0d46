"""The lock that keeps a second broker, ours or the JVM's, out of a log directory.

Source: kafka.utils.FileLock 0.8.2.2.
"""

from __future__ import annotations

from pathlib import Path

from kafka08.errors import StorageError
from kafka08.log.files import storage_errors
from kafka08.log.names import LOCK_FILE
from kafka08.runtime.disk import Disk, DiskLock
from kafka08.runtime.system_disk import SYSTEM_DISK


def lock_directory(directory: Path, disk: Disk = SYSTEM_DISK) -> DiskLock:
    """Hold `.lock` of a log directory until `release`; the file stays. StorageError if another
    process or thread holds it."""
    path = directory / LOCK_FILE
    with storage_errors("lock", path):
        try:
            return disk.lock(path)
        except BlockingIOError:
            raise StorageError(
                f"Failed to acquire lock on file {LOCK_FILE} in {directory}. A Kafka instance "
                "in another process or thread is using this directory."
            ) from None
