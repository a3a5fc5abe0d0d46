"""One log directory (an entry of log.dirs): lock, clean-shutdown marker, recovery points."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kafka08.errors import StorageError
from kafka08.log import crashpoints
from kafka08.log.checkpoint import OffsetCheckpoint
from kafka08.log.files import (
    create_file,
    exists,
    make_directories,
    remove,
    storage_errors,
    sync_directory,
)
from kafka08.log.lock import lock_directory
from kafka08.log.names import CLEAN_SHUTDOWN_FILE, RECOVERY_POINT_CHECKPOINT
from kafka08.runtime.disk import Disk
from kafka08.runtime.system_disk import SYSTEM_DISK


class LogDirectory:
    """A log directory that this process owns until `release`. Created if missing.

    `was_clean` says whether the last owner stopped cleanly (a new directory counts as unclean:
    there is nothing to recover). StorageError if it cannot be used or another broker has locked it.
    """

    def __init__(
        self,
        path: Path,
        crash: crashpoints.CrashPoint = crashpoints.never,
        disk: Disk = SYSTEM_DISK,
    ) -> None:
        self.path = path
        self._disk = disk
        self._crash = crash
        missing = [one for one in (path, *path.parents) if not exists(disk, one)]
        make_directories(disk, path)
        for one in missing:  # their names must not be lost with flushed messages
            sync_directory(disk, one.parent)
        if not disk.is_accessible(path):
            raise StorageError(f"{path} is not a readable log directory.")
        if not disk.is_own(path):
            raise StorageError(
                f"{path} belongs to another user, who could have this broker delete or write files "
                "elsewhere. Give it to the broker's user (chown)"
            )
        self._lock = lock_directory(path, disk)
        self._marker = path / CLEAN_SHUTDOWN_FILE
        self.was_clean = exists(disk, self._marker)
        self.recovery_points = OffsetCheckpoint(path / RECOVERY_POINT_CHECKPOINT, crash, disk)
        self.recovery_points.create()

    @property
    def identity(self) -> str:
        """The directory as no copy of it has it."""
        return self._lock.identity

    def partition_directories(self) -> Iterator[Path]:
        """Every directory in it, sorted by name; each must be a partition's."""
        with storage_errors("list", self.path):
            return self._disk.directories_in(self.path)

    def remove_marker(self) -> None:
        """Mark this directory as not cleanly shut down. That is on disk on return: if a power
        failure restored the marker, the next start would skip recovery."""
        remove(self._disk, self._marker)
        sync_directory(self._disk, self.path)
        self._crash(crashpoints.LOAD_MARKER_REMOVED)

    def write_marker(self) -> None:
        """Record that every log here was flushed, closed and checkpointed."""
        create_file(self._disk, self._marker)

    def release(self) -> None:
        """Unlock. A second call does nothing."""
        self._lock.release()
