"""Files of the log: descriptors that outlive their names, and the one place for disk errors.

Every system call of this room on a log directory happens under `storage_errors` or in a method
that calls `storage_error` itself, so that nothing but errors.StorageError comes out of it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from kafka08.errors import StorageError
from kafka08.kernel.types import Buffer

NEW: Final = os.O_RDWR | os.O_CREAT
READ_ONLY: Final = os.O_RDONLY
READ_WRITE: Final = os.O_RDWR
DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY


def storage_error(action: str, path: object, error: OSError) -> StorageError:
    """What the broker is told when the operating system refused: action, path, reason."""
    return StorageError(f"cannot {action} {path}: {error.strerror or error}")


@contextmanager
def storage_errors(action: str, path: object) -> Iterator[None]:
    """Turn OSError into StorageError. `action` completes the sentence "cannot … <path>"."""
    try:
        yield
    except OSError as error:
        raise storage_error(action, path, error) from error


class OpenFile:
    """A descriptor that is closed when its last holder lets go of it.

    A reader that was given a slice of a segment keeps the file open this way, so a segment can be
    renamed, deleted and forgotten while its bytes are still on their way to a socket. CPython's
    reference counts make the close immediate.
    """

    __slots__ = ("_close", "fd")

    def __init__(self, path: Path, flags: int) -> None:
        with storage_errors("open", path):
            self.fd = os.open(path, flags | os.O_CLOEXEC, 0o644)
        # Kept here because module globals may be gone when the interpreter ends.
        self._close: Callable[[int], None] = os.close

    def fileno(self) -> int:
        return self.fd

    def close_by(self, close: Callable[[int], None]) -> None:
        """Have another function close it. The last close of a deleted file frees its pages, which
        holds up whoever calls it: 0.1 s and more for a segment of 1 GB."""
        self._close = close

    def __del__(self) -> None:
        if hasattr(self, "_close"):
            self._close(self.fd)


def write_at(fd: int, data: Buffer, position: int) -> None:
    """Write all of `data`, however often that takes. OSError, with a part written."""
    written = os.pwrite(fd, data, position)
    if written == len(data):
        return
    rest = memoryview(data)[written:]
    while rest:
        position += written
        written = os.pwrite(fd, rest, position)
        rest = rest[written:]


def file_size(file: OpenFile, path: Path) -> int:
    """Size in bytes."""
    with storage_errors("measure", path):
        return os.fstat(file.fd).st_size


def modified_ms(path: Path) -> int:
    """When the file was last written, in ms since 1970: what retention and time lookups go by."""
    with storage_errors("read the time of", path):
        return os.stat(path).st_mtime_ns // 1_000_000


def rename(old: Path, new: Path) -> None:
    """Give a file another name, replacing whatever had it."""
    with storage_errors("rename", old):
        old.rename(new)


def remove(path: Path) -> None:
    """Delete a file if it is there."""
    with storage_errors("delete", path):
        path.unlink(missing_ok=True)


def sync_directory(path: Path) -> None:
    """Make created, renamed and deleted names of a directory survive a power failure."""
    directory = OpenFile(path, DIRECTORY)
    with storage_errors("sync", path):
        os.fsync(directory.fd)
