"""One segment of a log: a file of messages and its sparse indexes.

Every offset in the segment is >= its base offset, and above every offset of the segments before.
Source: kafka.log.LogSegment and kafka.log.FileMessageSet 0.8.2.2; for timestamps LogSegment and
org.apache.kafka.common.record.FileRecords 0.10.2.2.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from pathlib import Path

from kafka08 import kernel
from kafka08.config import INT_MAX, LONG_MAX, LONG_MIN
from kafka08.errors import CorruptLog, FileRefused, UnknownError
from kafka08.format import HEAD_BYTES_MAX, Batch, batch_at
from kafka08.kernel.types import (
    MAX_SET_BYTES,
    NO_TIMESTAMP,
    BatchesOfProducers,
    Buffer,
)
from kafka08.log import crashpoints
from kafka08.log.config import LogConfig
from kafka08.log.entry_offsets import OFFSET
from kafka08.log.files import (
    exists,
    file_size,
    modified_ms,
    no_way_back,
    open_file,
    remove,
    rename,
    storage_error,
    storage_errors,
)
from kafka08.log.index_file import IndexFile
from kafka08.log.leader_epochs import NO_EPOCH
from kafka08.log.names import (
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    file_of,
)
from kafka08.log.offset_index import IndexEntry, OffsetIndex
from kafka08.log.recovery import Recovered, recover_messages
from kafka08.log.time_index import TimeIndex, TimestampOffset
from kafka08.log.time_search import TimeSearch
from kafka08.log.transaction_index import TransactionIndex
from kafka08.runtime.disk import Disk, OpenMode
from kafka08.runtime.system_disk import SYSTEM_DISK

logger = logging.getLogger(__name__)


class LogSegment(kernel.SegmentTail):
    """The open segment of `directory` that starts at `base_offset`; missing files are created.

    Besides the fields of SegmentTail, which `kernel.append_plain` changes:

    size           bytes of messages, without the remains of a failed write
    created_ms     when this object was created: the age for rolling starts over with every start of
                   the broker (0.8)
    jitter_ms      subtracted from the age at which this segment is rolled
    end_offset, is_full, and the limits of appends      for the active segment only
    time_index     None below 0.10.2; then timestamps are not used
    aborted        None below 0.11

    With a time index:

    first_ms       the timestamp at which the segment's age starts: that of its first message, or
                   while the broker that wrote them runs the largest of the first set; NO_TIMESTAMP
                   if there is none. For the active segment only
    largest        the largest timestamp so far and its offset; until the segment is active, as far
                   as the time index has it

    Only the active segment accepts appends; `activate` makes it so. Not thread-safe.
    """

    __slots__ = ("_disk", "_knows_first", "_lacks_time_index", "aborted", "directory", "file",
                 "index", "jitter_ms", "log_path", "time_index")  # fmt: skip

    def __init__(
        self,
        directory: Path,
        base_offset: int,
        *,
        index_interval_bytes: int,
        created_ms: int,
        jitter_ms: int = 0,
        has_timestamps: bool = False,
        has_transactions: bool = False,
        crash: crashpoints.CrashPoint = crashpoints.never,
        disk: Disk = SYSTEM_DISK,
    ) -> None:
        self.directory = directory
        self._disk = disk
        self.base_offset = base_offset
        self.created_ms = created_ms
        self.jitter_ms = jitter_ms
        self.log_path = file_of(directory, base_offset, LOG_SUFFIX)
        self.file = open_file(disk, self.log_path, OpenMode.CREATE)
        self.read, self.write = self.file.pread, self.file.pwrite
        self.use_descriptor()
        self.size = file_size(self.file, self.log_path)
        crash(crashpoints.ROLL_LOG_CREATED)
        self.index = OffsetIndex(file_of(directory, base_offset, INDEX_SUFFIX), base_offset, disk)
        self.is_full = True
        self.index_is_due = self.takes_plain_sets = False
        self.end_offset = base_offset
        self.first_ms = NO_TIMESTAMP
        self._knows_first = False
        self.largest = TimestampOffset(NO_TIMESTAMP, base_offset)
        self.time_index: TimeIndex | None = None
        self._lacks_time_index = False
        if has_timestamps:
            path = file_of(directory, base_offset, TIME_INDEX_SUFFIX)
            self._lacks_time_index = self.size > 0 and not exists(disk, path)
            self.time_index = TimeIndex(path, base_offset, disk)
            self.largest = self.time_index.last
        self.aborted: TransactionIndex | None = None
        if has_transactions:
            self.aborted = TransactionIndex(
                file_of(directory, base_offset, TRANSACTION_INDEX_SUFFIX), disk
            )
        self.index_tail, self.time_tail = self.index, self.time_index
        self.index_interval_bytes = index_interval_bytes
        self.bytes_since_index = 0
        self._reset_tail()

    def use_descriptor(self) -> None:
        """Write by the file's descriptor, or by the file itself if it has none at present."""
        self.descriptor = self.file.descriptor

    @property
    def last_modified_ms(self) -> int:
        """The time at which messages were last written or truncated."""
        return modified_ms(self._disk, self.log_path)

    @property
    def largest(self) -> TimestampOffset:
        """The largest timestamp and its offset."""
        return TimestampOffset(self.max_timestamp_ms, self.max_timestamp_offset)

    @largest.setter
    def largest(self, time: TimestampOffset) -> None:
        self.max_timestamp_ms, self.max_timestamp_offset = time

    @property
    def newest_ms(self) -> int:
        """The segment's time for retention: its largest timestamp, or without one the time of the
        last write."""
        timestamp_ms = self.largest.timestamp_ms
        return timestamp_ms if timestamp_ms >= 0 else self.last_modified_ms

    @property
    def indexes(self) -> tuple[IndexFile, ...]:
        return (self.index,) if self.time_index is None else (self.index, self.time_index)

    @property
    def written_indexes(self) -> tuple[IndexFile | TransactionIndex, ...]:
        """Those that a flush of the segment must sync, too."""
        aborted = self.aborted
        return self.indexes if aborted is None or not aborted.entries else (*self.indexes, aborted)

    def _has_full_index(self) -> bool:
        time_index = self.time_index
        return self.index.is_full or (time_index is not None and time_index.is_full)

    def take_limits(self, config: LogConfig, records: BatchesOfProducers) -> None:
        """Set the limits of appends by `kernel.append_plain`. The next record batch is one of the
        log's `records` that it does not append."""
        # What the kernel appends is neither synced nor compressed by it.
        self.takes_plain_sets = not config.target_codec and config.flush_messages == LONG_MAX
        self.records = records
        self.noted_epoch = NO_EPOCH
        self.rules = config.append_rules
        self.max_entry_bytes = config.max_message_bytes
        least = config.min_insync_replicas
        self.min_in_sync = -1 if least is None else least
        self.segment_bytes = config.segment_bytes
        self.age_max_ms = max(LONG_MIN, config.segment_ms - self.jitter_ms)

    def activate(self, index_bytes: int) -> None:
        """Prepare for appends: pre-allocate the indexes."""
        for index in self.indexes:
            index.grow(index_bytes)
        self.is_full = self._has_full_index()
        if self.time_index is not None and not self._knows_first:
            self.first_ms = self.timestamp_at(0)
            self._knows_first = self.size > 0

    def append(
        self,
        message_set: Buffer,
        first_offset: int,
        max_timestamp_ms: int = NO_TIMESTAMP,
        max_timestamp_offset: int = -1,
    ) -> int:
        """Write a set whose first message has `first_offset`; returns its position.

        max_timestamp_ms, max_timestamp_offset    its largest timestamp and that message's offset

        The caller has checked everything, and no index is full. After a failed write the segment is
        unchanged, and StorageError is raised.
        """
        position = self.size
        size = len(message_set)
        try:
            self.write(message_set, position)
        except OSError as error:
            self._drop_bytes_after(position)
            raise storage_error("append to", self.log_path, error) from error
        time_index = self.time_index
        if time_index is not None:
            if not position:
                self.first_ms = max_timestamp_ms
                self._knows_first = True
            if max_timestamp_ms > self.max_timestamp_ms:
                self.max_timestamp_ms = max_timestamp_ms
                self.max_timestamp_offset = max_timestamp_offset
        self.tail_offset = first_offset
        self.tail_position = position
        if self.bytes_since_index > self.index_interval_bytes:
            self.index_last_set()
            self.bytes_since_index = 0
        self.bytes_since_index += size
        self.size = position + size
        return position

    def index_last_set(self) -> None:
        """Add the index entries of the last set, which is in the log already: if a file is refused,
        lookups scan from the entry before. If its offset is too far from the base, the segment is
        full."""
        self.index_is_due = False
        try:
            self._index_last_set()
        except FileRefused as error:
            logger.warning("No index entry for offset %d: %s", self.tail_offset, error)

    def _index_last_set(self) -> None:
        index = self.index
        if not index.takes(self.tail_offset, self.tail_position):
            self.is_full = True
            return
        index.append(self.tail_offset, self.tail_position)
        if self.time_index is not None:
            self._append_time(self.largest)
            self.is_full = self._has_full_index()
        elif index.entries >= index.capacity:
            self.is_full = True

    def position_of(self, offset: int, lower_bound: int = 0) -> int | None:
        """Position of the first entry (a wrapper counts as its last message) with an offset at or
        above `offset`, at or after `lower_bound`; None if the segment has none.

        The start of the last appended set and every indexed offset are found without reading.
        """
        if offset >= self.tail_offset:
            found_offset, position = self.tail_offset, self.tail_position
        else:
            found_offset, position = self.index.lookup(offset)
        if found_offset == offset and position < self.size:
            return max(position, lower_bound)
        try:
            found = kernel.find_position(self, max(position, lower_bound), offset)
        except OSError as error:
            raise storage_error("read", self.log_path, error) from error
        except kernel.CorruptMessage as error:
            raise CorruptLog(f"{self.log_path}: {error}") from error
        return found if found >= 0 else None

    def end_offset_before(self, position: int, offset: int) -> int:
        """The offset after the last entry that ends at `position`, which `position_of` returned for
        `offset` (`size` for None). CorruptLog if the entries before cannot be read."""
        known = self.index.lookup(offset)
        while known.position >= position > 0:
            known = self.index.lookup(known.offset - 1)
        data = self.read_bytes(known.position, position - known.position)
        try:
            found = kernel.validate(data, MAX_SET_BYTES, verify_crc=False)
        except ValueError as error:
            raise CorruptLog(f"{self.log_path}: {error}") from error
        return max(self.base_offset, found.last_offset + 1)

    def end_before(self, max_offset: int, offset: int, position: int) -> int:
        """The end position of a slice from `offset`, which is at `position`, without `max_offset`
        and later messages. UnknownError for a `max_offset` below `offset`."""
        if max_offset < offset:
            raise UnknownError(
                f"Attempt to read with a maximum offset ({max_offset}) less than the start offset "
                f"({offset})."
            )
        end = self.position_of(max_offset, position)
        return self.size if end is None else end

    def read_bytes(self, position: int, size: int) -> bytes:
        """Up to `size` bytes from `position`; fewer at the end of the file."""
        with storage_errors("read", self.log_path):
            return self.file.pread(size, position)

    def timestamp_at(self, position: int) -> int:
        """The timestamp of the entry at `position`; NO_TIMESTAMP if it has none, or there is no
        entry."""
        batch = self._batch_at(position)
        return NO_TIMESTAMP if batch is None else batch.max_timestamp_ms

    def _batch_at(self, position: int) -> Batch | None:
        """The entry at `position`; None if there is none, or its size is impossible."""
        with suppress(kernel.CorruptMessage):
            return batch_at(self.read_bytes(position, HEAD_BYTES_MAX))
        return None

    def time_search(self, target_ms: int, from_offset: int = 0) -> TimeSearch | None:
        """The search for a message with a timestamp of `target_ms` or later, from the time index's
        entry and `from_offset` on; None if all are earlier."""
        if self.time_index is None or self.largest.timestamp_ms < target_ms:
            return None
        first = max(from_offset, self.time_index.lookup(target_ms).offset)
        position = self.index.lookup(first).position
        return TimeSearch(
            self.base_offset, self.file, self.log_path, position, self.size, target_ms, from_offset
        )

    def index_problem(self, *, clean_shutdown: bool) -> str | None:
        """Why an index cannot belong to these messages; None if all can.

        clean_shutdown   a time index with entries also has the last one
        """
        problem = self.index.problem(self.size)
        if self.time_index is None or problem is not None:
            return problem
        problem = self.time_index.problem()
        if problem is None and self._lacks_time_index:
            batch = self._batch_at(self.index.last.position)
            if batch is not None and batch.has_timestamp:
                return "the time index is missing"
        if problem is None and not (clean_shutdown and self.time_index.entries):
            problem = self._missing_times(self.time_index.last.timestamp_ms)
        return problem

    def _missing_times(self, indexed_ms: int) -> str | None:
        """The file may be lost, and a power failure may remove the entry that a roll has added, so
        this checks the first message and those after the last index entry. 0.10.2.2 does not check,
        and finds no message with a later timestamp than the last entry's."""
        tail = self.check(from_last_index_entry=True).largest.timestamp_ms
        largest_ms = max(self.timestamp_at(0), tail)
        if largest_ms <= indexed_ms:
            return None
        return f"the time index ends with {indexed_ms}, but a message has timestamp {largest_ms}"

    def check(
        self, *, from_last_index_entry: bool = False, end_offset: int | None = None
    ) -> Recovered:
        """Read the messages (or those from the last index entry on) and find the valid part. Every
        offset is below `end_offset`, if that is known. Changes nothing."""
        known = self.index.last if from_last_index_entry else IndexEntry(self.base_offset, 0)
        with storage_errors("recover", self.log_path):
            return recover_messages(
                self.file,
                self.size,
                index_interval_bytes=self.index_interval_bytes,
                start=known.position,
                lowest_offset=known.offset,
                end_offset=end_offset,
            )

    def repair(self, found: Recovered, index_bytes: int) -> int:
        """Truncate the messages to the valid part of a full `check`, write its fixes of offsets and
        its indexes; the segment is sealed afterwards. All is on disk on return, since segments
        below the recovery point are not checked again. Returns the number of bytes removed."""
        for index in self.indexes:
            index.grow(index_bytes)
            index.truncate_to(self.base_offset)
        for (offset, position), time in zip(found.index_entries, found.time_entries, strict=True):
            if self._has_full_index() or not self.index.takes(offset, position):
                break
            self.index.append(offset, position)
            self._append_time(time)
        self.largest = found.largest
        self.seal()
        cut = self.size - found.valid_bytes
        self._cut(found.valid_bytes)
        with storage_errors("write", self.log_path):
            for position, offset in found.fixes.items():
                self.file.pwrite(OFFSET.pack(offset), position)
        with storage_errors("sync", self.log_path):
            for index in self.indexes:
                index.opened().sync()
            if cut or found.fixes:
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
        """Drop the entries at or above `offset` (also a wrapper that contains it), which is at
        `position_of` it; the segment is active afterwards."""
        # It may have been sealed, and is the last segment now.
        self.activate(index_bytes)
        if position is None:
            return
        # Before the messages: a crash in between leaves too few entries, which is harmless.
        for index in self.indexes:
            index.truncate_to(offset)
        if self.aborted is not None:
            self.aborted.truncate_to(offset)
        if self.index.last.position >= position:
            # The truncated set began below `offset`: a wrapper around it, or after a gap.
            self.index.truncate_to(self.index.last.offset)
        crash(crashpoints.TRUNCATE_INDEX_CUT)
        self._cut(position)
        if not self.size:
            self.created_ms = now_ms
            self.first_ms = NO_TIMESTAMP
            self._knows_first = False
        if self.time_index is not None:
            self._find_largest(self.time_index.last)

    def _find_largest(self, indexed: TimestampOffset) -> None:
        """After a truncation: the largest timestamp is the last indexed one, or one in the messages
        from the last index entry but one on. Each index entry is made with one of the time index,
        but that of the last may belong to a message behind it that was cut: if there is none now
        for a message before it, the time index gets one, so that the next truncation finds it.
        (0.10.2.2 reads from the last entry of the time index, and adds none.)"""
        start = self.index.lookup(self.index.last.offset - 1).position
        with storage_errors("read", self.log_path):
            after = recover_messages(
                self.file,
                self.size,
                index_interval_bytes=INT_MAX,
                start=start,
            )
        self.largest = max(indexed, after.largest, key=lambda one: one.timestamp_ms)
        if self.largest.offset < self.index.last.offset and not self._has_full_index():
            self._append_time(self.largest)
            self.is_full = self._has_full_index()

    def take_largest(self, found: TimestampOffset) -> None:
        """Take the largest timestamp found in the last messages: a stop adds it to the time index
        without a sync, so a power failure may have removed it."""
        if self.time_index is not None and found.timestamp_ms > self.max_timestamp_ms:
            self.largest = found

    def seal(self) -> None:
        """Trim the indexes: no appends from now on. The time index has the largest timestamp."""
        self.is_full = True
        self._append_time(self.largest)
        for index in self.indexes:
            index.seal()

    def _append_time(self, time: TimestampOffset) -> None:
        """Unless its offset is too far from the base. No CRC covers an offset: a damaged one may be
        any number."""
        index = self.time_index
        if index is not None and index.takes(time.offset) and time.offset >= index.last.offset:
            index.append(*time)

    def close(self) -> None:
        """Trim the indexes. The message file is closed by its last reader."""
        if self.time_index is not None and self.time_index.capacity:
            self._append_time(self.largest)
        for index in self.indexes:
            index.close()

    def forget(self) -> None:
        """Close the indexes as they are: they were deleted."""
        for index in self.indexes:
            index.forget()

    def mark_deleted(self, crash: crashpoints.CrashPoint) -> None:
        """Rename the files to *.deleted. Readers can continue."""
        # This rename may be refused, with nothing changed; after it there is no way back.
        deleted = self._with_suffix(self.log_path)
        rename(self._disk, self.log_path, deleted)
        self.log_path = deleted
        crash(crashpoints.DELETE_LOG_RENAMED)
        with no_way_back():
            for index in self.indexes:
                deleted = self._with_suffix(index.path)
                rename(self._disk, index.path, deleted)
                index.path = deleted
                index.forget()
            if self.aborted is not None and exists(self._disk, self.aborted.path):
                deleted = self._with_suffix(self.aborted.path)
                rename(self._disk, self.aborted.path, deleted)
                self.aborted.path = deleted

    def remove_files(self) -> None:
        """Delete the files; missing ones are no error."""
        for path in (self.log_path, *(index.path for index in self.indexes)):
            remove(self._disk, path)
        if self.aborted is not None:
            remove(self._disk, self.aborted.path)

    def _cut(self, size: int) -> None:
        if size != self.size:
            with storage_errors("truncate", self.log_path):
                self.file.truncate(size)
            self.size = size
        self.bytes_since_index = 0
        self._reset_tail()

    def _reset_tail(self) -> None:
        self.tail_offset, self.tail_position = self.index.last

    def _drop_bytes_after(self, position: int) -> None:
        """After a failed write. If this fails too, the bytes stay, but `size` never includes
        them."""
        try:
            self.file.truncate(position)
        except OSError:
            return

    @staticmethod
    def _with_suffix(path: Path) -> Path:
        return path.with_name(path.name + DELETED_SUFFIX)

    def __str__(self) -> str:
        return f"LogSegment(baseOffset={self.base_offset}, size={self.size})"
