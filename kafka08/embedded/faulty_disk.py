"""FaultyDisk: the disk of a broker in an embedded cluster, which fails when told to."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

from kafka08.faults.disk import DiskFault
from kafka08.runtime.disk import File, Syncable
from kafka08.runtime.system_disk import Descriptor, SystemDisk, SystemFile


class FaultyDisk(SystemDisk):
    """The disks of this machine, with a fault.

    sleep   blocks the calling thread, so that a slow disk holds up what a slow disk does
    fault   at present; None: none. Files that are open already have it, too
    """

    def __init__(self, sleep: Callable[[float], object]) -> None:
        self._sleep = sleep
        self.fault: DiskFault | None = None

    def _file(self, path: Path, flags: int, permissions: int) -> File:
        return FaultyFile(self, path, flags, permissions)

    def open_directory(self, path: Path) -> Syncable:
        return FaultyDirectory(self, path)

    def before_sync(self) -> None:
        """Wait, and raise OSError, as the fault says."""
        if (fault := self.fault) is not None:
            self._sleep(fault.delay_ms / 1000)
            if fault.failing_fsync:
                raise OSError(errno.EIO, os.strerror(errno.EIO))

    def before_write(self, file: SystemFile, end: int) -> None:
        """Wait, and raise OSError, as the fault says for a write that ends at `end`."""
        if (fault := self.fault) is not None:
            self._sleep(fault.delay_ms / 1000)
            if fault.full and end > file.size():
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class FaultyDirectory(Descriptor):
    """An open directory of a FaultyDisk."""

    __slots__ = ("_disk",)

    def __init__(self, disk: FaultyDisk, path: Path) -> None:
        self._disk = disk
        super().__init__(path, os.O_RDONLY | os.O_DIRECTORY)

    def sync(self) -> None:
        self._disk.before_sync()
        super().sync()


class FaultyFile(SystemFile):
    """An open file of a FaultyDisk."""

    __slots__ = ("_disk",)

    def __init__(self, disk: FaultyDisk, path: Path, flags: int, permissions: int) -> None:
        self._disk = disk
        super().__init__(path, flags, permissions)

    @property
    def descriptor(self) -> int:
        """-1 while there is a fault: who has the descriptor writes past it."""
        return self.fd if self._disk.fault is None else -1

    def pwrite(self, data: bytes | bytearray | memoryview, position: int) -> None:
        self._disk.before_write(self, position + len(data))
        super().pwrite(data, position)

    def truncate(self, size: int) -> None:
        self._disk.before_write(self, size)
        super().truncate(size)

    def allocate(self, position: int, size: int) -> None:
        self._disk.before_write(self, position + size)
        super().allocate(position, size)

    def sync(self) -> None:
        self._disk.before_sync()
        super().sync()
