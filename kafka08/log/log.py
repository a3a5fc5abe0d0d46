"""A partition's log: its segments in order. The last one, the active segment, accepts appends.

    lowest offset that may be read   = log start offset, base offset of the first segment <= it
    next offset to be written        = log end offset (LEO)
    everything below is on disk      = recovery point, start <= recovery point <= LEO

Offsets ascend but may have gaps (compaction). A `Log` is used by one thread (the broker's hub). It
waits only for the disk: appends go to the page cache, the fsync of a rolled segment and deletes go
to its `Background`; `flush` waits. So do appends with flush.messages, unless the caller passes
`flush=False` and runs the result of `owed_flush`. Source:
kafka.log.Log 0.8.2.2 and 0.10.2.2.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from kafka08 import kernel
from kafka08.clock import SYSTEM_CLOCK, Clock
from kafka08.config import INT_MAX, LONG_MAX
from kafka08.kernel.types import EMPTY_ENTRY_BYTES, NO_TIMESTAMP, Buffer
from kafka08.log import crashpoints
from kafka08.log.aborted_transactions import AbortedTransaction
from kafka08.log.background import Background, Inline, PendingFlush
from kafka08.log.cleaned_segment import CleanedSegment
from kafka08.log.config import LogConfig
from kafka08.log.files import (
    exists,
    make_directories,
    no_way_back,
    remove,
    storage_errors,
    sync_directory,
)
from kafka08.log.loader import load_segments
from kafka08.log.log_segments import LogSegments
from kafka08.log.names import parse_partition_directory, segment_files
from kafka08.log.producer_entries import StoredBatch
from kafka08.log.readable_log import ReadableLog
from kafka08.log.record_state import RecordState
from kafka08.log.retention import Retention
from kafka08.log.segment import LogSegment
from kafka08.log.slices import AppendInfo
from kafka08.log.unsynced import UnsyncedChanges
from kafka08.metrics import Timings
from kafka08.protocol import message_set
from kafka08.protocol.message_set import NO_LIMIT
from kafka08.runtime.disk import Disk
from kafka08.runtime.system_disk import SYSTEM_DISK

logger = logging.getLogger(__name__)

DrawJitter = Callable[[int], int]
"""limit → a random number in [0, limit), for a segment's roll jitter."""
NOTHING_APPENDED = AppendInfo(-1, -1, 0, 0)


def no_jitter(_limit: int) -> int:
    return 0


class Log(ReadableLog):
    """The log in `directory` (created if missing), named `<topic>-<partition>`.

    clock            wall time, for segment ages and flush intervals
    recovery_point   everything below is known to be on disk and is not checked again
    log_start_offset records below were deleted, though their segment may still be there
    clean_shutdown   the last owner closed the log; only its very end is checked
    disk             the file system
    background       runs fsync and delayed deletes
    draw_jitter      random source of segment.jitter.ms
    crash            see kafka08.log.crashpoints

    active_segment     accepts the appends, also those of `kernel.append_plain`
    is_being_cleaned   a cleaner works on it; retention waits
    is_closed          whether it was closed or deleted
    sealed_changes     increases when sealed segments are truncated or deleted; a cleaning in
                       progress aborts then
    log_directory      the parent of `directory`; a LogManager's logs share one object for it
    records            the producers and leader epochs of its record batches

    Opening may read the whole log (recovery) and may do so in any thread; afterwards one thread at
    a time. Raises StorageError, or CorruptLog for misnamed segment files.
    """

    def __init__(
        self,
        directory: Path,
        config: LogConfig,
        *,
        clock: Clock = SYSTEM_CLOCK,
        disk: Disk = SYSTEM_DISK,
        recovery_point: int = 0,
        log_start_offset: int = 0,
        clean_shutdown: bool = False,
        background: Background | None = None,
        draw_jitter: DrawJitter = no_jitter,
        crash: crashpoints.CrashPoint = crashpoints.never,
        log_directory: Path | None = None,
    ) -> None:
        self.directory = Path(directory)
        self.log_directory = log_directory or self.directory.parent
        self.topic_partition = parse_partition_directory(self.directory)
        self._config = config
        self.disk = disk
        self._clock = clock
        self._background = background or Inline()
        self._draw_jitter = draw_jitter
        self._crash = crash
        self.is_closed = False
        self.sealed_changes = 0
        self.is_being_cleaned = False
        self.last_flush_ms = clock.time_ms()
        self.flush_times = Timings()
        """The durations of its fsyncs in ms; a LogManager has one for all of its logs."""
        make_directories(disk, self.directory)
        loaded = load_segments(
            self.directory,
            self._open_segment,
            recovery_point=recovery_point,
            clean_shutdown=clean_shutdown,
            index_bytes=config.segment_index_bytes,
            disk=disk,
        )
        self._unsynced = UnsyncedChanges(disk, self.directory, loaded.unsynced_marks)
        # The former process may have been killed before it had synced what it had cut.
        self._unsynced.was_cut = not (clean_shutdown or loaded.is_new)
        log_end_offset = loaded.log_end_offset
        self._segments = LogSegments(self.name, loaded.segments, self._background)
        self._base_offsets = self._segments.base_offsets
        self.active_segment = self._segments.active
        self.active_segment.activate(config.segment_index_bytes)
        self.records = RecordState(self.directory, disk, is_kept=config.keeps_record_state)
        self.active_segment.take_limits(config, self.records)
        self.active_segment.end_offset = log_end_offset
        if not config.gives_time:  # else the messages may have other timestamps than the index
            self.active_segment.take_largest(loaded.largest)
        # Above the log end if that was not on disk at a power failure.
        self.log_start_offset = max(min(log_start_offset, log_end_offset), self.first_base_offset)
        self._restore_records(may_have_batches=config.stores_records and not clean_shutdown)
        # A clean stop has flushed everything; after another one the loader may have cut below the
        # point.
        self.recovery_point = (
            log_end_offset if clean_shutdown else min(recovery_point, log_end_offset)
        )
        logger.info("Completed load of log %s with log end offset %d", self.name, log_end_offset)

    # Properties

    @property
    def config(self) -> LogConfig:
        """Its settings, which may be replaced at any time."""
        return self._config

    @config.setter
    def config(self, config: LogConfig) -> None:
        if config.magic < self._config.magic and self.active_segment.size:
            # In no segment does magic 0 follow magic 1: see stored_format.
            self.active_segment.is_full = True
        self._config = config
        self.active_segment.take_limits(config, self.records)

    # Appending

    def append(
        self,
        message_set_data: Buffer,
        now_ms: int | None = None,
        *,
        max_unpacked_bytes: int = message_set.MAX_UNPACKED_BYTES,
        leader_epoch: int = 0,
        flush: bool = True,
    ) -> AppendInfo:
        """Append a produced set: validate, number in place (or recompress), one write.

        `message_set_data` must be writable and is changed. `now_ms` is the current time, for a
        caller that appends to many logs at once; `leader_epoch` is written into record batches.
        Raises InvalidMessage, InvalidTimestamp,
        MessageSizeTooLarge, MessageSetSizeTooLarge, UnknownError or UnpacksTooLarge (more than
        `max_unpacked_bytes`) with nothing appended, and StorageError.
        """
        if now_ms is None:
            now_ms = self._clock.time_ms()
        config, first_offset = self._config, self.active_segment.end_offset
        summary = config.number(message_set_data, first_offset, now_ms, leader_epoch)
        # It must be unpacked or compressed.
        if summary is None:
            prepared = config.prepare(
                message_set_data, first_offset, now_ms, max_unpacked_bytes, leader_epoch
            )
            return self._append_numbered(prepared, now_ms, flush)
        last_offset, size = summary.last_offset, summary.size
        # A message that is cut off at the end is left out.
        if size != len(message_set_data):
            message_set_data = memoryview(message_set_data)[:size]
        noted = self.records.batches_in(message_set_data, summary)
        repeated = self.records.repeated(noted)
        if repeated is not None:
            return repeated
        self._write(message_set_data, size, first_offset, summary, now_ms, flush, noted)
        time_ms = now_ms if config.gives_time else NO_TIMESTAMP
        return AppendInfo(first_offset, last_offset, summary.count, size, time_ms)

    def append_prepared(
        self,
        prepared: message_set.PreparedSet,
        own: StoredBatch | None = None,
        *,
        flush: bool = True,
    ) -> AppendInfo:
        """Append a set that `config.prepare` numbered from the current LEO, or a batch of the
        broker itself (`own`), whose sequence is not checked.

        For callers that prepare elsewhere (compression in a native thread); the log must not have
        changed since.
        """
        assert not prepared.count or prepared.first_offset == self.log_end_offset, (
            f"{self.name}: a set numbered from {prepared.first_offset} does not start at the log "
            f"end offset {self.log_end_offset}"
        )
        now_ms = self._clock.time_ms()
        return self._append_numbered(prepared, now_ms, flush, own)

    def _append_numbered(
        self,
        prepared: message_set.PreparedSet,
        now_ms: int,
        flush: bool,
        own: StoredBatch | None = None,
    ) -> AppendInfo:
        first_offset, last_offset = prepared.first_offset, prepared.last_offset
        count = prepared.count
        if not count:
            return AppendInfo(first_offset, last_offset, 0, 0)
        data = prepared.data
        noted = self.records.batches_in(data, prepared) if own is None else [own]
        repeated = self.records.repeated(noted) if own is None else None
        if repeated is not None:
            return repeated
        self._write(data, len(data), first_offset, prepared, now_ms, flush, noted)
        return AppendInfo(
            first_offset,
            last_offset,
            count,
            len(data),
            prepared.log_append_time_ms,
            prepared.unpacked_bytes,
        )

    def append_as_follower(self, message_set_data: Buffer, *, flush: bool = True) -> AppendInfo:
        """Append a set that was fetched from the leader, with its offsets, without a partial last
        entry. One that is larger than segment.bytes goes into several segments.

        Raises InvalidMessage (CRC, size, or offsets that do not ascend from the LEO on) with
        nothing appended, and StorageError.
        """
        summary = self._config.check_fetched(message_set_data, self.log_end_offset, self.name)
        if not summary.count:
            return NOTHING_APPENDED
        first_offset = self.log_end_offset
        if summary.size <= self._config.segment_bytes:
            self._append_fetched(message_set_data, summary, flush)
        else:
            for piece in message_set.pieces(message_set_data, self._config.segment_bytes):
                self._append_fetched(piece, kernel.validate(piece, NO_LIMIT, False), flush)
        return AppendInfo(first_offset, summary.last_offset, summary.count, summary.size)

    def _append_fetched(
        self, message_set_data: Buffer, summary: kernel.SetSummary, flush: bool
    ) -> None:
        """Append a checked set as a follower."""
        config, active = self._config, self.active_segment
        first_offset, last_offset = self.log_end_offset, summary.last_offset
        if active.size and last_offset - active.base_offset > INT_MAX:
            # The indexes store offsets relative to the base in 32 bits. No message may be below it.
            lowest = last_offset - INT_MAX
            fits = config.has_timestamps and first_offset < lowest <= summary.first_offset
            self.roll(lowest if fits else None)
        data = memoryview(message_set_data)[: summary.size]
        now_ms = self._clock.time_ms()
        noted = self.records.batches_in(data, summary)
        self._write(data, summary.size, first_offset, summary, now_ms, flush, noted)

    def may_owe_flush(self, message_set_data: Buffer) -> bool:
        """Whether an append of this set may make an fsync by flush.messages due; a compressed one
        may contain any number of messages."""
        most = len(message_set_data) // EMPTY_ENTRY_BYTES
        return (
            self._unflushed_messages + most >= self.config.flush_messages
            or message_set.begins_compressed(message_set_data)
        )

    def owed_flush(self) -> PendingFlush | None:
        """The fsync that flush.messages requires before the last append is acknowledged; None if
        it requires none."""
        due = self._unflushed_messages >= self.config.flush_messages
        return self.begin_flush() if due else None

    @property
    def _unflushed_messages(self) -> int:
        return self.log_end_offset - self.recovery_point

    def _write(
        self,
        data: Buffer,
        size: int,
        first_offset: int,
        summary: kernel.SetSummary | message_set.PreparedSet,
        now_ms: int,
        flush: bool,
        noted: list[StoredBatch],
    ) -> None:
        """Write a set of `size` bytes, which `summary` describes, with these record batches."""
        assert not self.is_closed, f"{self.name} is closed"
        segment = self.active_segment
        config = self._config
        largest_ms = summary.max_timestamp_ms
        # An empty segment takes any set: another one would be no better.
        if segment.size:
            # The age: by timestamps, or if the first message has none by clock times.
            first_ms = segment.first_ms
            age_ms = now_ms - segment.created_ms if first_ms < 0 else largest_ms - first_ms
            if (
                segment.size > config.segment_bytes - size
                or age_ms > config.segment_ms - segment.jitter_ms
                or segment.is_full
                or summary.last_offset - segment.base_offset > INT_MAX
            ):
                self.roll()
                segment = self.active_segment
        self.records.reserve(noted, segment)
        self.records.note_epochs(noted)
        segment.append(data, first_offset, largest_ms, summary.max_timestamp_offset)
        if noted:
            self.records.note(noted, now_ms, segment)
            segment.noted_epoch = self.records.epochs.latest
        segment.end_offset = end_offset = summary.last_offset + 1
        if flush and end_offset - self.recovery_point >= config.flush_messages:
            self.flush()

    def roll(self, base_offset: int | None = None) -> None:
        """Start a new active segment, at the LEO or at a `base_offset` above it; the old ones are
        flushed in the background."""
        if base_offset is None:
            base_offset = self.log_end_offset
        assert base_offset > self.active_segment.base_offset, (
            f"{self.name}: roll of an empty segment"
        )
        # A power failure could undo the truncation: two segments would have the same offsets.
        if self._unsynced.was_cut:
            self.flush()
        for path in segment_files(self.directory, base_offset):
            if exists(self.disk, path):
                logger.warning(
                    "Newly rolled segment file %s already exists; deleting it first", path
                )
                remove(self.disk, path)
        self.active_segment.seal()
        self.records.take_snapshot(base_offset, self.first_base_offset)
        self._crash(crashpoints.ROLL_SEALED)
        # Before the segment exists: see UnsyncedChanges.
        self._unsynced.mark_roll(self.log_end_offset)
        self._add_segment(base_offset)
        self._crash(crashpoints.ROLL_CREATED)
        logger.info("Rolled new log segment for '%s' at offset %d.", self.name, base_offset)
        flush = self.begin_flush()
        if flush is not None:
            self._background.flush_soon(flush)

    # Flushing

    def begin_flush(self) -> PendingFlush | None:
        """An fsync of everything below the LEO that is not on disk yet; None if everything is."""
        up_to = self.log_end_offset
        unsynced = self._unsynced
        if up_to <= self.recovery_point and not (unsynced.was_cut or unsynced.has_marks):
            return None
        # After a truncation the active segment is synced even if it begins at the LEO.
        end = None if unsynced.was_cut else up_to
        files = self._segments.files_to_sync(self.recovery_point, end)
        files += unsynced.directories()
        began, before = self._clock.monotonic(), unsynced.counts()

        def complete() -> None:
            self._crash(crashpoints.FLUSH_SYNCED)
            self.flush_times.add((self._clock.monotonic() - began) * 1000)
            # Not if the log was truncated meanwhile: what was synced may have been written again.
            if unsynced.complete(before) and up_to > self.recovery_point:
                self.recovery_point = up_to
                self.last_flush_ms = self._clock.time_ms()
                self.records.drop_old_snapshots(self._segments, up_to)

        return PendingFlush(str(self.directory), files, complete)

    def flush(self) -> None:
        """Wait until everything below the LEO is on disk: it is the new recovery point."""
        flush = self.begin_flush()
        if flush is not None:
            flush.run()

    # Truncating and deleting

    def delete_old_segments(self, retention: Retention, up_to: int = LONG_MAX) -> int:
        """Delete expired segments, and those below the log start; returns their number.
        Only segments that end at or below `up_to`.

        If all of them are expired, the log rolls first. Readers of deleted segments can continue.
        """
        if len(self._segments) == 1 and not self.active_segment.size:
            return 0  # without a look at its file: most of thousands of partitions may be empty
        facts = self.segment_facts
        count = retention.expired(facts, self._clock.time_ms())
        count = max(count, self._segments.number_of(self.log_start_offset))
        if up_to < self.log_end_offset:
            count = min(count, self._segments.number_of(up_to))
        if count == len(facts):
            self.roll()
        if count:
            self.sealed_changes += 1
            self._delete_segments(0, count)
            self.log_start_offset = max(self.log_start_offset, self.first_base_offset)
            self._note_log_start()
        return count

    def raise_log_start(self, offset: int) -> bool:
        """Delete the records below `offset`, which must not be above the log end: nobody reads them
        any more, and `delete_old_segments` removes their segments. False if they were already."""
        assert offset <= self.log_end_offset, f"{self.name} ends below {offset}"
        if offset <= self.log_start_offset:
            return False
        logger.info("Incrementing log start offset of partition %s to %d", self.name, offset)
        self.log_start_offset = offset
        self._note_log_start()
        return True

    def _note_log_start(self) -> None:
        self.records.log_start_rose(self.log_start_offset, self.first_base_offset)

    def all_aborted(self) -> list[AbortedTransaction]:
        """The aborted transactions that the indexes of all segments have."""
        indexes = [one.aborted for one in self._segments if one.aborted is not None]
        return [entry for index in indexes for entry in index.entries]

    def replace_segments(
        self,
        old: Sequence[LogSegment],
        cleaned: CleanedSegment,
        keeps_aborted: Callable[[AbortedTransaction], bool] = lambda _: True,
    ) -> None:
        """Replace `old` by `cleaned`, which is finished. `old` are adjacent sealed segments of this
        log, the first with the same base offset. Their readers can continue. `keeps_aborted`: which
        entries of their indexes stay.

        After a crash at any point the next load finds the old ones or the new one. The same holds
        after a StorageError, but this log must not be used any more.
        """
        start = self._segments.number_of_adjacent(old)
        assert old[0].base_offset == cleaned.base_offset, f"{self.name}: {old[0]} is not the first"
        if self._unsynced.has_marks:
            self.flush()  # the swap leaves a gap, which would count as a loss
        indexes = [one.aborted for one in old if one.aborted is not None]
        entries = [entry for index in indexes for entry in index.entries]
        cleaned.keep_aborted(list(filter(keeps_aborted, entries)))
        with no_way_back():
            cleaned.begin_swap()
            self._delete_segments(start, start + len(old))
            cleaned.finish_swap()
            self._segments.insert(start, self._open_segment(cleaned.base_offset))

    def truncate_to(self, offset: int) -> None:
        """Drop everything at or above `offset`, and a wrapper around it as a whole. The LEO is then
        the end of the last entry that stays, if `offset` is in a gap too: a roll above it would
        look like a loss after a kill. (In 0.8.2.2 it is `offset`, and messages that were in the
        wrapper are never copied.)

        The recovery point moves down with it and must be checkpointed before the next append:
        LogManager.truncate_to does both. CorruptLog, with nothing dropped, if the position cannot
        be found.
        """
        assert offset >= 0, f"cannot truncate to a negative offset ({offset})"
        if offset > self.log_end_offset:
            logger.info(
                "Truncating %s to %d has no effect as the largest offset in the log is %d.",
                self.name, offset, self.log_end_offset - 1,
            )  # fmt: skip
            return
        logger.info("Truncating log %s to offset %d.", self.name, offset)
        if self.first_base_offset > offset:
            self.truncate_fully_and_start_at(offset)
            return
        keep = self._segments.number_of(offset) + 1
        segment = self._segments.segment_of(offset)
        position = segment.position_of(offset)
        offset = segment.end_offset_before(segment.size if position is None else position, offset)
        is_cut = offset < self.log_end_offset
        # First: a flush under way must not raise the recovery point over what follows.
        self._unsynced.begin_truncation()
        if keep < len(self._segments):
            self.sealed_changes += 1
            self._delete_segments(keep, len(self._segments))
            with no_way_back():
                # A power failure must not restore the old segments after messages written later.
                sync_directory(self.disk, self.directory)
        self._crash(crashpoints.TRUNCATE_SEGMENTS_DELETED)
        self.active_segment = self._segments.active
        with no_way_back():
            if is_cut:
                self.records.begin_truncation(offset)
            self.active_segment.truncate_to(
                offset,
                position,
                self.config.segment_index_bytes,
                self._clock.time_ms(),
                self._crash,
            )
        self._unsynced.was_cut = self._unsynced.was_cut or position is not None
        self.active_segment.end_offset = offset
        self.active_segment.take_limits(self.config, self.records)
        self.recovery_point = min(offset, self.recovery_point)
        self.log_start_offset = min(offset, self.log_start_offset)
        if is_cut:
            with no_way_back():
                self._restore_records(may_have_batches=True)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Delete every message; the log continues, empty, at `offset`."""
        logger.info("Truncating log %s fully, to start at offset %d.", self.name, offset)
        self._unsynced.begin_truncation()
        self.sealed_changes += 1
        self._delete_segments(0, len(self._segments))
        with no_way_back():
            sync_directory(self.disk, self.directory)
            self._crash(crashpoints.TRUNCATE_SEGMENTS_DELETED)
            self._add_segment(offset)
            self.records.reset(offset)
        self._unsynced.was_cut = False
        self.active_segment.end_offset = self.log_start_offset = offset
        self.recovery_point = min(offset, self.recovery_point)

    def close(self) -> None:
        """Trim the indexes. The operating system writes unflushed messages."""
        self.is_closed = True
        self.active_segment.takes_plain_sets = False
        self.records.take_snapshot(self.log_end_offset, self.first_base_offset)
        for segment in self._segments:
            segment.close()

    def delete(self, renamed: Path | None = None) -> None:
        """Remove the directory and everything in it, at once, its segments from the end: what a
        crash leaves has all messages up to its end, and can follow a leader again. 0.8.2.2 removes
        files in no order, so the replica that comes back may have lost its first messages. With
        `renamed`, rename the directory instead: keep this object until it is removed, then
        Background.close_soon frees the pages of its files."""
        self.is_closed = True
        self.active_segment.takes_plain_sets = False
        self._segments.remove_all(with_files=renamed is None)
        with storage_errors("delete", self.directory):
            if renamed is None:
                self.disk.remove_tree(self.directory)
            else:
                self.disk.rename(self.directory, renamed)

    def _restore_records(self, *, may_have_batches: bool) -> None:
        """Bring the state of the record batches up to the log end, after it was opened or cut.
        Producers of deleted records stay known while their segment is there."""
        start, self.log_start_offset = self.log_start_offset, self.first_base_offset
        self.records.restore(
            self._segments,
            self.log_end_offset,
            self._clock.time_ms(),
            self.read,
            may_have_batches=may_have_batches,
        )
        self.log_start_offset = start
        self._note_log_start()

    def _delete_segments(self, start: int, end: int) -> None:
        self._segments.delete(start, end, self.config.file_delete_delay_ms, self._crash)

    def _add_segment(self, base_offset: int) -> None:
        segment = self._open_segment(base_offset)
        segment.activate(self.config.segment_index_bytes)
        segment.take_limits(self.config, self.records)
        segment.end_offset = self.log_end_offset
        self.active_segment.takes_plain_sets = False
        self._segments.append(segment)
        self.active_segment = segment
        self._unsynced.note_creation()

    def _open_segment(self, base_offset: int) -> LogSegment:
        config = self.config
        # 0.8: a negative limit draws like a positive one.
        limit = abs(min(config.segment_jitter_ms, config.segment_ms))
        return LogSegment(
            self.directory,
            base_offset,
            index_interval_bytes=config.index_interval_bytes,
            created_ms=self._clock.time_ms(),
            jitter_ms=self._draw_jitter(limit) if limit else 0,
            has_timestamps=config.has_timestamps,
            has_transactions=config.keeps_record_state,
            crash=self._crash,
            disk=self.disk,
        )

    def __str__(self) -> str:
        return f"Log({self.directory})"
