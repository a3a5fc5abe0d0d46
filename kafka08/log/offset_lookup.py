"""Offsets by time: by segments' modification times, and by message timestamps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from kafka08.errors import UnknownError
from kafka08.log.segment import LogSegment
from kafka08.log.time_index import TimestampOffset
from kafka08.log.time_search import TimeSearch
from kafka08.structs import EARLIEST_OFFSET, LATEST_OFFSET


def offsets_before(
    segments: Sequence[LogSegment],
    log_start_offset: int,
    log_end_offset: int,
    now_ms: int,
    time_ms: int,
    max_offsets: int,
) -> list[int]:
    """Up to `max_offsets` base offsets of segments (or the log end), descending, from the latest
    one that was last written at or before `time_ms`; the log start for each that begins below it.

    LATEST_OFFSET starts with the log end, EARLIEST_OFFSET with the log start. Empty if everything
    is newer. A segment's time is the modification time of its file. UnknownError for a negative
    number of offsets. Source: kafka.server.KafkaApis.fetchOffsetsBefore 0.8.2.2.
    """
    if max_offsets < 0:
        raise UnknownError(f"negative number of offsets: {max_offsets}")
    has_end = segments[-1].size > 0
    if time_ms == LATEST_OFFSET:
        count = len(segments) + has_end
    elif time_ms == EARLIEST_OFFSET:
        count = 1
    elif has_end and now_ms <= time_ms:
        count = len(segments) + 1
    else:
        count = _written_before(segments, time_ms)
    bases = (max(segment.base_offset, log_start_offset) for segment in segments)
    starts = [*bases, log_end_offset][:count]
    return starts[::-1][:max_offsets]


def _written_before(segments: Sequence[LogSegment], time_ms: int) -> int:
    for number in range(len(segments), 0, -1):
        if segments[number - 1].last_modified_ms <= time_ms:
            return number
    return 0


def offset_at_time(
    segments: Iterable[LogSegment],
    log_start_offset: int,
    time_ms: int,
    run: Callable[[TimeSearch], TimestampOffset | None],
) -> TimestampOffset | None:
    """The first message from the log start on with a timestamp of `time_ms` or later, and its
    timestamp; None if there is none. `run` returns the result of a search; it may switch, and
    `segments` may change meanwhile.

    0.10.2.2 searches one segment alone: one without timestamps that was written after `time_ms`
    hides all later ones. Here the search continues. Source: kafka.log.Log.
    fetchOffsetsByTimestamp 0.10.2.2.
    """
    after = -1
    while search := _next_search(segments, log_start_offset, time_ms, after):
        found = run(search)
        if found is not None:
            return found
        after = search.base_offset
    return None


def _next_search(
    segments: Iterable[LogSegment], log_start_offset: int, time_ms: int, after: int
) -> TimeSearch | None:
    """The search in the first segment above the base offset `after` that has so late a message."""
    for segment in segments:
        if segment.base_offset > after:
            search = segment.time_search(time_ms, log_start_offset)
            if search is not None:
                return search
    return None
