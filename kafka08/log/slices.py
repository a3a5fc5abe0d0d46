"""Results of a log: positions, append results, and slices of bytes to send."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from kafka08.kernel.types import ENTRY_HEADER, ENTRY_HEADER_BYTES, NO_TIMESTAMP
from kafka08.log.files import storage_error, storage_errors
from kafka08.runtime.disk import File


class LogOffset(NamedTuple):
    """An offset and its position: the base offset of its segment, and the byte in that segment.

    For two of them in the same segment the bytes in between are known; a delayed fetch needs that.
    Source: kafka.server.LogOffsetMetadata 0.8.2.2.
    """

    offset: int
    segment_base_offset: int
    position: int


@dataclass(slots=True)
class AppendInfo:
    """The result of an append. A set without a whole message appends nothing: count 0, size 0.

    first_offset   offset given to the first message; -1 if there was no entry at all
    last_offset    offset of the last one; last_offset + 1 is the new log end
    count          messages appended; for a follower, entries (a wrapper counts as one)
    size           bytes written
    log_append_time_ms    the broker's timestamp (LogAppendTime); -1 if there is none
    unpacked_bytes        of its messages, if the broker unpacked or compressed them, else 0
    """

    first_offset: int
    last_offset: int
    count: int
    size: int
    log_append_time_ms: int = NO_TIMESTAMP
    unpacked_bytes: int = 0


class LogSlice:
    """Bytes [position, position + size) of a segment's file, ready for sendfile.

    They start with the first entry at or above `offset` and may end inside an entry, as a Fetch
    response may. The file stays open as long as the slice lives, even if the segment is deleted;
    after a truncation the bytes may end early. `size` 0 means that there is nothing to read.
    """

    __slots__ = ("file", "offset", "position", "segment_base_offset", "size")

    def __init__(
        self, offset: int, segment_base_offset: int, file: File, position: int, size: int
    ) -> None:
        self.offset = offset
        self.segment_base_offset = segment_base_offset
        self.file = file
        self.position = position
        self.size = size

    @property
    def log_offset(self) -> LogOffset:
        """The offset and position of its start."""
        return LogOffset(self.offset, self.segment_base_offset, self.position)

    def bytes(self) -> bytes:
        """The bytes themselves (a copy), for code that reads messages."""
        with storage_errors("read", "a segment"):
            return self.file.pread(self.size, self.position)

    @property
    def has_whole_entry(self) -> bool:
        """Whether its first entry is complete; reads the header of that entry."""
        if self.size < ENTRY_HEADER_BYTES:
            return False
        try:  # not `storage_errors`, which takes longer than the read: most fetches come here
            head = self.file.pread(ENTRY_HEADER_BYTES, self.position)
        except OSError as error:
            raise storage_error("read", "a segment", error) from error
        if len(head) < ENTRY_HEADER_BYTES:
            return False
        _, message_bytes = ENTRY_HEADER.unpack(head)
        return ENTRY_HEADER_BYTES + int(message_bytes) <= self.size

    def __repr__(self) -> str:
        return (
            f"LogSlice(offset={self.offset}, segment_base_offset={self.segment_base_offset}, "
            f"position={self.position}, size={self.size})"
        )
