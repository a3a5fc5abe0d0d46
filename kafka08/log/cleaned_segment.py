"""CleanedSegment: the output file of a cleaning, until it replaces the original segments.

    0042.log.cleaned   being written; after a crash the next load deletes it
    0042.log.swap      complete and on disk; after a crash the next load finishes the swap
    0042.log           in place of its originals

and the same for .index, .timeindex and .txnindex. Source: kafka.log.Cleaner.cleanSegments and
Log.replaceSegments 0.8.2.2 and 0.10.2.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kafka08 import kernel
from kafka08.config import INT_MAX
from kafka08.errors import CorruptLog
from kafka08.kernel.types import NO_TIMESTAMP, Buffer
from kafka08.log import crashpoints
from kafka08.log.aborted_transactions import AbortedTransaction
from kafka08.log.files import open_file, remove, rename, storage_errors, sync_directory
from kafka08.log.names import (
    CLEANED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SWAP_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    file_of,
)
from kafka08.log.offset_index import INDEX_ENTRY, INDEX_ENTRY_BYTES
from kafka08.log.recovery import entry_bytes, first_inner_offset
from kafka08.log.time_index import TIME_ENTRY, TIME_ENTRY_BYTES, TimestampOffset
from kafka08.runtime.disk import Disk, File, OpenMode
from kafka08.runtime.system_disk import SYSTEM_DISK


class CleanedSegment:
    """Created empty; `append` and `finish` may run in a native thread, the rest in the log's own.

    size             bytes of messages so far
    has_timestamps   whether there is a time index
    """

    def __init__(
        self,
        directory: Path,
        base_offset: int,
        *,
        index_interval_bytes: int,
        index_bytes: int,
        has_timestamps: bool = False,
        crash: crashpoints.CrashPoint = crashpoints.never,
        disk: Disk = SYSTEM_DISK,
    ) -> None:
        self.base_offset = base_offset
        self.size = 0
        self._directory = directory
        self._log_path = file_of(directory, base_offset, LOG_SUFFIX)
        self._index_path = file_of(directory, base_offset, INDEX_SUFFIX)
        self._time_path = file_of(directory, base_offset, TIME_INDEX_SUFFIX)
        self._index_interval_bytes = index_interval_bytes
        self._max_index_bytes = index_bytes - index_bytes % INDEX_ENTRY_BYTES
        # Room for the last entry is reserved.
        self._max_time_bytes = index_bytes - index_bytes % TIME_ENTRY_BYTES - TIME_ENTRY_BYTES
        self._crash = crash
        self._disk = disk
        self._since_index = 0
        self._index = bytearray()
        self._times = bytearray()
        self._largest = self._last_time = TimestampOffset(NO_TIMESTAMP, -1)
        self._log = open_file(disk, _with(self._log_path, CLEANED_SUFFIX), OpenMode.REPLACE)
        self._index_out = open_file(disk, _with(self._index_path, CLEANED_SUFFIX), OpenMode.REPLACE)
        self._times_out: File | None = None
        # The index comes last: a load rebuilds both indexes if it is missing.
        self._paths = [self._log_path, self._index_path]
        """In the order in which they are renamed."""
        if has_timestamps:
            path = _with(self._time_path, CLEANED_SUFFIX)
            self._times_out = open_file(disk, path, OpenMode.REPLACE)
            self._paths.insert(1, self._time_path)

    def append(self, survivors: Buffer) -> None:
        """Write the next entries. StorageError; CorruptLog if the segment would exceed the 32 bits
        of its index (only decompressed messages can)."""
        if self.size + len(survivors) > INT_MAX:
            raise CorruptLog(f"{self._log_path} would have more than {INT_MAX} bytes unpacked")
        with storage_errors("write", self._log_path):
            self._log.pwrite(survivors, self.size)
        self._extend_index(memoryview(survivors))
        self.size += len(survivors)

    def finish(self, modified_ns: int) -> None:
        """Sync all files. They keep the modification time of the originals, which retention of
        tombstones and lookups by time use."""
        with storage_errors("write", self._index_path):
            self._index_out.pwrite(self._index, 0)
            self._index_out.sync()
        if self._times_out is not None:
            self._add_time(self._largest)
            with storage_errors("write", self._time_path):
                self._times_out.pwrite(self._times, 0)
                self._times_out.sync()
        with storage_errors("sync", self._log_path):
            self._log.set_modified_ns(modified_ns)
            self._log.sync()
        sync_directory(self._disk, self._directory)

    def keep_aborted(self, transactions: Sequence[AbortedTransaction]) -> None:
        """Write the aborted transactions that this segment has markers of, and that the log may
        have batches of."""
        if not transactions:
            return
        aborted_path = file_of(self._directory, self.base_offset, TRANSACTION_INDEX_SUFFIX)
        path = _with(aborted_path, CLEANED_SUFFIX)
        with storage_errors("write", path):
            file = self._disk.open(path, OpenMode.REPLACE)
            file.pwrite(b"".join(one.encode() for one in transactions), 0)
            file.sync()
        self._paths.insert(0, aborted_path)  # first: nothing else can write it again

    def begin_swap(self) -> None:
        """Make this segment valid in place of the ones that it replaces, from now on."""
        self._crash(crashpoints.CLEANED_WRITTEN)
        self._rename(CLEANED_SUFFIX, SWAP_SUFFIX)
        # Before the originals go: a load deletes *.cleaned.
        sync_directory(self._disk, self._directory)
        self._crash(crashpoints.SWAP_BEGUN)

    def finish_swap(self) -> None:
        """Take the names of the first replaced segment, whose files are gone."""
        self._crash(crashpoints.SWAP_REPLACED)
        self._rename(SWAP_SUFFIX, "")

    def discard(self) -> None:
        """Delete the output. Does nothing after `begin_swap`."""
        for path in self._paths:
            remove(self._disk, _with(path, CLEANED_SUFFIX))

    def _rename(self, old: str, new: str) -> None:
        for path in self._paths:
            rename(self._disk, _with(path, old), _with(path, new))
            if path == self._log_path:
                self._crash(crashpoints.SWAP_LOG_RENAMED)

    def _extend_index(self, survivors: memoryview) -> None:
        position = 0
        while position < len(survivors):
            rest = survivors[position:]
            found = kernel.recover(
                rest, self._index_interval_bytes, self._since_index, *self._largest
            )
            for (at, offset, codec), time in zip(
                found.index_points, found.time_points, strict=True
            ):
                first = first_inner_offset(rest[at:]) if codec else offset
                relative = -1 if first is None else first - self.base_offset
                # No CRC covers an offset: a damaged one may be any number.
                if len(self._index) < self._max_index_bytes and 0 < relative <= INT_MAX:
                    self._index += INDEX_ENTRY.pack(relative, self.size + position + at)
                    if len(self._times) < self._max_time_bytes:
                        self._add_time(TimestampOffset(*time))
            self._largest = TimestampOffset(found.max_timestamp_ms, found.max_timestamp_offset)
            self._since_index = found.since_last_index
            position += found.valid_bytes
            if found.error is not None:
                # 0.8: a wrong CRC is kept, so that the reader of the message sees it.
                skipped = entry_bytes(survivors[position:]) or len(survivors)
                position += skipped
                self._since_index += skipped

    def _add_time(self, time: TimestampOffset) -> None:
        relative = time.offset - self.base_offset
        if time.timestamp_ms > self._last_time.timestamp_ms and 0 <= relative <= INT_MAX:
            self._times += TIME_ENTRY.pack(time.timestamp_ms, relative)
            self._last_time = time


def _with(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)
