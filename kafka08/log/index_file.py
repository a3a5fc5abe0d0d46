"""IndexFile: the common part of a segment's indexes, fixed-size entries in one file.

An index carries no checksum: after a crash it is rebuilt from the messages. That of an active
segment is pre-allocated (a sparse file, zeros after the last entry) and trimmed to its entries when
the segment is rolled or closed. An entry of zeros is an unused one. Source: kafka.log.AbstractIndex
0.10.2.2.
"""

from __future__ import annotations

from bisect import bisect_left
from pathlib import Path
from typing import ClassVar, Final

from kafka08 import kernel
from kafka08.log.files import open_file, storage_errors
from kafka08.runtime.disk import Disk, File, OpenMode
from kafka08.runtime.system_disk import SYSTEM_DISK

PAGE_BYTES: Final = 4096
"""The unit in which blocks are allocated to a pre-allocated index."""


class IndexFile(kernel.IndexTail):
    """An index file of entries of `entry_bytes`. Opens the file as it is, or creates an empty one;
    `grow` makes it writable.

    entries    the number of used entries
    capacity   the number of entries with room; 0 until `grow`
    allocated  bytes for which the disk has blocks
    view       the mapped file, or None

    A mapped file is closed, so that the many thousand indexes of a broker take no descriptors. It
    is opened again for what a map cannot do, which is rare. Not thread-safe.
    """

    __slots__ = ("_disk", "path")

    entry_bytes: ClassVar[int]

    def __init__(self, path: Path, base_offset: int, disk: Disk = SYSTEM_DISK) -> None:
        self.path = path
        self.base_offset = base_offset
        self.capacity = 0
        self.allocated = 0
        self._disk = disk
        self.view = None
        file = open_file(disk, path, OpenMode.CREATE)
        with storage_errors("read", path):
            self.entries = file.size() // self.entry_bytes
            used = self._used_entries(file)
            self._begin(self._read_entry(file, used - 1) if used else None)
        # Zeros that a crash left are cut off: they are no entries.
        if used < self.entries:
            self.entries = used
            self.seal()

    def _begin(self, last: bytes | None) -> None:
        """Set the last entry from its bytes; None if there is none."""
        raise NotImplementedError

    def truncate_to(self, offset: int) -> None:
        """Drop the entries at or above `offset`. The index must have been grown."""
        raise NotImplementedError

    @property
    def size(self) -> int:
        """Bytes of the entries."""
        return self.entries * self.entry_bytes

    def grow(self, max_bytes: int) -> None:
        """Pre-allocate to `max_bytes` (rounded down to whole entries, at least one more than there
        are) and accept entries."""
        self._unmap()
        self.capacity = max(max_bytes // self.entry_bytes, self.entries + 1)
        file = self.opened()
        with storage_errors("pre-allocate", self.path):
            # Shorter first: the file must read as zeros after the last entry.
            file.truncate(self.size)
            file.truncate(self.capacity * self.entry_bytes)
        self.allocated = self.size
        self._map_file(file, self.capacity)

    def seal(self) -> None:
        """Trim the file to its entries and accept no more: for rolled and closed indexes."""
        file = self.opened()
        self._unmap()
        self.capacity = 0
        with storage_errors("trim", self.path):
            file.truncate(self.size)

    def size_problem(self) -> str | None:
        """Why the file's size is wrong; None if it is right."""
        with storage_errors("measure", self.path):
            size = self._disk.size(self.path)
        if size % self.entry_bytes:
            return f"size {size} is not a multiple of {self.entry_bytes}"
        return None

    def opened(self) -> File:
        """The file, open for writing, for example to sync it."""
        return open_file(self._disk, self.path, OpenMode.UPDATE)

    def close(self) -> None:
        """Trim the file and close it."""
        if self.view is not None and self.capacity:
            self.seal()
        self._unmap()

    def forget(self) -> None:
        """Close the file as it is: it was deleted."""
        self._unmap()
        self.capacity = 0

    def _keep(self, entries: int) -> None:
        """Overwrite the entries after the first `entries` with zeros. The index must have been
        grown."""
        assert self.capacity, "truncate of a sealed index"
        dropped = bytes((self.entries - entries) * self.entry_bytes)
        file = self.opened()
        with storage_errors("truncate", self.path):
            file.pwrite(dropped, entries * self.entry_bytes)
        self.entries = entries

    def _map_file(self, file: File, entries: int) -> memoryview:
        with storage_errors("map", self.path):
            self.view = mapped = file.map(entries * self.entry_bytes)
        return mapped

    def _unmap(self) -> None:
        if self.view is not None:
            self.view.release()
        self.view = None

    def _allocate_page(self) -> None:
        """Allocate blocks for the next page: on a full disk a store into a hole would kill the
        process by a signal, while this raises an error."""
        file = self.opened()
        size = min(PAGE_BYTES, self.capacity * self.entry_bytes - self.allocated)
        with storage_errors("extend", self.path):
            file.allocate(self.allocated, size)
        self.allocated += size

    def _used_entries(self, file: File) -> int:
        """The number of entries before the zeros that a crash left at the end. Read, not mapped: a
        load from a mapped hole takes a page, and on a full tmpfs it kills the process."""
        unused = bytes(self.entry_bytes)
        if not self.entries or self._read_entry(file, self.entries - 1) != unused:
            return self.entries
        return bisect_left(
            range(self.entries), True, key=lambda slot: self._read_entry(file, slot) == unused
        )

    def _read_entry(self, file: File, slot: int) -> bytes:
        return file.pread(self.entry_bytes, slot * self.entry_bytes)
