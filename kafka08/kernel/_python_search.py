"""Finds entries by offset and by timestamp, in sets and in segments (twin)."""

from __future__ import annotations

from typing import Final

from kafka08.format import RecordFormat, batch_at, format_of, impossible_size, magic_of
from kafka08.kernel._python_append import SegmentTail
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
    """(position, base offset) of the first entry with a last offset >= `target_offset` and a
    complete head in `data`; None if there is none.

    `data` starts at an entry. Reads only heads: entries may extend beyond the end. CorruptMessage
    on an impossible size. Source: FileMessageSet.searchFor, FileRecords.searchForOffsetWithSize
    0.11.0.3.
    """
    position, offset = _search(memoryview(data), target_offset)
    return None if offset is None else (position, offset)


def find_position(tail: SegmentTail, position: int, target_offset: int) -> int:
    """The position of the first entry of a segment with a last offset >= `target_offset`; -1 if it
    has none. `position`, at which the search begins, is that of an entry.

    CorruptMessage on an impossible size, and if the file is shorter than the segment; OSError.
    """
    while position < tail.size - ENTRY_HEADER_BYTES:
        data = tail.read(min(SEARCH_BYTES, tail.size - position), position)
        if len(data) < ENTRY_HEADER_BYTES:
            raise CorruptMessage(position, -1, f"the file ends before {tail.size}")
        try:
            step, offset = _search(memoryview(data), target_offset)
        except CorruptMessage as error:
            at = position + error.position
            raise CorruptMessage(at, error.offset, error.reason) from None
        position += step
        if offset is not None:
            return position
        if not step:
            return -1  # the last entry is not whole
    return -1


def _search(data: memoryview, target_offset: int) -> tuple[int, int | None]:
    """Position and offset of the entry; if there is none, the position of the next header and
    None."""
    position = 0
    while len(data) - position >= ENTRY_HEADER_BYTES:
        offset, size = ENTRY_HEADER.unpack_from(data, position)
        if offset >= target_offset:
            return position, offset
        if size < MIN_MESSAGE_BYTES:
            raise impossible_size(data, position)
        if ends_later(data, position):
            batch = batch_at(data, position)
            if batch is None:
                break  # its last offset lies behind the data
            if batch.last_offset >= target_offset:
                return position, offset
        position += ENTRY_HEADER_BYTES + size
    return position, None


def ends_later(data: memoryview, position: int) -> bool:
    """Whether the last offset of an entry may be above the one at its start."""
    magic = magic_of(data, position)
    return magic is None or isinstance(format_of(magic), RecordFormat)


def scan_timestamp(data: Buffer, target_ms: int) -> ScanResult:
    """The first entry of `data` whose own timestamp, the largest inside, is >= `target_ms`. Needs
    the head of an entry: if none is found, `position` may be that of an entry that lacks a part.
    Errors as `find_offset`. Source: FileRecords.searchForTimestamp 0.10.2.2.
    """
    view = memoryview(data)
    position = 0
    while len(view) - position >= TIMESTAMP_POSITION + TIMESTAMP_BYTES:
        batch = batch_at(view, position)
        if batch is None:
            break
        if batch.max_timestamp_ms >= target_ms:
            return ScanResult(True, position, batch.last_offset)
        position = batch.end
    return ScanResult(False, position, -1)
