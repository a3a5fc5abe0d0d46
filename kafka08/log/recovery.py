"""Reads a message file after a crash: finds its valid part and the entries of its index.

Works on an open file and plain numbers, in kernel calls of at most one chunk, so it may run in a
native thread while other threads recover other logs. Source: kafka.log.LogSegment.recover 0.8.2.2
and 0.10.2.2.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, NamedTuple

from kafka08 import kernel
from kafka08.config import INT_MAX
from kafka08.format import HEAD_BYTES_MAX, batch_at, batches, entry_size, format_of
from kafka08.kernel.types import (
    ENTRY_HEADER,
    ENTRY_HEADER_BYTES,
    NO_TIMESTAMP,
    RecoverResult,
)
from kafka08.log.entry_offsets import OFFSET, OFFSET_BYTES, OffsetFixes
from kafka08.log.offset_index import IndexEntry
from kafka08.log.time_index import TimestampOffset
from kafka08.protocol import compression, message_set
from kafka08.runtime.disk import File

CHUNK_BYTES: Final = 1 << 20
FALL: Final = "offsets do not ascend"


class Recovered(NamedTuple):
    """The result of a recovery.

    valid_bytes    end position of the last valid entry in the file
    last_offset    its offset; -1 if there is no valid entry
    index_entries  the entries of a new index
    problem        why the bytes after valid_bytes are not an entry; None if there are none
    time_entries   for each entry of the index, that of the time index: the largest timestamp so far
    largest        the largest timestamp and its offset; NO_TIMESTAMP and -1 if there is none
    fixes          position of a valid entry whose offset on disk is wrong → the right one
    """

    valid_bytes: int
    last_offset: int
    index_entries: list[IndexEntry]
    problem: str | None
    time_entries: list[TimestampOffset]
    largest: TimestampOffset
    fixes: Mapping[int, int]


def recover_messages(
    file: File,
    size: int,
    *,
    index_interval_bytes: int,
    start: int = 0,
    lowest_offset: int = 0,
    end_offset: int | None = None,
) -> Recovered:
    """Check the first `size` bytes of a message file from the entry at `start` on.

    An entry ends the valid part if it is cut short, fails its CRC, or has an offset that does not
    ascend (from `lowest_offset` on, below `end_offset` if that is known): 0.8.2.2 checks offsets
    only where it adds an index entry, and then empties the whole segment. But no CRC covers an
    offset. So a sound entry between two others with a wrong one counts as valid, with the right one
    (OffsetFixes). Raises OSError.

    No limit of today's configuration applies: it may have been higher when a message was stored.
    """
    found = _recover(file, size, index_interval_bytes, start, lowest_offset, {})
    falls = found.problem == FALL
    # A log rolls before its offsets span more: one beyond that is damaged.
    if end_offset is None and found.valid_bytes > start:
        end_offset = OFFSET.unpack(file.pread(OFFSET_BYTES, start))[0] + INT_MAX + 1
    # One wrong offset, or old bytes that a crash left: OffsetFixes tells which.
    if falls or (end_offset is not None and found.last_offset >= end_offset):
        end = size if falls else found.valid_bytes
        fixes = OffsetFixes(file, end, lowest_offset, end_offset).find(start, CHUNK_BYTES)
        if fixes:
            found = _recover(file, size, index_interval_bytes, start, lowest_offset, fixes)
            kept = {at: offset for at, offset in fixes.items() if at < found.valid_bytes}
            found = found._replace(fixes=kept)
    return found


def _recover(
    file: File,
    size: int,
    index_interval_bytes: int,
    start: int,
    lowest_offset: int,
    fixes: Mapping[int, int],
) -> Recovered:
    index: list[IndexEntry] = []
    times: list[TimestampOffset] = []
    largest = TimestampOffset(NO_TIMESTAMP, -1)
    position, last_offset, since_last_index = start, -1, 0
    buffer = memoryview(bytearray(max(1, min(CHUNK_BYTES, size - start))))

    def result(valid_bytes: int, problem: str | None) -> Recovered:
        return Recovered(valid_bytes, last_offset, index, problem, times, largest, {})

    while position < size:
        length = file.pread_into(buffer[: size - position], position)
        chunk = buffer[:length]
        _put(chunk, position, fixes)
        found = kernel.recover(chunk, index_interval_bytes, since_last_index, *largest)
        fall = _first_fall(chunk[: found.valid_bytes], max(last_offset + 1, lowest_offset))
        bad = _extend_index(index, times, chunk, position, found, fall)
        if bad is not None:
            before = kernel.recover(chunk[:bad], index_interval_bytes, 0, *largest)
            last_offset = before.last_offset if before.count else last_offset
            largest = TimestampOffset(before.max_timestamp_ms, before.max_timestamp_offset)
            return result(position + bad, FALL)
        largest = TimestampOffset(found.max_timestamp_ms, found.max_timestamp_offset)
        position += found.valid_bytes
        since_last_index = found.since_last_index
        last_offset = found.last_offset if found.count else last_offset
        if found.error is not None:
            return result(position, str(found.error.args[-1]))
        if not found.count:
            # Larger than the buffer, or cut off.
            needed = entry_bytes(chunk)
            if needed is None or position + needed > size:
                return result(position, "the last entry is not whole")
            if not crc_is_right(file, position, needed):
                return result(position, "the crc of a large entry is wrong")
            buffer = memoryview(bytearray(needed))
    return result(position, None)


def _put(chunk: memoryview, start: int, fixes: Mapping[int, int]) -> None:
    """Write the right offsets into a chunk that begins at `start` in the file."""
    for at, offset in fixes.items():
        if start <= at <= start + len(chunk) - OFFSET_BYTES:
            OFFSET.pack_into(chunk, at - start, offset)


def crc_is_right(file: File, position: int, size: int) -> bool:
    """Whether the entry of `size` bytes at `position` has its CRC. It is read in pieces: a size
    field may be damaged, and memory for a large entry is allocated only if its CRC is right.
    OSError."""
    try:
        batch = batch_at(file.pread(HEAD_BYTES_MAX, position))
    except kernel.CorruptMessage:
        return False
    if batch is None:
        return False
    form = format_of(batch.magic)
    checksum = getattr(kernel, form.crc)
    at, end, crc = position + form.crc_start, position + size, 0
    while at < end:
        piece = file.pread(min(CHUNK_BYTES, end - at), at)
        if not piece:
            return False
        crc = checksum(piece, crc)
        at += len(piece)
    return bool(batch.crc == crc)


def _first_fall(entries: memoryview, lowest_offset: int) -> int | None:
    """Position of the first entry whose offset is below `lowest_offset` or not above that of the
    entry before; None if all ascend."""
    # With an unknown codec, which recovery keeps, the walk below compares the offsets.
    with suppress(kernel.UnknownCodec):
        summary = kernel.validate(entries, INT_MAX)
        if not summary.count or (summary.monotonic and summary.first_offset >= lowest_offset):
            return None
    for batch in batches(entries):
        if batch.base_offset < lowest_offset:
            return batch.position
        lowest_offset = batch.last_offset + 1
    return None


def entry_bytes(chunk: memoryview) -> int | None:
    """The size of the entry at the start of the chunk; None if its header is incomplete."""
    if len(chunk) < ENTRY_HEADER_BYTES:
        return None
    return entry_size(chunk, 0)


def _extend_index(
    index: list[IndexEntry],
    times: list[TimestampOffset],
    chunk: memoryview,
    start: int,
    found: RecoverResult,
    fall: int | None,
) -> int | None:
    """Add the entries of both indexes for a chunk that starts at `start` in the file, up to `fall`.

    A wrapper is indexed by its first inner offset; one that cannot be decompressed, or contains too
    much, by nothing: its CRC is right, so it is what was stored. Returns the position in the chunk
    of the first one that does not ascend; else `fall`.
    """
    for (at, offset, codec), time in zip(found.index_points, found.time_points, strict=True):
        if fall is not None and at >= fall:
            break
        first_offset = first_inner_offset(chunk[at:]) if codec else offset
        if first_offset is None:
            continue
        if index and first_offset <= index[-1].offset:
            return at
        index.append(IndexEntry(first_offset, start + at))
        times.append(TimestampOffset(*time))
    return fall


def first_inner_offset(wrapper: memoryview) -> int | None:
    """Offset of the first message inside the wrapper at the start of `wrapper`; None if it cannot
    be decompressed that far. For magic 0 this needs little memory, whatever the wrapper contains;
    the offsets in one of magic 1 are relative to its last message. A wrong CRC of a message inside
    does not matter: as in Kafka, recovery checks that of the wrapper."""
    try:
        entry = next(kernel.entries(wrapper))
        if entry.magic:
            inner = message_set.unpack(entry.codec, entry.value or b"")
            summary = kernel.validate(inner, INT_MAX, verify_crc=False)
            if not summary.count:
                return None
            return summary.first_offset + max(0, entry.offset - summary.last_offset)
        start = compression.decompress_start(entry.codec, entry.value or b"", ENTRY_HEADER_BYTES)
        return int(ENTRY_HEADER.unpack_from(start)[0])
    except (ValueError, struct.error, StopIteration):
        return None
