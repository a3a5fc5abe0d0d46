"""SystemDisk: files through the operating system."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from kafka08.runtime.disk import Close, Disk, DiskLock, File, OpenMode, Syncable
from kafka08.runtime.file_mapping import map_file

FLAGS: Final = {
    OpenMode.READ: os.O_RDONLY,
    OpenMode.UPDATE: os.O_RDWR,
    OpenMode.CREATE: os.O_RDWR | os.O_CREAT,
    OpenMode.REPLACE: os.O_RDWR | os.O_CREAT | os.O_TRUNC,
    OpenMode.PRIVATE: os.O_RDWR | os.O_CREAT | os.O_EXCL,
}
PERMISSIONS: Final = 0o666
"""The mode of a new file, less the umask; the same as the JVM's."""
PRIVATE_PERMISSIONS: Final = 0o600
BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


class Descriptor:
    """A descriptor that is closed when its last reference goes; CPython does that at once."""

    __slots__ = ("_close", "_close_by", "fd")

    def __init__(self, path: Path, flags: int, permissions: int = PERMISSIONS) -> None:
        self.fd = os.open(path, flags | os.O_CLOEXEC, permissions)
        # An attribute, because module globals may be gone when the interpreter ends.
        self._close: Callable[[int], None] = os.close
        self._close_by: Callable[[Close], object] | None = None

    def sync(self) -> None:
        os.fsync(self.fd)

    def close_by(self, close: Callable[[Close], object]) -> None:
        self._close_by = close

    def __del__(self) -> None:
        if not hasattr(self, "_close_by"):
            return  # it was never opened
        if self._close_by is None:
            self._close(self.fd)
        else:
            self._close_by(partial(self._close, self.fd))


class SystemFile(Descriptor):
    """An open file. `fd` is for sendfile, and for this package alone."""

    __slots__ = ()

    @property
    def descriptor(self) -> int:
        return self.fd

    def pread(self, size: int, position: int) -> bytes:
        return os.pread(self.fd, size, position)

    def pread_into(self, buffer: memoryview, position: int) -> int:
        return os.preadv(self.fd, [buffer], position)

    def pwrite(self, data: bytes | bytearray | memoryview, position: int) -> None:
        written = os.pwrite(self.fd, data, position)
        if written == len(data):
            return
        rest = memoryview(data)[written:]
        while rest:
            position += written
            written = os.pwrite(self.fd, rest, position)
            rest = rest[written:]

    def size(self) -> int:
        return os.fstat(self.fd).st_size

    def truncate(self, size: int) -> None:
        os.ftruncate(self.fd, size)

    def allocate(self, position: int, size: int) -> None:
        os.posix_fallocate(self.fd, position, size)

    def map(self, size: int) -> memoryview:
        return map_file(self.fd, size)

    def set_modified_ns(self, modified_ns: int) -> None:
        os.utime(self.fd, ns=(modified_ns, modified_ns))


class SystemLock:
    """A POSIX record lock, as Java's FileChannel.tryLock takes.

    Such locks belong to the process and are lost when any of its descriptors of the file closes,
    so the process keeps its own list and never opens a locked file again.
    """

    _held_here: set[tuple[int, int]] = set()

    def __init__(self, path: Path) -> None:
        self._file: Descriptor | None = None
        self.identity = ""
        if path.exists() and _identity(path) in self._held_here:
            raise BlockingIOError(f"this process holds {path}")
        file = Descriptor(path, FLAGS[OpenMode.CREATE])
        try:
            fcntl.lockf(file.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise BlockingIOError(f"another process holds {path}") from error
        self._identity = _identity(path)
        self._held_here.add(self._identity)
        # Another machine's disk may have equal numbers, as one that began as a snapshot has.
        self.identity = ":".join([_boot_id(), *map(str, self._identity)])
        self._file = file

    def release(self) -> None:
        if self._file is not None:
            self._held_here.discard(self._identity)
            self._file = None


def _boot_id() -> str:
    """The present run of this machine's kernel, which grants the locks; "" where it has no name."""
    try:
        return BOOT_ID.read_text().strip()
    except OSError:
        return ""


def _identity(path: Path) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino


class SystemDisk:
    """The disks of this machine."""

    def open(self, path: Path, mode: OpenMode) -> File:
        private = mode is OpenMode.PRIVATE
        return self._file(path, FLAGS[mode], PRIVATE_PERMISSIONS if private else PERMISSIONS)

    def _file(self, path: Path, flags: int, permissions: int) -> File:
        return SystemFile(path, flags, permissions)

    def exists(self, path: Path) -> bool:
        return path.exists()

    def size(self, path: Path) -> int:
        return os.stat(path).st_size

    def modified_ns(self, path: Path) -> int:
        return os.stat(path).st_mtime_ns

    def rename(self, old: Path, new: Path) -> None:
        os.rename(old, new)

    def remove(self, path: Path) -> None:
        path.unlink(missing_ok=True)

    def open_directory(self, path: Path) -> Syncable:
        return Descriptor(path, os.O_RDONLY | os.O_DIRECTORY)

    def files_in(self, directory: Path) -> list[Path]:
        with os.scandir(directory) as entries:
            names = sorted(entry.name for entry in entries if entry.is_file())
        return [directory / name for name in names]

    def directories_in(self, directory: Path) -> Iterator[Path]:
        with os.scandir(directory) as entries:
            names = sorted(entry.name for entry in entries if entry.is_dir())
        return map(directory.joinpath, names)

    def is_directory(self, path: Path) -> bool:
        return path.is_dir()

    def is_accessible(self, directory: Path) -> bool:
        return os.access(directory, os.R_OK | os.W_OK | os.X_OK)

    def is_own(self, directory: Path) -> bool:
        owner, user = os.stat(directory).st_uid, os.geteuid()
        return owner in {user, 0} or user == 0

    def real_path(self, path: Path) -> Path:
        return path.resolve()

    def make_directories(self, path: Path) -> None:
        path.mkdir(parents=True, exist_ok=True)

    def remove_tree(self, directory: Path) -> None:
        with suppress(FileNotFoundError):
            if directory.is_symlink():
                directory.unlink()
                return
            for path in list(directory.iterdir()):
                if path.is_dir():
                    self.remove_tree(path)
                else:
                    self.remove(path)
            directory.rmdir()

    def lock(self, path: Path) -> DiskLock:
        return SystemLock(path)


SYSTEM_DISK: Final[Disk] = SystemDisk()
"""The disk of the tools; a broker uses that of its Runtime."""
