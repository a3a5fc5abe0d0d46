"""ReadableLog: what a log says of itself, and its messages by offset or time.

Nothing here changes the log; `Log` does.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from kafka08.errors import OffsetOutOfRange, UnknownError, UnsupportedForMessageFormat
from kafka08.log.aborted_transactions import AbortedTransaction, overlapping
from kafka08.log.offset_lookup import offset_at_time, offsets_before
from kafka08.log.retention import SegmentFacts
from kafka08.log.segment import LogSegment
from kafka08.log.slices import LogOffset, LogSlice
from kafka08.log.time_index import TimestampOffset
from kafka08.log.time_search import TimeSearch

if TYPE_CHECKING:
    from kafka08.clock import Clock
    from kafka08.log.config import LogConfig
    from kafka08.log.log_segments import LogSegments
    from kafka08.structs import TopicPartition


class ReadableLog:
    """The part of a Log that reads. The Log sets every field."""

    if TYPE_CHECKING:
        directory: Path
        topic_partition: TopicPartition
        active_segment: LogSegment
        log_start_offset: int
        _config: LogConfig
        _segments: LogSegments
        _base_offsets: list[int]
        _clock: Clock

    @property
    def name(self) -> str:
        """`<topic>-<partition>`."""
        return self.directory.name

    @property
    def log_end_offset(self) -> int:
        """The next offset to be written (LEO)."""
        return self.active_segment.end_offset

    @property
    def log_end(self) -> LogOffset:
        """The LEO with its position."""
        active = self.active_segment
        return LogOffset(self.log_end_offset, active.base_offset, active.size)

    @property
    def size(self) -> int:
        """Bytes of messages in all segments."""
        return self._segments.size

    @property
    def segment_count(self) -> int:
        """At least 1."""
        return len(self._segments)

    @property
    def segment_facts(self) -> list[SegmentFacts]:
        """The segments for Retention, oldest first."""
        return self._segments.facts

    @property
    def sealed_segments(self) -> list[LogSegment]:
        """The segments that accept no more appends, oldest first; a cleaner may replace them."""
        return self._segments.sealed

    @property
    def active_base_offset(self) -> int:
        """The base offset of the active segment."""
        return self.active_segment.base_offset

    def base_offset_of(self, offset: int) -> int:
        """The base offset of the segment of `offset`; of the first one if it is below."""
        return self._segments.segment_of(offset).base_offset

    @property
    def first_base_offset(self) -> int:
        """The base offset of the first segment, which may have deleted records up to the log
        start."""
        return self._base_offsets[0]

    # Reading

    def read(self, offset: int, max_bytes: int, max_offset: int | None = None) -> LogSlice:
        """Up to `max_bytes` from the first entry at or above `offset`, from one segment.

        `max_offset` ends the slice before the entry at or above it. At the LEO, or if all messages
        up to it are deleted, the slice is empty. OffsetOutOfRange below the log start or above the
        LEO; UnknownError for a negative size or a `max_offset` below `offset`, as from 0.8.2.2.
        """
        active = self.active_segment
        log_end_offset = active.end_offset
        # Most fetches end here, without a look at an index.
        if offset == log_end_offset:
            return LogSlice(offset, active.base_offset, active.file, active.size, 0)
        if not self.log_start_offset <= offset < log_end_offset:
            raise OffsetOutOfRange(
                f"Request for offset {offset} but we only have log segments in the range "
                f"{self.log_start_offset} to {log_end_offset}."
            )
        if max_bytes < 0:
            raise UnknownError(f"Invalid max size for log read ({max_bytes})")
        if offset >= active.base_offset:
            segment, position = active, active.position_of(offset)
        else:
            segment, position = self._segments.locate(offset)
        if position is None:
            return LogSlice(log_end_offset, active.base_offset, active.file, active.size, 0)
        end = segment.size
        if max_offset is not None and max_offset < log_end_offset:
            end = segment.end_before(max_offset, offset, position)
        size = end - position
        return LogSlice(
            offset,
            segment.base_offset,
            segment.file,
            position,
            size if size < max_bytes else max_bytes,
        )

    def aborted_transactions(self, found: LogSlice) -> list[AbortedTransaction]:
        """Those that may have messages in a slice; others of its segment may be among them."""
        if not found.size:
            return []
        active = self.active_segment
        index = active.aborted
        # Most fetches end here: nothing was aborted in the last segment.
        if found.segment_base_offset == active.base_offset and index and not index.entries:
            return []
        number = self._segments.number_of(found.segment_base_offset)
        following = self._segments[number + 1 : number + 2]
        end = following[0].base_offset if following else self.log_end_offset
        indexes = (one.aborted for one in self._segments[number:])
        entries = (index.entries for index in indexes if index is not None)
        return overlapping(entries, found.offset, end)

    def position_of(self, offset: int) -> LogOffset:
        """The position of `offset`; OffsetOutOfRange outside of log start to LEO."""
        return self.read(offset, 0).log_offset

    def offsets_before(self, time_ms: int, max_offsets: int) -> list[int]:
        """See offset_lookup.offsets_before."""
        now_ms = self._clock.time_ms()
        start, end = self.log_start_offset, self.log_end_offset
        return offsets_before(self._segments, start, end, now_ms, time_ms, max_offsets)

    def offset_at_time(
        self,
        time_ms: int,
        run: Callable[[TimeSearch], TimestampOffset | None] = TimeSearch.run,
    ) -> TimestampOffset | None:
        """See offset_lookup.offset_at_time. CorruptLog if messages cannot be read,
        UnsupportedForMessageFormat if the log stores no timestamps."""
        if not self._config.magic:
            raise UnsupportedForMessageFormat(
                f"Cannot search offsets based on timestamp because message format version for "
                f"partition {self.topic_partition} is {self._config.message_format_version}"
            )
        return offset_at_time(self._segments, self.log_start_offset, time_ms, run)
