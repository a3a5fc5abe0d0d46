"""Looking for a time in the message file of a segment.

Source: org.apache.kafka.common.record.FileRecords.searchForTimestamp 0.10.2.2.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from kafka08 import kernel
from kafka08.errors import CorruptLog
from kafka08.kernel.types import EMPTY_ENTRY_BYTES, ENTRY_HEADER, ENTRY_HEADER_BYTES
from kafka08.log.files import storage_errors
from kafka08.log.time_index import TimestampOffset
from kafka08.protocol import message_set
from kafka08.runtime.disk import File

CHUNK_BYTES: Final = 64 << 10


def find_timestamp(
    file: File, path: Path, position: int, size: int, target_ms: int
) -> TimestampOffset | None:
    """The first message with a timestamp of `target_ms` or later in the first `size` bytes of a
    message file, from the entry at `position` on; None if there is none.

    Wrappers are unpacked only if their own timestamp says that one is inside. CorruptLog for what
    is no message, StorageError.
    """
    while position + EMPTY_ENTRY_BYTES <= size:
        try:
            found, step, _ = kernel.scan_timestamp(
                _read(file, path, position, min(CHUNK_BYTES, size - position)), target_ms
            )
            if not found and not step:
                raise ValueError("an entry that is not whole")
            position += step
            if found:
                header = _read(file, path, position, ENTRY_HEADER_BYTES)
                entry_bytes = ENTRY_HEADER_BYTES + ENTRY_HEADER.unpack(header)[1]
                entry = _read(file, path, position, min(entry_bytes, size - position))
                message = kernel.find_timestamp(entry, target_ms, message_set.unpack)
                if message is not None:
                    offset, timestamp_ms = message
                    return TimestampOffset(timestamp_ms, offset)
                position += entry_bytes
        except ValueError as error:
            raise CorruptLog(f"{path} at byte {position}: {error}") from error
    return None


def _read(file: File, path: Path, position: int, size: int) -> bytes:
    with storage_errors("read", path):
        return file.pread(size, position)
