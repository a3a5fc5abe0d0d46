"""CleanedSegment: the file of survivors that a cleaning writes, and its way into the log.

    0042.log.cleaned   being written; a crash leaves it to be deleted by the next load
    0042.log.swap      complete and on disk; from here on the next load finishes the swap
    0042.log           in the place of those it was made of

and the same for .index. Source: kafka.log.Cleaner.cleanSegments and Log.replaceSegments 0.8.2.2.
"""

from __future__ import annotations

from pathlib import Path

from kafka08 import kernel
from kafka08.config import INT_MAX
from kafka08.errors import CorruptLog
from kafka08.kernel.types import Buffer
from kafka08.log import crashpoints
from kafka08.log.files import open_file, remove, rename, storage_errors, sync_directory
from kafka08.log.names import CLEANED_SUFFIX, SWAP_SUFFIX, index_file, log_file
from kafka08.log.offset_index import INDEX_ENTRY, INDEX_ENTRY_BYTES
from kafka08.log.recovery import entry_bytes
from kafka08.runtime.disk import Disk, OpenMode
from kafka08.runtime.system_disk import SYSTEM_DISK


class CleanedSegment:
    """Made empty; `append` and `finish` may run in a native thread, everything else at home.

    size   bytes of messages so far
    """

    def __init__(
        self,
        directory: Path,
        base_offset: int,
        *,
        index_interval_bytes: int,
        index_bytes: int,
        crash: crashpoints.CrashPoint = crashpoints.never,
        disk: Disk = SYSTEM_DISK,
    ) -> None:
        self.base_offset = base_offset
        self.size = 0
        self._directory = directory
        self._log_path = log_file(directory, base_offset)
        self._index_path = index_file(directory, base_offset)
        self._index_interval_bytes = index_interval_bytes
        self._max_index_bytes = index_bytes - index_bytes % INDEX_ENTRY_BYTES
        self._crash = crash
        self._disk = disk
        self._since_index = 0
        self._index = bytearray()
        self._log = open_file(disk, _with(self._log_path, CLEANED_SUFFIX), OpenMode.REPLACE)
        self._index_out = open_file(disk, _with(self._index_path, CLEANED_SUFFIX), OpenMode.REPLACE)

    def append(self, survivors: Buffer) -> None:
        """Write plain entries that follow those before. StorageError; CorruptLog if the segment
        would outgrow the 32 bits of its index (only what was compressed before can)."""
        if self.size + len(survivors) > INT_MAX:
            raise CorruptLog(f"{self._log_path} would have more than {INT_MAX} bytes unpacked")
        with storage_errors("write", self._log_path):
            self._log.pwrite(survivors, self.size)
        self._extend_index(memoryview(survivors))
        self.size += len(survivors)

    def finish(self, modified_ns: int) -> None:
        """Put everything on disk. The messages keep the time at which they were written, which
        retention of tombstones and lookups by time go by."""
        with storage_errors("write", self._index_path):
            self._index_out.pwrite(self._index, 0)
            self._index_out.sync()
        with storage_errors("sync", self._log_path):
            self._log.set_modified_ns(modified_ns)
            self._log.sync()
        sync_directory(self._disk, self._directory)

    def begin_swap(self) -> None:
        """From now on this segment counts, and no longer those that it replaces."""
        self._crash(crashpoints.CLEANED_WRITTEN)
        self._rename(CLEANED_SUFFIX, SWAP_SUFFIX)
        # Before the originals go: a load deletes *.cleaned.
        sync_directory(self._disk, self._directory)
        self._crash(crashpoints.SWAP_BEGUN)

    def finish_swap(self) -> None:
        """Take the names of the first segment that was replaced; it has none any more."""
        self._crash(crashpoints.SWAP_REPLACED)
        self._rename(SWAP_SUFFIX, "")

    def discard(self) -> None:
        """Delete what was written. Does nothing after `begin_swap`."""
        remove(self._disk, _with(self._log_path, CLEANED_SUFFIX))
        remove(self._disk, _with(self._index_path, CLEANED_SUFFIX))

    def _rename(self, old: str, new: str) -> None:
        rename(self._disk, _with(self._log_path, old), _with(self._log_path, new))
        self._crash(crashpoints.SWAP_LOG_RENAMED)
        rename(self._disk, _with(self._index_path, old), _with(self._index_path, new))

    def _extend_index(self, survivors: memoryview) -> None:
        position = 0
        while position < len(survivors):
            found = kernel.recover(
                survivors[position:], INT_MAX, self._index_interval_bytes, self._since_index
            )
            for at, offset, _ in found.index_points:
                relative = offset - self.base_offset
                # No CRC covers an offset: one that a disk has changed may be any number.
                if len(self._index) < self._max_index_bytes and 0 < relative <= INT_MAX:
                    self._index += INDEX_ENTRY.pack(relative, self.size + position + at)
            self._since_index = found.since_last_index
            position += found.valid_bytes
            if found.error is not None:
                # 0.8: a CRC that is wrong stays so; whoever reads the message must see it.
                skipped = entry_bytes(survivors[position:]) or len(survivors)
                position += skipped
                self._since_index += skipped


def _with(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)
