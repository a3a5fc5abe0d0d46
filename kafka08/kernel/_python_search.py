"""Finds entries by offset and by timestamp, in sets and in segments (twin)."""

from __future__ import annotations

from typing import Final

from kafka08.kernel._python_append import SegmentTail
from kafka08.kernel._python_sets import timestamp_of
from kafka08.kernel.types import (
    ENTRY_HEADER,
    ENTRY_HEADER_BYTES,
    MIN_MESSAGE_BYTES,
    TIMESTAMP_BYTES,
    TIMESTAMP_POSITION,
    Buffer,
    CorruptMessage,
    ScanResult,
)

SEARCH_BYTES: Final = 16 << 10
"""Bytes of a segment that are read at once: they stay in the processor's first cache."""


def find_offset(data: Buffer, target_offset: int) -> tuple[int, int] | None:
    """(position, offset) of the first entry with an offset >= `target_offset` and a complete header
    in `data`; None if there is none.

    `data` starts at an entry. Reads only headers: entries may extend beyond the end. CorruptMessage
    on a size below 14. Source: FileMessageSet.searchFor.
    """
    position, offset = _search(memoryview(data), target_offset)
    return None if offset is None else (position, offset)


def find_position(tail: SegmentTail, position: int, target_offset: int) -> int:
    """The position of the first entry of a segment with an offset >= `target_offset`; -1 if it has
    none. `position`, at which the search begins, is that of an entry.

    CorruptMessage on a size below 14, and if the file is shorter than the segment; OSError.
    """
    while position < tail.size - ENTRY_HEADER_BYTES:
        data = tail.read(min(SEARCH_BYTES, tail.size - position), position)
        if len(data) < ENTRY_HEADER_BYTES:
            raise CorruptMessage(position, -1, f"the file ends before {tail.size}")
        step, offset = _search(memoryview(data), target_offset, position)
        position += step
        if offset is not None:
            return position
    return -1


def _search(data: memoryview, target_offset: int, start: int = 0) -> tuple[int, int | None]:
    """Position and offset of the entry; if there is none, the position of the next header and None.
    `start` is the position of the data for errors."""
    position = 0
    while len(data) - position >= ENTRY_HEADER_BYTES:
        offset, size = ENTRY_HEADER.unpack_from(data, position)
        if offset >= target_offset:
            return position, offset
        if size < MIN_MESSAGE_BYTES:
            raise CorruptMessage(start + position, offset, f"message with corrupt size {size}")
        position += ENTRY_HEADER_BYTES + size
    return position, None


def scan_timestamp(data: Buffer, target_ms: int) -> ScanResult:
    """The first entry of `data` with a timestamp >= `target_ms`. Reads the timestamps of wrappers,
    not those inside. Needs the first 26 bytes of an entry: if none is found, `position` may be that
    of an entry with fewer. Errors as `find_offset`. Source: FileRecords.searchForTimestamp
    0.10.2.2.
    """
    view = memoryview(data)
    position = 0
    while len(view) - position >= TIMESTAMP_POSITION + TIMESTAMP_BYTES:
        offset, size = ENTRY_HEADER.unpack_from(view, position)
        if size < MIN_MESSAGE_BYTES:
            raise CorruptMessage(position, offset, f"message with corrupt size {size}")
        if timestamp_of(view, position) >= target_ms:
            return ScanResult(True, position, offset)
        position += ENTRY_HEADER_BYTES + size
    return ScanResult(False, position, -1)
