"""CleanerPass: one pass over one log, after which each key has only its last message.

1. Map: the dirty segments are read, and each key's last offset goes into the offset map.
2. Clean: every segment from the log start to the end of the map is copied, without messages that a
   later one of their key supersedes, and without old tombstones. Small segments are merged. Each
   copy replaces its originals once it is on disk.

Offsets never change. An interrupted pass loses nothing: the segments that it replaced are clean,
and the next pass does the rest. Source: kafka.log.Cleaner 0.8.2.2.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Final, Protocol, TypeVar

from kafka08 import kernel
from kafka08.clock import Clock
from kafka08.config import LONG_MAX
from kafka08.errors import CorruptLog, FileRefused, StorageError
from kafka08.levels import Level
from kafka08.log import crashpoints
from kafka08.log.cleaned_segment import CleanedSegment
from kafka08.log.cleaned_transactions import CleanedTransactions
from kafka08.log.cleaner_chunks import Source, clean_chunk, map_chunk
from kafka08.log.cleaner_plan import (
    CleanerConfig,
    SealedSegment,
    delete_horizon_ms,
    group_segments,
    keeps_tombstones,
    last_clean,
)
from kafka08.log.cleaner_stats import CleanerStats
from kafka08.log.files import modified_ns
from kafka08.log.log import Log
from kafka08.log.segment import LogSegment
from kafka08.log.throttle import Throttle

T = TypeVar("T")

logger = logging.getLogger("kafka.log.LogCleaner")

NOT_REFUSED: Final = -1


class RunNative(Protocol):
    """Runs a job without blocking the event loop, and waits for it; may switch."""

    def __call__(self, call: Callable[..., T], *args: object) -> T: ...


def run_here(call: Callable[..., T], *args: object) -> T:
    """Runs it in this thread, where blocking is allowed."""
    return call(*args)


class CleaningAborted(Exception):
    """The log was truncated, closed or deleted meanwhile; this is not an error."""


class CleaningFailed(Exception):
    """The log cannot be cleaned, or there is no disk space for the copy; it is unchanged."""


def sealed_facts(cleaned_log: Log, end_offset: int = LONG_MAX) -> list[SealedSegment]:
    """A log's sealed segments for the plan, those that end at or below `end_offset`."""
    segments = cleaned_log.sealed_segments
    bases = [*(segment.base_offset for segment in segments), cleaned_log.active_base_offset]
    return [
        SealedSegment(segment.base_offset, bases[number], segment.size, segment.index.size)
        for number, segment in enumerate(segments, 1)
        if bases[number] <= end_offset
    ]


class CleanerPass:
    """A pass over `cleaned_log` from `first_dirty_offset` on; `run` once.

    end_offset its upper limit, the end of a segment
    native     runs the jobs that read, map and copy
    throttle   counts bytes read and written, and sleeps
    crash      see kafka08.log.crashpoints

    Between its steps the log may be used: the pass ignores appended messages, and ends by itself
    after a truncation.
    """

    def __init__(
        self,
        cleaned_log: Log,
        first_dirty_offset: int,
        config: CleanerConfig,
        *,
        end_offset: int = LONG_MAX,
        clock: Clock,
        throttle: Throttle,
        native: RunNative = run_here,
        crash: crashpoints.CrashPoint = crashpoints.never,
    ) -> None:
        self._log = cleaned_log
        self._first_dirty_offset = first_dirty_offset
        self._config = config
        self._end_offset = min(end_offset, cleaned_log.active_base_offset)
        self._clock = clock
        self._throttle = throttle
        self._native = native
        self._crash = crash
        self._changes = cleaned_log.sealed_changes
        self._horizon_ms = self._delete_horizon_ms()
        self.stats = CleanerStats(cleaned_log.name, first_dirty_offset)

    def run(self) -> int:
        """Clean; returns the offset up to which the log is clean, the base offset of a segment.

        May switch. CleaningAborted, CleaningFailed; StorageError if a disk failed during a swap,
        after which the log must not be used any more.

        A segment with more keys than the map can hold is cleaned in several rounds, each with a
        map of a part of it. (0.8.2.2's cleaner dies of it.)
        """
        stats = self.stats
        logger.info("Beginning cleaning of log %s.", self._log.name)
        start, whole = self._first_dirty_offset, False
        began = self._clock.monotonic()
        while not whole:
            before_map = self._clock.monotonic()
            offset_map, start, whole = self._build_map(start)
            stats.map_seconds += self._clock.monotonic() - before_map
            stats.map_use = max(stats.map_use, len(offset_map) / self._config.max_slots)
            self._clean_below(start, offset_map)
        stats.end_offset = start
        stats.seconds = self._clock.monotonic() - began
        return start

    def _delete_horizon_ms(self) -> int:
        position = last_clean(self._facts(), self._first_dirty_offset)
        modified_ms = None
        if position is not None:
            modified_ms = self._log.sealed_segments[position].last_modified_ms
        return delete_horizon_ms(modified_ms, self._log.config.delete_retention_ms)

    # Map

    def _build_map(self, start: int) -> tuple[kernel.OffsetMap, int, bool]:
        """A map of the messages from `start` on, its end offset (exclusive), and whether a segment
        starts there. Adds whole segments while they fit."""
        segments = self._log.sealed_segments
        facts = self._facts()
        offset_map = kernel.OffsetMap(*self._config.map_size(self._end_offset - start))
        reached = start
        transactions = self._transactions()
        for segment, fact in zip(segments, facts, strict=False):
            if fact.end_offset <= start:
                continue
            refused = self._map_segment(segment, offset_map, start, transactions)
            if refused != NOT_REFUSED:
                # A segment that does not fit is left to the next map, unless it is the first.
                return (
                    (offset_map, refused, False)
                    if reached == start
                    else (offset_map, reached, True)
                )
            reached = fact.end_offset
        return offset_map, reached, True

    def _map_segment(
        self,
        segment: LogSegment,
        offset_map: kernel.OffsetMap,
        from_offset: int,
        transactions: CleanedTransactions,
    ) -> int:
        source = Source(segment.log_path, segment.file, segment.size)
        position = segment.position_of(from_offset) if segment.base_offset < from_offset else 0
        while position is not None and position < source.size:
            before = position
            position, refused = self._step(
                map_chunk,
                source,
                position,
                self._config.chunk_bytes,
                offset_map,
                from_offset,
                transactions,
            )
            self.stats.map_bytes += position - before
            self._pace(position - before)
            if refused != NOT_REFUSED:
                return refused
        return NOT_REFUSED

    # Clean

    def _clean_below(self, end_offset: int, offset_map: kernel.OffsetMap) -> None:
        """Clean every segment that starts below `end_offset`."""
        config = self._log.config
        facts = [fact for fact in self._facts() if fact.base_offset < end_offset]
        segments = self._log.sealed_segments
        transactions = self._transactions()
        for start, end in group_segments(facts, config.segment_bytes, config.segment_index_bytes):
            self._clean_group(segments[start:end], facts[start:end], offset_map, transactions)

    def _clean_group(
        self,
        group: Sequence[LogSegment],
        facts: Sequence[SealedSegment],
        offset_map: kernel.OffsetMap,
        transactions: CleanedTransactions,
    ) -> None:
        cleaned = self._begin_segment(group[0].base_offset)
        try:
            for segment, fact in zip(group, facts, strict=True):
                keep_tombstones = keeps_tombstones(
                    fact, self._first_dirty_offset, segment.last_modified_ms, self._horizon_ms
                )
                self._clean_segment(segment, offset_map, cleaned, keep_tombstones, transactions)
            # 0.8: a merged segment has the time of its last original.
            self._step(cleaned.finish, modified_ns(self._log.disk, group[-1].log_path))
            logger.info(
                "Swapping in cleaned segment %d for segment(s) %s in log %s.",
                cleaned.base_offset,
                ",".join(str(segment.base_offset) for segment in group),
                self._log.name,
            )
            self._log.replace_segments(group, cleaned, transactions.keeps_entry)
        finally:
            cleaned.discard()

    def _begin_segment(self, base_offset: int) -> CleanedSegment:
        config = self._log.config
        try:
            return CleanedSegment(
                self._log.directory,
                base_offset,
                index_interval_bytes=config.index_interval_bytes,
                index_bytes=config.segment_index_bytes,
                has_timestamps=config.has_timestamps,
                crash=self._crash,
                disk=self._log.disk,
            )
        except (StorageError, FileRefused) as error:
            raise CleaningFailed(str(error)) from error

    def _clean_segment(
        self,
        segment: LogSegment,
        offset_map: kernel.OffsetMap,
        cleaned: CleanedSegment,
        keep_tombstones: bool,
        transactions: CleanedTransactions,
    ) -> None:
        logger.info(
            "Cleaning segment %d in log %s into %d, %s deletes.",
            segment.base_offset,
            self._log.name,
            cleaned.base_offset,
            "retaining" if keep_tombstones else "discarding",
        )
        source = Source(segment.log_path, segment.file, segment.size)
        position = 0
        while position < source.size:
            found = self._step(
                clean_chunk,
                source,
                position,
                self._config.chunk_bytes,
                offset_map,
                cleaned,
                keep_tombstones,
                self._log.config.level >= Level.V0_9_0,
                transactions,
            )
            self.stats.add(found, found.position - position)
            self._pace(found.position - position + found.written)
            position = found.position

    # Others

    def _transactions(self) -> CleanedTransactions:
        """The view of a pass that begins at the log start."""
        last = self._log.records.producers.last_appends()
        return CleanedTransactions(self._log.all_aborted(), last)

    def _facts(self) -> list[SealedSegment]:
        """The current sealed segments of this pass."""
        return sealed_facts(self._log, self._end_offset)

    def _step(self, call: Callable[..., T], *args: object) -> T:
        """Run one native job. Other tasks run meanwhile."""
        try:
            result = self._native(call, *args)
        except (StorageError, FileRefused, CorruptLog) as error:
            # In a log that was closed or truncated meanwhile it means nothing.
            self._check()
            raise CleaningFailed(str(error)) from error
        self._check()
        return result

    def _pace(self, size: int) -> None:
        self._throttle.observe(size)
        self._check()

    def _check(self) -> None:
        if self._log.is_closed or self._log.sealed_changes != self._changes:
            raise CleaningAborted(self._log.name)
