"""The time index of one segment, from 0.10.1 on: the largest timestamp up to an offset.

    timestamp         i64   the largest of the segment so far, in ms
    relative offset   u32   offset of its message (or wrapper), minus the base offset

Entries are big endian, 12 bytes. Timestamps ascend, offsets do not fall: every message with a
larger timestamp than an entry's comes after the entry's offset. A segment without timestamps has an
empty index. Source: kafka.log.TimeIndex 0.10.2.2.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from typing import Final, NamedTuple

from kafka08.config import INT_MAX
from kafka08.kernel.types import NO_TIMESTAMP
from kafka08.log.files import storage_errors
from kafka08.log.index_file import IndexFile
from kafka08.runtime.disk import File

TIME_ENTRY: Final = struct.Struct(">qI")
"""Timestamp, offset less the base offset."""
TIME_ENTRY_BYTES: Final = TIME_ENTRY.size


class TimestampOffset(NamedTuple):
    """A timestamp in ms, NO_TIMESTAMP for none, and the absolute offset of its message."""

    timestamp_ms: int
    offset: int


class TimeIndex(IndexFile):
    """The index of timestamps, to which `kernel.append_plain` adds entries too."""

    __slots__ = ()

    entry_bytes = TIME_ENTRY_BYTES

    def _begin(self, last: bytes | None) -> None:
        self.last = TimestampOffset(NO_TIMESTAMP, self.base_offset)
        if last is not None:
            timestamp_ms, relative = TIME_ENTRY.unpack(last)
            self.last = TimestampOffset(timestamp_ms, self.base_offset + relative)

    @property
    def last(self) -> TimestampOffset:
        """The last entry; (NO_TIMESTAMP, base_offset) if there is none."""
        return TimestampOffset(self.last_ms, self.last_offset)

    @last.setter
    def last(self, entry: TimestampOffset) -> None:
        self.last_ms, self.last_offset = entry

    @property
    def is_full(self) -> bool:
        """No room except for the entry that closes a segment; always True until `grow`."""
        return self.entries >= self.capacity - 1

    def takes(self, offset: int) -> bool:
        """Whether it fits into an entry."""
        return 0 <= offset - self.base_offset <= INT_MAX

    def append(self, timestamp_ms: int, offset: int) -> None:
        """Add an entry, unless the last one has this timestamp or a later one. `offset` is not
        below that of the last one; there is room."""
        if timestamp_ms <= self.last.timestamp_ms:
            return
        slot = self.entries
        assert slot < self.capacity, f"append to a sealed or full index {self.path}"
        assert self.view is not None, "an index that has grown is mapped"
        assert offset >= self.last.offset, f"{offset} is below {self.last} in {self.path}"
        assert self.takes(offset), f"offset {offset} is too far from the base"
        if (slot + 1) * TIME_ENTRY_BYTES > self.allocated:
            self._allocate_page()
        TIME_ENTRY.pack_into(
            self.view, slot * TIME_ENTRY_BYTES, timestamp_ms, offset - self.base_offset
        )
        self.entries = slot + 1
        self.last = TimestampOffset(timestamp_ms, offset)

    def lookup(self, target_ms: int) -> TimestampOffset:
        """The greatest entry with a timestamp <= target; (NO_TIMESTAMP, base_offset) if none."""
        if target_ms >= self.last.timestamp_ms:
            return self.last
        slots = range(self.entries)
        return self._entry(bisect_right(slots, target_ms, key=self._timestamp_at) - 1)

    def truncate_to(self, offset: int) -> None:
        """Drop the entries at or above `offset`. The index must have been grown."""
        slots = range(self.entries)
        self._keep(bisect_left(slots, offset, key=lambda slot: self._entry(slot).offset))
        self.last = self._entry(self.entries - 1)

    def problem(self) -> str | None:
        """Why this cannot be the index of any segment; None if it can."""
        if (problem := self.size_problem()) is not None:
            return problem
        if not self.entries:
            return None
        with storage_errors("read", self.path):
            first_ms, _ = TIME_ENTRY.unpack(self._read_entry(self.opened(), 0))
        if self.last.timestamp_ms < first_ms:
            return f"the last timestamp {self.last.timestamp_ms} is below the first one"
        if not self.takes(self.last.offset):
            return f"the last offset {self.last.offset} is too far from the base"
        return None

    def _entry(self, slot: int) -> TimestampOffset:
        if slot < 0:
            return TimestampOffset(NO_TIMESTAMP, self.base_offset)
        timestamp_ms, relative = TIME_ENTRY.unpack_from(self._mapped(), slot * TIME_ENTRY_BYTES)
        return TimestampOffset(timestamp_ms, self.base_offset + relative)

    def _timestamp_at(self, slot: int) -> int:
        return self._entry(slot).timestamp_ms

    def _mapped(self) -> memoryview:
        """The entries; those of a sealed index are mapped at the first lookup."""
        return self.view or self._map_file(self.opened(), self.entries)

    def _used_entries(self, file: File) -> int:
        """Like that of any index. The only entry of a sealed one may be zeros: time 0 at the
        base."""
        return 1 if self.entries == 1 else super()._used_entries(file)
