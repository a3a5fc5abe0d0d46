"""MemoryDisk: files in memory, with power failures.

A `kafka08.runtime.disk.Disk` that guarantees only what the interface promises:

- `lose_power` keeps everything that was synced. Of unsynced bytes, each sector of 512 is old or
  new, or zeros where only the file's size reached the disk; sizes are old, new or between.
- An unsynced truncation may be undone; then the writes after it are lost.
- Of the changes of a directory's names since its last sync, any number of the last ones are lost: a
  file system with a journal keeps their order, and logs rely on that where they delete several
  segments. No other order is kept, least of all between directories and files.
- `kill` ends the process alone: all files are as the process saw them, and its locks are gone.

After both, the process's open files are unusable and raise Gone. Stores into its maps have no
effect.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Final, NamedTuple, TypeAlias

from kafka08.runtime.disk import Close, OpenMode

SECTOR_BYTES: Final = 512
NAME_MAX: Final = 255
"""The longest name, in bytes."""


class Gone(BaseException):
    """A process that has ended used a file."""


class Content:
    """The bytes of a file.

    now       as the process reads them
    durable   as of the last sync
    cuts      (the bytes before, the size after) of each truncation since then
    """

    def __init__(self, modified_ns: int) -> None:
        self.now = bytearray()
        self.durable = b""
        self.cuts: list[tuple[bytes, int]] = []
        self.modified_ns = modified_ns

    def truncate(self, size: int) -> None:
        if size < len(self.now):
            self.cuts.append((bytes(self.now), size))
            del self.now[size:]
        else:
            self.now += bytes(size - len(self.now))

    def sync(self) -> None:
        self.durable = bytes(self.now)
        self.cuts = []

    sync_everything = sync

    def copy(self) -> Content:
        copied = Content(self.modified_ns)
        copied.now = bytearray(self.now)
        copied.sync()
        return copied

    def detach(self) -> None:
        """Detach the process's maps from the file."""
        self.now = bytearray(self.now)

    def lose_power(self, random: Random) -> None:
        kept_cuts = random.randint(0, len(self.cuts))
        found = self.durable
        for before, size in self.cuts[:kept_cuts]:
            found = mixed(found, before, random)[:size]
        later = [before for before, _ in self.cuts[kept_cuts:]]
        self.now = bytearray(mixed(found, later[0] if later else bytes(self.now), random))
        self.sync()


def mixed(old: bytes, new: bytes, random: Random) -> bytes:
    """The bytes on disk after some of the writes that changed `old` to `new`."""
    low, high = sorted((len(old), len(new)))
    size = random.choice((low, high, random.randint(low, high)))
    sectors = []
    for start in range(0, size, SECTOR_BYTES):
        end = min(start + SECTOR_BYTES, size)
        before, after = (data[start:end].ljust(end - start, b"\0") for data in (old, new))
        sectors.append(before if before == after or random.random() < 0.5 else after)
    return b"".join(sectors)


class Directory:
    """The names in a directory.

    now       as the process reads them
    durable   as of the last sync
    changes   the changes since then, in order
    """

    def __init__(self) -> None:
        self.now: dict[str, Node] = {}
        self.durable: dict[str, Node] = {}
        self.changes: list[NameChange] = []

    def change(self, change: NameChange) -> None:
        if change.new is not None and len(change.new.encode()) > NAME_MAX:
            raise failure(errno.ENAMETOOLONG, Path(change.new))
        apply(change, self.now)
        self.changes.append(change)

    def sync(self) -> None:
        self.durable = dict(self.now)
        self.changes = []

    def sync_everything(self) -> None:
        self.sync()
        for node in self.now.values():
            node.sync_everything()

    def copy(self) -> Directory:
        copied = Directory()
        copied.now = {name: node.copy() for name, node in self.now.items()}
        copied.sync()
        return copied

    def detach(self) -> None:
        for node in self.now.values():
            node.detach()

    def lose_power(self, random: Random) -> None:
        names = dict(self.durable)
        for change in self.changes[: random.randint(0, len(self.changes))]:
            apply(change, names)
        self.now = names
        self.sync()
        for node in names.values():
            node.lose_power(random)


Node: TypeAlias = Content | Directory


class NameChange(NamedTuple):
    """Renames `node` from `old` to `new`; None for a file that is created or removed."""

    old: str | None
    new: str | None
    node: Node


def apply(change: NameChange, names: dict[str, Node]) -> None:
    if change.old is not None:
        names.pop(change.old, None)
    if change.new is not None:
        names[change.new] = change.node


class MemoryDisk:
    """A disk with an empty root directory.

    name          tells a locked file of this disk from its copy on another one
    time_ms       the clock of the files: ms since 1970
    before        called before each change with its name and the file or directory. If it raises an
                  error, such as an OSError, the change fails with it
    before_read   called before each read of a file, likewise
    before_open   called before a file or directory is opened, likewise
    torn          given the size of a failing write, the number of bytes that it writes
    """

    def __init__(self, time_ms: Callable[[], int], name: str = "") -> None:
        self.name = name
        self.before: Callable[[str, Path], None] = lambda _action, _path: None
        self.before_read: Callable[[Path], None] = lambda _path: None
        self.before_open: Callable[[Path], None] = lambda _path: None
        self.torn: Callable[[int], int] = lambda _size: 0
        self.processes_ended = 0
        self._time_ms = time_ms
        self._root = Directory()
        self._locked: set[Path] = set()

    def kill(self) -> None:
        """The process ends."""
        self.processes_ended += 1
        self._locked = set()
        self._root.detach()

    def lose_power(self, random: Random) -> None:
        """The machine loses power and starts again."""
        self.kill()
        self._root.lose_power(random)

    def sync_everything(self) -> None:
        """As sync(1)."""
        self._root.sync_everything()

    def copy_from(self, other: MemoryDisk) -> None:
        """Take what is on another disk, as a process reads it now."""
        self._root = other._root.copy()

    def now_ns(self) -> int:
        return self._time_ms() * 1_000_000

    # Files

    def open(self, path: Path, mode: OpenMode) -> MemoryFile:
        self.before_open(path)
        parent = self._directory(path.parent)
        found = parent.now.get(path.name)
        if found is None:
            if mode in {OpenMode.READ, OpenMode.UPDATE}:
                raise failure(errno.ENOENT, path)
            self.before("create", path)
            found = Content(self.now_ns())
            parent.change(NameChange(None, path.name, found))
        elif mode is OpenMode.PRIVATE:
            raise failure(errno.EEXIST, path)
        if isinstance(found, Directory):
            raise failure(errno.EISDIR, path)
        file = MemoryFile(self, path, found, writable=mode is not OpenMode.READ)
        if mode is OpenMode.REPLACE:
            file.truncate(0)
        return file

    def exists(self, path: Path) -> bool:
        return self._find(path) is not None

    def size(self, path: Path) -> int:
        return len(self._content(path).now)

    def modified_ns(self, path: Path) -> int:
        return self._content(path).modified_ns

    def rename(self, old: Path, new: Path) -> None:
        assert old.parent == new.parent, "this disk renames within a directory"
        found = self._find(old)
        if found is None:
            raise failure(errno.ENOENT, old)
        if isinstance(self._find(new), Directory) or (
            isinstance(found, Directory) and self.exists(new)
        ):
            raise failure(errno.EEXIST, new)
        self.before("rename", old)
        self._directory(old.parent).change(NameChange(old.name, new.name, found))

    def remove(self, path: Path) -> None:
        try:
            parent = self._directory(path.parent)
        except FileNotFoundError:
            return
        found = parent.now.get(path.name)
        if isinstance(found, Directory):
            raise failure(errno.EISDIR, path)
        if found is not None:
            self.before("remove", path)
            parent.change(NameChange(path.name, None, found))

    # Directories

    def open_directory(self, path: Path) -> MemoryDirectory:
        self.before_open(path)
        return MemoryDirectory(self, path, self._directory(path))

    def files_in(self, directory: Path) -> list[Path]:
        return self._paths_in(directory, Content)

    def directories_in(self, directory: Path) -> Iterator[Path]:
        return iter(self._paths_in(directory, Directory))

    def is_directory(self, path: Path) -> bool:
        return isinstance(self._find(path), Directory)

    def is_accessible(self, directory: Path) -> bool:
        return self.is_directory(directory)

    def is_own(self, directory: Path) -> bool:
        self._directory(directory)
        return True

    def real_path(self, path: Path) -> Path:
        return Path(os.path.normpath(path))

    def make_directories(self, path: Path) -> None:
        here = self._root
        for name in path.parts[1:]:
            found = here.now.get(name)
            if found is None:
                self.before("make directory", path)
                found = Directory()
                here.change(NameChange(None, name, found))
            if isinstance(found, Content):
                raise failure(errno.ENOTDIR, path)
            here = found

    def remove_tree(self, directory: Path) -> None:
        with suppress(FileNotFoundError):
            for path in self.directories_in(directory):
                self.remove_tree(path)
            for path in self.files_in(directory):
                self.remove(path)
            gone = self._directory(directory)
            self.before("remove directory", directory)
            self._directory(directory.parent).change(NameChange(directory.name, None, gone))

    def lock(self, path: Path) -> MemoryLock:
        self.open(path, OpenMode.CREATE)
        if path in self._locked:
            raise BlockingIOError(f"{path} is locked")
        return MemoryLock(self._locked, path, f"{self.name}{path}")

    def _find(self, path: Path) -> Node | None:
        assert path.is_absolute(), f"{path} is relative, and this disk has no current directory"
        here: Node = self._root
        for name in path.parts[1:]:
            if not isinstance(here, Directory) or name not in here.now:
                return None
            here = here.now[name]
        return here

    def _directory(self, path: Path) -> Directory:
        found = self._find(path)
        if not isinstance(found, Directory):
            raise failure(errno.ENOENT if found is None else errno.ENOTDIR, path)
        return found

    def _content(self, path: Path) -> Content:
        found = self._find(path)
        if not isinstance(found, Content):
            raise failure(errno.ENOENT if found is None else errno.EISDIR, path)
        return found

    def _paths_in(self, directory: Path, kind: type[Node]) -> list[Path]:
        names = self._directory(directory).now
        return sorted(directory / name for name, node in names.items() if isinstance(node, kind))


def failure(number: int, path: Path) -> OSError:
    return OSError(number, os.strerror(number), str(path))


class MemoryLock:
    def __init__(self, locked: set[Path], path: Path, identity: str) -> None:
        locked.add(path)
        self.identity = identity
        self._locked = locked
        self._path = path

    def release(self) -> None:
        self._locked.discard(self._path)


class MemoryDirectory:
    """An open directory, for `sync`."""

    def __init__(self, disk: MemoryDisk, path: Path, node: Directory) -> None:
        self._disk = disk
        self._path = path
        self._node = node
        self._process = disk.processes_ended

    def sync(self) -> None:
        if self._disk.processes_ended != self._process:
            raise Gone(self._path)
        self._disk.before("sync", self._path)
        self._node.sync()


class MemoryFile:
    """An open file."""

    def __init__(self, disk: MemoryDisk, path: Path, content: Content, *, writable: bool) -> None:
        self._disk = disk
        self._path = path
        self._content = content
        self._writable = writable
        self._process = disk.processes_ended
        self._close_by: Callable[[Close], object] | None = None

    @property
    def descriptor(self) -> int:
        return -1

    def pread(self, size: int, position: int) -> bytes:
        content = self._opened()
        self._disk.before_read(self._path)
        return bytes(content.now[position : position + size])

    def pread_into(self, buffer: memoryview, position: int) -> int:
        data = self.pread(len(buffer), position)
        buffer[: len(data)] = data
        return len(data)

    def pwrite(self, data: bytes | bytearray | memoryview, position: int) -> None:
        try:
            content = self._change("write")
        except OSError:
            if torn := self._disk.torn(len(data)):
                self._put(self._content, memoryview(data)[:torn], position)
            raise
        self._put(content, data, position)

    @staticmethod
    def _put(content: Content, data: bytes | bytearray | memoryview, position: int) -> None:
        if len(content.now) < position:
            content.truncate(position)
        content.now[position : position + len(data)] = data

    def size(self) -> int:
        return len(self._opened().now)

    def truncate(self, size: int) -> None:
        self._change("truncate").truncate(size)

    def allocate(self, position: int, size: int) -> None:
        content = self._change("allocate")
        content.truncate(max(len(content.now), position + size))

    def map(self, size: int) -> memoryview:
        """A map of the bytes themselves: truncating the file under a map is a BufferError."""
        content = self._opened()
        if not 0 < size <= len(content.now):
            raise ValueError(f"cannot map {size} of {len(content.now)} bytes of {self._path}")
        return memoryview(content.now)[:size]

    def set_modified_ns(self, modified_ns: int) -> None:
        self._change("set time").modified_ns = modified_ns

    def sync(self) -> None:
        content = self._opened()
        self._disk.before("sync", self._path)
        content.sync()

    def close_by(self, close: Callable[[Close], object]) -> None:
        self._close_by = close

    def _opened(self) -> Content:
        if self._disk.processes_ended != self._process:
            raise Gone(self._path)
        return self._content

    def _change(self, action: str) -> Content:
        content = self._opened()
        if not self._writable:
            raise failure(errno.EBADF, self._path)
        self._disk.before(action, self._path)
        content.modified_ns = self._disk.now_ns()
        return content

    def __del__(self) -> None:
        if self._close_by is not None:
            self._close_by(lambda: None)
