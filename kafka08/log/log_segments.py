"""The segments of one log, ordered by base offset. Source: kafka.log.LogSegments 3.x, which splits
them from Log as this does."""

from __future__ import annotations

import logging
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import overload

from kafka08.log.background import Background
from kafka08.log.crashpoints import CrashPoint
from kafka08.log.files import no_way_back
from kafka08.log.retention import SegmentFacts
from kafka08.log.segment import LogSegment
from kafka08.runtime.disk import Syncable

logger = logging.getLogger(__name__)


class LogSegments(Sequence[LogSegment]):
    """The segments of the log `name`; the last one is active. Positions in the list are numbers.

    base_offsets   of each segment, ascending
    background     closes files and deletes them later
    """

    def __init__(self, name: str, segments: Sequence[LogSegment], background: Background) -> None:
        self._name = name
        self._segments = list(segments)
        self._background = background
        self.base_offsets = [segment.base_offset for segment in segments]

    def __len__(self) -> int:
        return len(self._segments)

    def __iter__(self) -> Iterator[LogSegment]:
        return iter(self._segments)

    @overload
    def __getitem__(self, number: int) -> LogSegment: ...

    @overload
    def __getitem__(self, number: slice) -> list[LogSegment]: ...

    def __getitem__(self, number: int | slice) -> LogSegment | list[LogSegment]:
        return self._segments[number]

    @property
    def active(self) -> LogSegment:
        """The last one, which accepts appends."""
        return self._segments[-1]

    @property
    def sealed(self) -> list[LogSegment]:
        """All but the active one, oldest first."""
        return self._segments[:-1]

    @property
    def size(self) -> int:
        """Bytes of messages in all segments."""
        return sum(segment.size for segment in self._segments)

    @property
    def facts(self) -> list[SegmentFacts]:
        """The segments for Retention, oldest first."""
        return [
            SegmentFacts(segment.base_offset, segment.size, segment.newest_ms)
            for segment in self._segments
        ]

    def number_of(self, offset: int) -> int:
        """The number of the segment of `offset`; 0 below the log start."""
        return max(0, bisect_right(self.base_offsets, offset) - 1)

    def segment_of(self, offset: int) -> LogSegment:
        """The segment of `offset`; the first one below the log start."""
        return self._segments[self.number_of(offset)]

    def locate(self, offset: int) -> tuple[LogSegment, int | None]:
        """The segment and position of the first entry at or above `offset`, which is not below the
        log start; the active segment and None if the rest of the log is empty."""
        for segment in self._segments[self.number_of(offset) :]:
            position = segment.position_of(offset)
            if position is not None:
                return segment, position
        return self.active, None

    def files_to_sync(self, start: int, end: int | None) -> list[Syncable]:
        """Messages and indexes of the segments from that of `start` to the last one that begins
        below `end`, or of all behind."""
        last = len(self) if end is None else bisect_left(self.base_offsets, end)
        return [
            file
            for segment in self._segments[self.number_of(start) : last]
            for file in (segment.file, *(index.opened() for index in segment.written_indexes))
        ]

    def append(self, segment: LogSegment) -> None:
        """Add a new active segment."""
        self._segments.append(segment)
        self.base_offsets.append(segment.base_offset)

    def number_of_adjacent(self, segments: Sequence[LogSegment]) -> int:
        """The number of the first of `segments`, which must be adjacent and sealed."""
        start = self._segments.index(segments[0])
        end = start + len(segments)
        assert self._segments[start:end] == list(segments), (
            f"{self._name}: {segments} are not adjacent"
        )
        assert end < len(self), f"{self._name}: the active segment cannot be replaced"
        return start

    def insert(self, number: int, segment: LogSegment) -> None:
        """Put a segment in the place of deleted ones."""
        self._segments.insert(number, segment)
        self.base_offsets.insert(number, segment.base_offset)

    def delete(self, start: int, end: int, delay_ms: int, crash: CrashPoint) -> None:
        """Take the segments [start:end] out of the log and rename their files; delete them after
        the delay. Their readers can continue.

        A tail is deleted from its end and a head from its start, so that a crash leaves no gap.
        0.8.2.2 truncates from the start of the tail."""
        segments = self._segments[start:end]
        if end == len(self):
            segments.reverse()
        for count, segment in enumerate(segments):
            logger.info(
                "Scheduling log segment %d for log %s for deletion.",
                segment.base_offset,
                self._name,
            )
            # The first segment may be refused, with nothing changed.
            with no_way_back() if count else nullcontext():
                segment.mark_deleted(crash)
            segment.file.close_by(self._background.close_soon)
            self._background.run_later(delay_ms, segment.remove_files)
        del self._segments[start:end]
        del self.base_offsets[start:end]

    def remove_all(self, *, with_files: bool) -> None:
        """Give up every segment of a deleted log; remove their files from the end on, so that a
        crash leaves messages without a gap."""
        for segment in self._segments:
            segment.forget()
            segment.file.close_by(self._background.close_soon)
        if with_files:
            for segment in reversed(self._segments):
                segment.remove_files()
