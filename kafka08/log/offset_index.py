"""The sparse index of one segment: offset → position in its message file.

    relative offset   u32   offset of the first message of a set, minus the segment's base offset
    position          u32   byte of the message file at which that set starts

Entries are big endian, 8 bytes, ascending in both columns. No entry has position 0, so an entry of
zeros is an unused one. Source: kafka.log.OffsetIndex 0.8.2.2.
"""

from __future__ import annotations

import ctypes
import struct
from bisect import bisect_left, bisect_right
from collections.abc import MutableSequence
from typing import Final, NamedTuple, cast

from kafka08.config import INT_MAX
from kafka08.log.index_file import IndexFile
from kafka08.runtime.disk import File

INDEX_ENTRY: Final = struct.Struct(">II")
"""Offset less the base offset, position in the message file."""
INDEX_ENTRY_BYTES: Final = INDEX_ENTRY.size
LOW_32: Final = 0xFFFFFFFF
BIG_ENDIAN_ENTRY: Final[type[ctypes.c_uint64]] = ctypes.c_uint64.__ctype_be__
"""An array of these over the mapped file is a sequence of integers `relative offset << 32 |
position`, which C code can bisect without a Python call per step."""


class IndexEntry(NamedTuple):
    """An absolute offset and the position of its set in the message file."""

    offset: int
    position: int


class OffsetIndex(IndexFile):
    """The index of offsets, to which `kernel.append_plain` adds entries too."""

    __slots__ = ("_numbers",)

    entry_bytes = INDEX_ENTRY_BYTES

    def _begin(self, last: bytes | None) -> None:
        self._numbers: MutableSequence[int] | None = None
        relative, position = INDEX_ENTRY.unpack(last or bytes(INDEX_ENTRY_BYTES))
        self.last_offset, self.last_position = self.base_offset + relative, position

    @property
    def last(self) -> IndexEntry:
        """The last entry; (base_offset, 0) if there is none."""
        return IndexEntry(self.last_offset, self.last_position)

    @property
    def is_full(self) -> bool:
        """No room for another entry; always True until `grow`."""
        return self.entries >= self.capacity

    def takes(self, offset: int, position: int) -> bool:
        """Whether they fit into an entry. No CRC covers an offset: a damaged one may be any
        number."""
        return 0 < offset - self.base_offset <= INT_MAX and position <= INT_MAX

    def append(self, offset: int, position: int) -> None:
        """Add an entry. `offset` and `position` are above those of the last entry; not full."""
        slot = self.entries
        assert slot < self.capacity, f"append to a sealed or full index {self.path}"
        assert self._numbers is not None, "an index that has grown is mapped"
        assert offset > self.last_offset, f"{offset} does not follow {self.last} in {self.path}"
        assert position > self.last_position, f"position {position} does not follow {self.last}"
        assert offset - self.base_offset <= INT_MAX, f"offset {offset} is too far from the base"
        if (slot + 1) * INDEX_ENTRY_BYTES > self.allocated:
            self._allocate_page()
        self._numbers[slot] = (offset - self.base_offset) << 32 | position
        self.entries = slot + 1
        self.last_offset, self.last_position = offset, position

    def lookup(self, target: int) -> IndexEntry:
        """The greatest entry with offset <= target; (base_offset, 0) if there is none."""
        if target >= self.last_offset:
            return self.last
        base_offset = self.base_offset
        if self.entries == 0 or target <= base_offset:
            return IndexEntry(base_offset, 0)
        numbers = self._numbers
        if numbers is None:
            numbers = self._mapped()
        # Above every position at that offset, so that its own entry is found.
        key = (target - base_offset) << 32 | LOW_32
        slot = bisect_right(numbers, key, 0, self.entries) - 1
        if slot < 0:
            return IndexEntry(base_offset, 0)
        value = numbers[slot]
        return IndexEntry(base_offset + (value >> 32), value & LOW_32)

    def truncate_to(self, offset: int) -> None:
        """Drop the entries at or above `offset`. The index must have been grown."""
        key = max(offset - self.base_offset, 0) << 32
        keep = bisect_left(self._mapped(), key, 0, self.entries)
        self._keep(keep)
        self.last_offset, self.last_position = self._entry(keep - 1)

    def problem(self, log_size: int) -> str | None:
        """Why this index cannot belong to a message file of `log_size` bytes; None if it can."""
        if (problem := self.size_problem()) is not None:
            return problem
        if self.entries and self.last.offset <= self.base_offset:
            return f"the last offset {self.last.offset} is not above {self.base_offset}"
        if self.last.position and self.last.position >= log_size:
            return f"the last position {self.last.position} is beyond the {log_size} bytes there"
        return None

    def _entry(self, slot: int) -> IndexEntry:
        if slot < 0:
            return IndexEntry(self.base_offset, 0)
        value = self._mapped()[slot]
        return IndexEntry(self.base_offset + (value >> 32), value & LOW_32)

    def _mapped(self) -> MutableSequence[int]:
        """The entries as numbers. A sealed index is mapped at its first lookup, so that a log of
        many segments has no mappings or descriptors for unused ones."""
        if self._numbers is None:
            self._map_file(self.opened(), self.entries)
        assert self._numbers is not None
        return self._numbers

    def _map_file(self, file: File, entries: int) -> memoryview:
        mapped = super()._map_file(file, entries)
        array = BIG_ENDIAN_ENTRY * entries
        self._numbers = cast("MutableSequence[int]", array.from_buffer(mapped))
        return mapped

    def _unmap(self) -> None:
        self._numbers = None
        super()._unmap()
