"""Disk: files and directories by name, as a Runtime offers them.

Errors are those of the operating system: OSError. The log room turns them into StorageError in one
place (kafka08/log/files.py). No call here waits for another task; a slow disk blocks the calling
thread.

A power failure leaves the bytes that a completed `File.sync` covered, under a name that a completed
`sync` of its directory covered. Everything else may be old, new, torn or missing.
Paths are `pathlib.Path`, of which only the arithmetic is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum, auto
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pathlib import Path

Close = Callable[[], object]
"""Closes a file. It takes no argument and waits for the disk alone."""


class OpenMode(Enum):
    """How a file is opened. Every mode but READ also allows writing."""

    READ = auto()
    UPDATE = auto()
    """FileNotFoundError if it is missing."""
    CREATE = auto()
    """Creates an empty file if it is missing."""
    REPLACE = auto()
    """Creates the file, or empties it."""
    PRIVATE = auto()
    """Creates a file that its owner alone can read; FileExistsError if it exists."""


class Syncable(Protocol):
    """An open file or directory, which can be synced. It remains usable after its name is
    removed."""

    def sync(self) -> None:
        """Returns once all of it is on disk. Any thread may call it."""


class File(Syncable, Protocol):
    """An open file, which closes when its last reference goes.

    A reader that was given a slice of a segment keeps the file open this way, so a segment can be
    renamed, deleted and forgotten while its bytes are still on their way to a socket.

    descriptor   the operating system's, good for as long as this object is held; -1 if it has none
    """

    @property
    def descriptor(self) -> int: ...

    def pread(self, size: int, position: int) -> bytes:
        """Up to `size` bytes from `position`; fewer at the end of the file."""

    def pread_into(self, buffer: memoryview, position: int) -> int:
        """Like `pread`, into the start of the buffer. Returns the number of bytes."""

    def pwrite(self, data: bytes | bytearray | memoryview, position: int) -> None:
        """Write all of `data`. After an OSError a part of it may be written."""

    def size(self) -> int: ...

    def truncate(self, size: int) -> None:
        """Cut the file, or extend it by a hole that reads as zeros."""

    def allocate(self, position: int, size: int) -> None:
        """Reserve disk space for these bytes: a store into a map cannot report a full disk."""

    def map(self, size: int) -> memoryview:
        """The first `size` bytes, shared with the file: a store is a write. `size` is above 0 and
        not above the file's. The holder releases it before the file is truncated."""

    def set_modified_ns(self, modified_ns: int) -> None:
        """Set the time of the last write, in ns since 1970."""

    def close_by(self, close: Callable[[Close], object]) -> None:
        """Let `close` close the file. The last close of a deleted file frees its pages, which
        takes 0.1 s and more for a segment of 1 GB. A destructor calls it, in any thread."""


class DiskLock(Protocol):
    """A lock on a file, held until `release`.

    identity   the locked file, as no copy of it has it: what had a lock with this identity has
               ended by now. A copy of the text "I run here" says nothing
    """

    @property
    def identity(self) -> str: ...

    def release(self) -> None:
        """A second call does nothing."""


class Disk(Protocol):
    """Files and directories by name."""

    # Files

    def open(self, path: Path, mode: OpenMode) -> File: ...

    def exists(self, path: Path) -> bool:
        """Whether there is a file or a directory of that name."""

    def size(self, path: Path) -> int:
        """Bytes of a file."""

    def modified_ns(self, path: Path) -> int:
        """The time at which a file was last written, in ns since 1970."""

    def rename(self, old: Path, new: Path) -> None:
        """Rename a file; it replaces any file of the new name."""

    def remove(self, path: Path) -> None:
        """Delete a file if it is there."""

    # Directories

    def open_directory(self, path: Path) -> Syncable:
        """Open a directory, to sync the names in it."""

    def files_in(self, directory: Path) -> list[Path]:
        """The files in a directory, sorted by name."""

    def directories_in(self, directory: Path) -> Iterator[Path]:
        """The directories in a directory, sorted by name, as they are now. There may be thousands:
        the names are read at once, each path is made when it is asked for."""

    def is_directory(self, path: Path) -> bool: ...

    def is_accessible(self, directory: Path) -> bool:
        """Whether this process may list, read and write in it."""

    def is_own(self, directory: Path) -> bool:
        """Whether it belongs to this process's user or to root, so that no other may replace what
        is in it by links. Root accepts any."""

    def real_path(self, path: Path) -> Path:
        """The absolute path without symbolic links."""

    def make_directories(self, path: Path) -> None:
        """Make a directory, and those above it, if they are missing."""

    def remove_tree(self, directory: Path) -> None:
        """Delete a directory and everything in it. Of a symbolic link, here and inside, the link
        alone is deleted. What is missing, or is removed meanwhile, is no error."""

    def lock(self, path: Path) -> DiskLock:
        """Lock a file, which is created if it is missing. BlockingIOError if this process or
        another one holds the lock."""
