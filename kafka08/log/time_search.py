"""Searches a segment's message file for a timestamp.

Source: org.apache.kafka.common.record.FileRecords.searchForTimestamp 0.10.2.2.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from kafka08 import kernel
from kafka08.config import LONG_MAX
from kafka08.errors import CorruptLog
from kafka08.kernel.types import (
    EMPTY_ENTRY_BYTES,
    ENTRY_HEADER,
    ENTRY_HEADER_BYTES,
    Unpacker,
)
from kafka08.log.files import storage_errors
from kafka08.log.time_index import TimestampOffset
from kafka08.protocol import compression
from kafka08.protocol.message_set import MAX_STORED_UNPACKED_BYTES
from kafka08.runtime.disk import File

CHUNK_BYTES: Final = 64 << 10


class SearchTooLong(Exception):
    """A search has reached a limit, and found nothing yet: it must run where it may block."""


class TimeSearch(NamedTuple):
    """A search that the time index of a segment could not end: from the entry at `position` on, in
    the first `size` bytes of its message file.

    base_offset   of the segment
    from_offset   messages below are not found: they were deleted
    """

    base_offset: int
    file: File
    path: Path
    position: int
    size: int
    target_ms: int
    from_offset: int = 0

    def run(
        self,
        max_bytes: int = LONG_MAX,
        max_unpacked_bytes: int = MAX_STORED_UNPACKED_BYTES,
    ) -> TimestampOffset | None:
        """The first message with a timestamp of `target_ms` or later; None if there is none. May
        run in a native thread.

        Wrappers are decompressed only if their own timestamp shows that one is inside.
        SearchTooLong if the search would go through more than `max_bytes` of the file, or unpack
        more than a `max_unpacked_bytes` below the default, from which on it is CorruptLog, as
        invalid messages are. StorageError.
        """
        _, file, path, position, size, target_ms, from_offset = self
        end = min(size, position + max_bytes)
        unpack = Unpacker(compression.decompress, max_unpacked_bytes)
        while (found := find_entry(file, path, position, end, target_ms)) is not None:
            position, _ = found
            header = _read(file, path, position, ENTRY_HEADER_BYTES)
            entry_bytes = ENTRY_HEADER_BYTES + ENTRY_HEADER.unpack(header)[1]
            # It does not fit into `max_bytes`.
            if position + entry_bytes > end < size:
                break
            entry = _read(file, path, position, min(entry_bytes, size - position))
            try:
                message = kernel.find_timestamp(entry, target_ms, unpack, from_offset)
            except ValueError as error:
                is_limited = max_unpacked_bytes < MAX_STORED_UNPACKED_BYTES
                if is_limited and isinstance(error.__cause__, compression.UnpacksToMore):
                    raise SearchTooLong from error
                raise CorruptLog(f"{path} at byte {position}: {error}") from error
            if message is not None:
                offset, timestamp_ms = message
                return TimestampOffset(timestamp_ms, offset)
            position += entry_bytes
        if end < size:
            raise SearchTooLong
        return None


def find_entry(
    file: File, path: Path, position: int, size: int, target_ms: int
) -> tuple[int, int] | None:
    """(position, offset) of the first entry whose own timestamp is `target_ms` or later; None if
    there is none. CorruptLog for invalid messages, StorageError."""
    while position + EMPTY_ENTRY_BYTES <= size:
        chunk = _read(file, path, position, min(CHUNK_BYTES, size - position))
        try:
            found, step, offset = kernel.scan_timestamp(chunk, target_ms)
            if not found and not step:
                raise ValueError("the entry is not whole")
        except ValueError as error:
            raise CorruptLog(f"{path} at byte {position}: {error}") from error
        position += step
        if found:
            return position, offset
    return None


def _read(file: File, path: Path, position: int, size: int) -> bytes:
    with storage_errors("read", path):
        return file.pread(size, position)
