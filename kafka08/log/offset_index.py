"""The sparse index of one segment: offset → position in its message file.

    relative offset   u32   offset of the first message of a set, minus the segment's base offset
    position          u32   byte of the message file at which that set starts

Entries are big endian, 8 bytes, ascending in both columns, and carry no checksum: after a crash the
index is rebuilt from the messages. The index of an active segment is pre-allocated (a sparse file,
zeros after the last entry) and trimmed to its entries when the segment is rolled or closed. No
entry has position 0, so an entry of zeros is an unused one. Source: kafka.log.OffsetIndex 0.8.2.2.
"""

from __future__ import annotations

import ctypes
import struct
from bisect import bisect_left, bisect_right
from collections.abc import MutableSequence
from pathlib import Path
from typing import Final, NamedTuple, cast

from kafka08.config import INT_MAX
from kafka08.log.files import open_file, storage_errors
from kafka08.runtime.disk import Disk, File, OpenMode
from kafka08.runtime.system_disk import SYSTEM_DISK

INDEX_ENTRY: Final = struct.Struct(">II")
"""Offset less the base offset, position in the message file."""
INDEX_ENTRY_BYTES: Final = INDEX_ENTRY.size
NO_ENTRY: Final = bytes(INDEX_ENTRY_BYTES)
PAGE_BYTES: Final = 4096
"""Room is given to a pre-allocated index so much at a time."""
LOW_32: Final = 0xFFFFFFFF
BIG_ENDIAN_ENTRY: Final[type[ctypes.c_uint64]] = ctypes.c_uint64.__ctype_be__
"""An array of these over the mapped file is a sequence of integers `relative offset << 32 |
position`, which C code can bisect without a Python call per step."""


class IndexEntry(NamedTuple):
    """An absolute offset and the position of its set in the message file."""

    offset: int
    position: int


class OffsetIndex:
    """An index file. Opens the file as it is, or makes an empty one; `grow` makes it writable.

    `entries` counts entries, `last` is the last one ((base_offset, 0) if there is none), which
    readers of the log's tail use instead of a lookup. Not thread-safe.
    """

    __slots__ = ("_allocated", "_disk", "_file", "_map", "_view", "base_offset", "capacity",
                 "entries", "last", "path")  # fmt: skip

    def __init__(self, path: Path, base_offset: int, disk: Disk = SYSTEM_DISK) -> None:
        self.path = path
        self.base_offset = base_offset
        self.capacity = 0
        self._allocated = 0
        self._disk = disk
        self._map: memoryview | None = None
        self._view: MutableSequence[int] | None = None
        self._file: File | None = None
        file = open_file(disk, path, OpenMode.CREATE)
        with storage_errors("read", path):
            self.entries = file.size() // INDEX_ENTRY_BYTES
            used = _used_entries(file, self.entries)
            last = _read_entry(file, used - 1) if used else NO_ENTRY
        relative, position = INDEX_ENTRY.unpack(last)
        self.last = IndexEntry(base_offset + relative, position)
        if used < self.entries:
            self.entries = used
            self.seal()

    @property
    def size(self) -> int:
        """Bytes of the entries."""
        return self.entries * INDEX_ENTRY_BYTES

    @property
    def is_full(self) -> bool:
        """No room for another entry; always so until `grow`."""
        return self.entries >= self.capacity

    def takes(self, offset: int, position: int) -> bool:
        """Whether an entry has the bits for them. No CRC covers an offset: one that a disk has
        changed may be any number."""
        return 0 < offset - self.base_offset <= INT_MAX and position <= INT_MAX

    def grow(self, max_bytes: int) -> None:
        """Pre-allocate to `max_bytes` (rounded down to whole entries, at least one more than there
        are) and accept entries."""
        self._unmap()
        self.capacity = max(max_bytes // INDEX_ENTRY_BYTES, self.entries + 1)
        file = self._file = self.opened()
        with storage_errors("pre-allocate", self.path):
            # Shorter first: what lies behind the last entry must read as zeros.
            file.truncate(self.entries * INDEX_ENTRY_BYTES)
            file.truncate(self.capacity * INDEX_ENTRY_BYTES)
        self._allocated = self.entries * INDEX_ENTRY_BYTES
        self._map_file(file, self.capacity)

    def append(self, offset: int, position: int) -> None:
        """Add an entry. `offset` and `position` are above those of the last entry; not full."""
        slot = self.entries
        assert slot < self.capacity, f"append to a sealed or full index {self.path}"
        assert self._view is not None, "an index that has grown is mapped"
        assert offset > self.last.offset, f"{offset} does not follow {self.last} in {self.path}"
        assert position > self.last.position, f"position {position} does not follow {self.last}"
        assert offset - self.base_offset <= INT_MAX, f"offset {offset} is too far from the base"
        if slot * INDEX_ENTRY_BYTES >= self._allocated:
            self._allocate_page()
        self._view[slot] = (offset - self.base_offset) << 32 | position
        self.entries = slot + 1
        self.last = IndexEntry(offset, position)

    def lookup(self, target: int) -> IndexEntry:
        """The greatest entry with offset <= target; (base_offset, 0) if there is none."""
        if target >= self.last.offset:
            return self.last
        if self.entries == 0 or target <= self.base_offset:
            return IndexEntry(self.base_offset, 0)
        key = (target - self.base_offset) << 32 | LOW_32
        return self._entry(bisect_right(self._entries_view(), key, 0, self.entries) - 1)

    def truncate_to(self, offset: int) -> None:
        """Drop the entries at or above `offset`. The index must have been grown."""
        assert self._file is not None, "truncate of a sealed index"
        key = max(offset - self.base_offset, 0) << 32
        keep = bisect_left(self._entries_view(), key, 0, self.entries)
        with storage_errors("truncate", self.path):
            unused = bytes((self.entries - keep) * INDEX_ENTRY_BYTES)
            self._file.pwrite(unused, keep * INDEX_ENTRY_BYTES)
        self.entries = keep
        self.last = self._entry(keep - 1)

    def seal(self) -> None:
        """Trim the file to its entries and accept no more; what a rolled or closed index is."""
        file = self.opened()
        self._unmap()
        self.capacity = 0
        with storage_errors("trim", self.path):
            file.truncate(self.entries * INDEX_ENTRY_BYTES)

    def problem(self, log_size: int) -> str | None:
        """Why this index cannot belong to a message file of `log_size` bytes; None if it can."""
        with storage_errors("measure", self.path):
            size = self._disk.size(self.path)
        if size % INDEX_ENTRY_BYTES:
            return f"size {size} is not a multiple of {INDEX_ENTRY_BYTES}"
        if self.entries and self.last.offset <= self.base_offset:
            return f"the last offset {self.last.offset} is not above {self.base_offset}"
        if self.last.position and self.last.position >= log_size:
            return f"the last position {self.last.position} is beyond the {log_size} bytes there"
        return None

    def opened(self) -> File:
        """The file, open for writing; to sync it, say."""
        return self._file or open_file(self._disk, self.path, OpenMode.UPDATE)

    def close(self) -> None:
        """Trim the file and let go of it."""
        if self._map is not None and self.capacity:
            self.seal()
        self._unmap()

    def forget(self) -> None:
        """Let go of the file as it is: it was deleted."""
        self._unmap()
        self.capacity = 0

    def _entry(self, slot: int) -> IndexEntry:
        if slot < 0:
            return IndexEntry(self.base_offset, 0)
        value = self._entries_view()[slot]
        return IndexEntry(self.base_offset + (value >> 32), value & LOW_32)

    def _entries_view(self) -> MutableSequence[int]:
        """The mapped entries. A sealed index is mapped by its first lookup, so that a log of many
        segments holds neither mappings nor descriptors for those that nobody reads."""
        if self._view is None:
            self._map_file(self.opened(), self.entries)
        assert self._view is not None
        return self._view

    def _map_file(self, file: File, entries: int) -> None:
        with storage_errors("map", self.path):
            self._map = file.map(entries * INDEX_ENTRY_BYTES)
        array = BIG_ENDIAN_ENTRY * entries
        self._view = cast("MutableSequence[int]", array.from_buffer(self._map))

    def _unmap(self) -> None:
        self._view = None
        if self._map is not None:
            self._map.release()
        self._map = None
        self._file = None

    def _allocate_page(self) -> None:
        """Give the next page real blocks: a store into a hole of a full disk would kill the
        process by a signal, this raises instead."""
        assert self._file is not None
        size = min(PAGE_BYTES, self.capacity * INDEX_ENTRY_BYTES - self._allocated)
        with storage_errors("extend", self.path):
            self._file.allocate(self._allocated, size)
        self._allocated += size


def _used_entries(file: File, entries: int) -> int:
    """How many of `entries` come before the zeros that a crash left at the end. Read, not mapped: a
    load from a hole of a map takes a page, and on a full tmpfs it kills the process."""
    if not entries or _read_entry(file, entries - 1) != NO_ENTRY:
        return entries
    return bisect_left(range(entries), True, key=lambda slot: _read_entry(file, slot) == NO_ENTRY)


def _read_entry(file: File, slot: int) -> bytes:
    return file.pread(INDEX_ENTRY_BYTES, slot * INDEX_ENTRY_BYTES)
