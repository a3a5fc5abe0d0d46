"""One segment of a log: a file of messages and its sparse index.

Every offset in the segment is >= its base offset, and above every offset of the segments before.
Source: kafka.log.LogSegment and kafka.log.FileMessageSet 0.8.2.2.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from kafka08 import kernel
from kafka08.errors import CorruptLog
from kafka08.kernel.types import ENTRY_HEADER_BYTES, Buffer
from kafka08.log import crashpoints
from kafka08.log.files import (
    file_size,
    modified_ms,
    open_file,
    remove,
    rename,
    storage_error,
    storage_errors,
)
from kafka08.log.names import DELETED_SUFFIX, index_file, log_file
from kafka08.log.offset_index import IndexEntry, OffsetIndex
from kafka08.log.recovery import Recovered, recover_messages
from kafka08.runtime.disk import Disk, OpenMode
from kafka08.runtime.system_disk import SYSTEM_DISK

FIRST_SCAN_BYTES: Final = 8 << 10
"""First read of a scan: what lies between two index entries of small sets fits."""
NEXT_SCAN_BYTES: Final = 64 << 10


class LogSegment:
    """The open segment of `directory` that starts at `base_offset`; its files are made if missing.

    size           bytes of messages; bytes that a failed write left behind are not counted
    created_ms     when this object was made: the age that rolls a segment starts anew with every
                   start of the broker (0.8)
    jitter_ms      taken off the age at which this segment is rolled

    Only the active segment is appended to; `activate` makes it so. Not thread-safe.
    """

    __slots__ = ("_bytes_since_index", "_disk", "_index_interval_bytes", "_pwrite",
                 "_tail_offset", "_tail_position", "base_offset", "created_ms", "directory", "file",
                 "index", "jitter_ms", "log_path", "size")  # fmt: skip

    def __init__(
        self,
        directory: Path,
        base_offset: int,
        *,
        index_interval_bytes: int,
        created_ms: int,
        jitter_ms: int = 0,
        crash: crashpoints.CrashPoint = crashpoints.never,
        disk: Disk = SYSTEM_DISK,
    ) -> None:
        self.directory = directory
        self._disk = disk
        self.base_offset = base_offset
        self.created_ms = created_ms
        self.jitter_ms = jitter_ms
        self.log_path = log_file(directory, base_offset)
        self.file = open_file(disk, self.log_path, OpenMode.CREATE)
        self._pwrite = self.file.pwrite
        self.size = file_size(self.file, self.log_path)
        crash(crashpoints.ROLL_LOG_CREATED)
        self.index = OffsetIndex(index_file(directory, base_offset), base_offset, disk)
        self._index_interval_bytes = index_interval_bytes
        self._bytes_since_index = 0
        self._reset_tail()

    @property
    def last_modified_ms(self) -> int:
        """When messages were last written or cut: the segment's time for retention and lookups."""
        return modified_ms(self._disk, self.log_path)

    def activate(self, index_bytes: int) -> None:
        """Get ready for appends: pre-allocate the index."""
        self.index.grow(index_bytes)

    def append(self, message_set: Buffer, first_offset: int) -> int:
        """Write a set whose first message has `first_offset`; returns its position.

        The caller has checked everything, and the index is not full. A write that fails leaves
        the segment as it was and raises StorageError.
        """
        position = self.size
        size = len(message_set)
        try:
            self._pwrite(message_set, position)
        except OSError as error:
            self._drop_bytes_after(position)
            raise storage_error("append to", self.log_path, error) from error
        if self._bytes_since_index > self._index_interval_bytes:
            self.index.append(first_offset, position)
            self._bytes_since_index = size
        else:
            self._bytes_since_index += size
        self.size = position + size
        self._tail_offset = first_offset
        self._tail_position = position
        return position

    def position_of(self, offset: int, lower_bound: int = 0) -> int | None:
        """Position of the first entry (a wrapper counts as its last message) with an offset at or
        above `offset`, at or after `lower_bound`; None if the segment has none.

        The start of the last set appended and every indexed offset are found without reading.
        """
        if offset >= self._tail_offset:
            found_offset, position = self._tail_offset, self._tail_position
        else:
            found_offset, position = self.index.lookup(offset)
        if found_offset == offset and position < self.size:
            return max(position, lower_bound)
        return self._scan(offset, max(position, lower_bound))

    def read(self, position: int, size: int) -> bytes:
        """Up to `size` bytes from `position`; fewer at the end of the file."""
        with storage_errors("read", self.log_path):
            return self.file.pread(size, position)

    def check(self, max_message_bytes: int, *, from_last_index_entry: bool = False) -> Recovered:
        """Read the messages (or those from the last index entry on) and say how far they are
        sound. Changes nothing."""
        known = self.index.last if from_last_index_entry else IndexEntry(self.base_offset, 0)
        with storage_errors("recover", self.log_path):
            return recover_messages(
                self.file,
                self.size,
                # 0.8: recovery compares the limit with the size without the 12-byte header.
                max_entry_bytes=max_message_bytes + ENTRY_HEADER_BYTES,
                index_interval_bytes=self._index_interval_bytes,
                start=known.position,
                lowest_offset=known.offset,
            )

    def repair(self, found: Recovered, index_bytes: int) -> int:
        """Cut the messages to what a full `check` found sound and write its index; the segment is
        sealed afterwards. On return both are on disk: nobody looks at a segment again that is
        below the recovery point. Returns the bytes cut off."""
        self.index.grow(index_bytes)
        self.index.truncate_to(self.base_offset)
        for offset, position in found.index_entries:
            if self.index.is_full or not self.index.takes(offset, position):
                break
            self.index.append(offset, position)
        self.index.seal()
        cut = self.size - found.valid_bytes
        self._cut(found.valid_bytes)
        with storage_errors("sync", self.log_path):
            self.index.opened().sync()
            if cut:
                self.file.sync()
        return cut

    def truncate_to(
        self,
        offset: int,
        position: int | None,
        index_bytes: int,
        now_ms: int,
        crash: crashpoints.CrashPoint = crashpoints.never,
    ) -> None:
        """Drop the entries at or above `offset` (a wrapper that holds it as well), which is at
        `position_of` it; the segment is active afterwards."""
        self.index.grow(index_bytes)
        if position is None:
            return
        self.index.truncate_to(offset)
        if self.index.last.position >= position:
            # The set that is cut began below `offset`: a wrapper around it, or after a gap.
            self.index.truncate_to(self.index.last.offset)
        crash(crashpoints.TRUNCATE_INDEX_CUT)
        self._cut(position)
        if not self.size:
            self.created_ms = now_ms

    def seal(self) -> None:
        """Trim the index: no appends from now on."""
        self.index.seal()

    def close(self) -> None:
        """Trim the index. The message file closes when the last reader lets go."""
        self.index.close()

    def mark_deleted(self, crash: crashpoints.CrashPoint) -> None:
        """Rename both files to *.deleted. Readers go on undisturbed."""
        deleted = self._with_suffix(self.log_path)
        rename(self._disk, self.log_path, deleted)
        self.log_path = deleted
        crash(crashpoints.DELETE_LOG_RENAMED)
        deleted = self._with_suffix(self.index.path)
        rename(self._disk, self.index.path, deleted)
        self.index.path = deleted
        self.index.forget()

    def remove_files(self) -> None:
        """Delete both files; it is no error if they are gone."""
        remove(self._disk, self.log_path)
        remove(self._disk, self.index.path)

    def _scan(self, offset: int, position: int) -> int | None:
        """Walk entry headers from `position`, an entry boundary."""
        chunk_bytes = FIRST_SCAN_BYTES
        while position + ENTRY_HEADER_BYTES < self.size:
            data = self.read(position, min(chunk_bytes, self.size - position))
            try:
                found, step, _ = kernel.scan(data, offset)
            except kernel.CorruptMessage as error:
                raise CorruptLog(f"{self.log_path} at byte {position}: {error}") from error
            if not found and not step:
                raise CorruptLog(f"{self.log_path} ends at byte {position}, not at {self.size}")
            position += step
            if found:
                return position
            chunk_bytes = NEXT_SCAN_BYTES
        return None

    def _cut(self, size: int) -> None:
        if size != self.size:
            with storage_errors("truncate", self.log_path):
                self.file.truncate(size)
            self.size = size
        self._bytes_since_index = 0
        self._reset_tail()

    def _reset_tail(self) -> None:
        self._tail_offset, self._tail_position = self.index.last

    def _drop_bytes_after(self, position: int) -> None:
        """After a failed write. If this fails too the bytes stay; the size never counts them."""
        try:
            self.file.truncate(position)
        except OSError:
            return

    @staticmethod
    def _with_suffix(path: Path) -> Path:
        return path.with_name(path.name + DELETED_SUFFIX)

    def __str__(self) -> str:
        return f"LogSegment(baseOffset={self.base_offset}, size={self.size})"
