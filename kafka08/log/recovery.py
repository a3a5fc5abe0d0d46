"""Reads a message file after a crash: finds its valid part and the entries of its index.

Works on an open file and plain numbers, in kernel calls of at most one chunk, so it may run in a
native thread while other threads recover other logs. Source: kafka.log.LogSegment.recover 0.8.2.2
and
0.10.2.2.
"""

from __future__ import annotations

import itertools
import struct
from contextlib import suppress
from typing import Final, NamedTuple

from kafka08 import kernel
from kafka08.config import INT_MAX
from kafka08.kernel.types import ENTRY_HEADER, ENTRY_HEADER_BYTES, NO_TIMESTAMP
from kafka08.log.offset_index import IndexEntry
from kafka08.log.time_index import TimestampOffset
from kafka08.protocol import compression, message_set
from kafka08.runtime.disk import File

CHUNK_BYTES: Final = 1 << 20


class Recovered(NamedTuple):
    """The result of a recovery.

    valid_bytes    end position of the last valid entry in the file
    last_offset    its offset; -1 if there is no valid entry
    index_entries  the entries of a new index
    problem        why the bytes after valid_bytes are not an entry; None if there are none
    time_entries   for each entry of the index, that of the time index: the largest timestamp so far
    largest        the largest timestamp and its offset; NO_TIMESTAMP and -1 if there is none
    """

    valid_bytes: int
    last_offset: int
    index_entries: list[IndexEntry]
    problem: str | None
    time_entries: list[TimestampOffset]
    largest: TimestampOffset


def recover_messages(
    file: File,
    size: int,
    *,
    max_entry_bytes: int,
    index_interval_bytes: int,
    start: int = 0,
    lowest_offset: int = 0,
) -> Recovered:
    """Check the first `size` bytes of a message file from the entry at `start` on.

    An entry ends the valid part if it is cut short, fails its CRC, exceeds `max_entry_bytes`, or
    if its offset does not ascend (from `lowest_offset` on): 0.8.2.2 checks offsets only where it
    adds an index entry, and then empties the whole segment. Raises OSError.
    """
    index: list[IndexEntry] = []
    times: list[TimestampOffset] = []
    largest = TimestampOffset(NO_TIMESTAMP, -1)
    position, last_offset, since_last_index = start, -1, 0
    buffer = memoryview(bytearray(max(1, min(CHUNK_BYTES, size - start))))
    while position < size:
        length = file.pread_into(buffer[: size - position], position)
        chunk = buffer[:length]
        found = kernel.recover(
            chunk, max_entry_bytes, index_interval_bytes, since_last_index, *largest
        )
        fall = _first_fall(chunk[: found.valid_bytes], max(last_offset + 1, lowest_offset))
        bad = _extend_index(index, chunk, position, found.index_points, fall)
        times += itertools.starmap(TimestampOffset, found.time_points[: len(index) - len(times)])
        if bad is not None:
            before = kernel.recover(chunk[:bad], max_entry_bytes, index_interval_bytes, 0, *largest)
            last = before.last_offset if before.count else last_offset
            largest = TimestampOffset(before.max_timestamp_ms, before.max_timestamp_offset)
            problem = "offsets do not ascend"
            return Recovered(position + bad, last, index, problem, times, largest)
        largest = TimestampOffset(found.max_timestamp_ms, found.max_timestamp_offset)
        position += found.valid_bytes
        since_last_index = found.since_last_index
        last_offset = found.last_offset if found.count else last_offset
        if found.error is not None:
            problem = str(found.error.args[-1])
            return Recovered(position, last_offset, index, problem, times, largest)
        if not found.count:
            needed = entry_bytes(chunk)
            if needed is None or needed > max_entry_bytes or position + needed > size:
                problem = "the last entry is not whole"
                return Recovered(position, last_offset, index, problem, times, largest)
            buffer = memoryview(bytearray(needed))
    return Recovered(position, last_offset, index, None, times, largest)


def _first_fall(entries: memoryview, lowest_offset: int) -> int | None:
    """Position of the first entry whose offset is below `lowest_offset` or not above that of the
    entry before; None if all ascend."""
    with suppress(kernel.UnknownCodec):
        summary = kernel.validate(entries, INT_MAX)
        if not summary.count or (summary.monotonic and summary.first_offset >= lowest_offset):
            return None
    position = 0
    while position < len(entries):
        offset, size = ENTRY_HEADER.unpack_from(entries, position)
        if offset < lowest_offset:
            return position
        lowest_offset = offset + 1
        position += ENTRY_HEADER_BYTES + size
    return None


def entry_bytes(chunk: memoryview) -> int | None:
    """The size of the entry at the start of the chunk; None if its header is incomplete."""
    if len(chunk) < ENTRY_HEADER_BYTES:
        return None
    return ENTRY_HEADER_BYTES + int(ENTRY_HEADER.unpack_from(chunk)[1])


def _extend_index(
    index: list[IndexEntry],
    chunk: memoryview,
    start: int,
    points: list[tuple[int, int, int]],
    fall: int | None,
) -> int | None:
    """Add the index entries of a chunk that starts at `start` in the file, up to `fall`.

    A wrapper is indexed by its first inner offset. Returns the position in the chunk of the first
    one that does not ascend or cannot be decompressed; else `fall`.
    """
    for at, offset, codec in points:
        if fall is not None and at >= fall:
            break
        if codec:
            inner = first_inner_offset(chunk[at:])
            if inner is None:
                return at
            offset = inner
        if index and offset <= index[-1].offset:
            return at
        index.append(IndexEntry(offset, start + at))
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
