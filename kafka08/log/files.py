"""Disk errors: turns OSError from the disk into an error of ours, for this whole package.

Every use of a Disk or a File is in a function of this module or under `storage_errors`. An error of
the disk is a StorageError, which halts a broker: it must acknowledge nothing that may be
half-written. An error in NOT_THE_DISK is a FileRefused, which refuses a partition. Nothing else
decides what halts a broker.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

from kafka08.errors import FileRefused, StorageError
from kafka08.runtime.disk import Disk, File, OpenMode, Syncable

T = TypeVar("T")

NOT_THE_DISK: Final = frozenset(
    {
        # The name: of a topic that a client chose, say.
        errno.ENAMETOOLONG,
        errno.EILSEQ,
        # Something else has the name.
        errno.EEXIST,
        errno.ENOTDIR,
        errno.EISDIR,
        errno.ENOTEMPTY,
        errno.ELOOP,
        # Permissions.
        errno.EACCES,
        errno.EPERM,
        # Limits of the process or the system: descriptors, mappings, links.
        errno.EMFILE,
        errno.ENFILE,
        errno.ENOMEM,
        errno.EMLINK,
    }
)
"""The errors of the system that are not those of a disk. All others are, also those that we do not
know: EIO, ENOSPC, EDQUOT, EROFS; and ENOENT, because messages that were acknowledged are gone with
their file or their file system."""


def storage_error(action: str, path: object, error: OSError) -> StorageError | FileRefused:
    """The error for the broker: action, path, and the operating system's reason."""
    kind = FileRefused if error.errno in NOT_THE_DISK else StorageError
    return kind(f"cannot {action} {path}: {error.strerror or error}")


@contextmanager
def storage_errors(action: str, path: object) -> Iterator[None]:
    """Turn OSError into StorageError or FileRefused. `action` completes the sentence "cannot …
    <path>"."""
    try:
        yield
    except OSError as error:
        raise storage_error(action, path, error) from error


@contextmanager
def no_way_back() -> Iterator[None]:
    """A log is half changed within, so that what is refused is as bad as a failed disk: the next
    start repairs it. StorageError for FileRefused."""
    try:
        yield
    except FileRefused as error:
        raise StorageError(f"{error}, in the middle of a change of the log") from error


def in_each(directories: Iterable[T], call: Callable[[T], object]) -> None:
    """Call it with each directory. What the system refuses in one keeps it from no other: the
    FileRefused comes at the end."""
    refused: FileRefused | None = None
    for directory in directories:
        try:
            call(directory)
        except FileRefused as error:
            refused = error
    if refused is not None:
        raise refused


def open_file(disk: Disk, path: Path, mode: OpenMode) -> File:
    """The open file; only CREATE and REPLACE create a missing one."""
    with storage_errors("open", path):
        return disk.open(path, mode)


def open_directory(disk: Disk, path: Path) -> Syncable:
    """A directory, to sync its names."""
    with storage_errors("open", path):
        return disk.open_directory(path)


def create_file(disk: Disk, path: Path) -> None:
    """Create a file, empty, if it is missing."""
    with storage_errors("create", path):
        disk.open(path, OpenMode.CREATE)


def exists(disk: Disk, path: Path) -> bool:
    """Whether there is a file or a directory of that name."""
    with storage_errors("look for", path):
        return disk.exists(path)


def read_file(disk: Disk, path: Path) -> bytes:
    """The whole content of a small file."""
    with storage_errors("read", path):
        file = disk.open(path, OpenMode.READ)
        return file.pread(file.size(), 0)


def file_size(file: File, path: Path) -> int:
    """Size in bytes."""
    with storage_errors("measure", path):
        return file.size()


def modified_ns(disk: Disk, path: Path) -> int:
    """The file's modification time, in ns since 1970."""
    with storage_errors("read the time of", path):
        return disk.modified_ns(path)


def modified_ms(disk: Disk, path: Path) -> int:
    """Like `modified_ns`, in ms: for retention and time lookups."""
    return modified_ns(disk, path) // 1_000_000


def rename(disk: Disk, old: Path, new: Path) -> None:
    """Rename a file, replacing another of that name."""
    with storage_errors("rename", old):
        disk.rename(old, new)


def replace_file(
    disk: Disk, path: Path, text: str, written: Callable[[], object] = lambda: None
) -> None:
    """Replace a small file, or create it. `path`.tmp is written, synced and renamed, so a reader
    finds the old text or the new one; the directory is synced after that, so that a power failure
    does not restore the old text. `written` is called before the rename."""
    temporary = temporary_of(path)
    with storage_errors("write", temporary):
        file = disk.open(temporary, OpenMode.REPLACE)
        file.pwrite(text.encode(), 0)
        file.sync()
    written()
    rename(disk, temporary, path)
    sync_directory(disk, path.parent)


def temporary_of(path: Path) -> Path:
    """The file that `replace_file` writes; a crash may leave it, and nobody reads it."""
    return path.with_name(f"{path.name}.tmp")


def remove(disk: Disk, path: Path) -> None:
    """Delete a file if it exists."""
    with storage_errors("delete", path):
        disk.remove(path)


def make_directories(disk: Disk, path: Path) -> None:
    """Create a directory and its parents, if missing."""
    with storage_errors("create", path):
        try:
            disk.make_directories(path)
        except (FileExistsError, NotADirectoryError) as error:
            raise FileRefused(
                f"cannot create the directory {path}: a file is in its place. Move that away, or "
                "use another directory"
            ) from error


def files_in(disk: Disk, directory: Path) -> list[Path]:
    """The files in a directory, sorted by name."""
    with storage_errors("list", directory):
        return disk.files_in(directory)


def sync_directory(disk: Disk, path: Path) -> None:
    """Make created, renamed and deleted names of a directory survive a power failure."""
    directory = open_directory(disk, path)
    with storage_errors("sync", path):
        directory.sync()
