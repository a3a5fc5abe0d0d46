"""Appends the sets of a Fetch response to the ends of a follower's logs, in one call (twin)."""

from __future__ import annotations

from struct import Struct
from typing import Any, Final

from kafka08.kernel._python_append import (
    INT_MAX,
    LARGE_BYTES,
    LeaderState,
    SegmentTail,
    age_of,
    write_walked,
)
from kafka08.kernel._python_requests import read_fetched
from kafka08.kernel._python_sets import validate
from kafka08.kernel.types import MAX_SET_BYTES, Buffer

OFFSET: Final = Struct(">q")


class FollowerState:
    """A partition that a replica fetcher fetches. Its owner sets every field before it is used.

    partition        the LeaderState of the replica here
    unsettled        None, or the offset from which on its log may differ from the leader's
    is_followed      False: nothing is appended
    max_bytes        fetch size
    expected_bytes   of the next response: as many as the last one had
    lag              messages below the leader's HW that were still missing after its last response
    frame_position   of its fetch offset in the frame of the request
    """

    partition: Any
    unsettled: int | None
    is_followed: bool
    max_bytes: int
    expected_bytes: int
    lag: int
    frame_position: int

    __slots__ = tuple(__annotations__)


LeftFetched = tuple[FollowerState, int, int, Buffer]
"""A set that the caller must look at: a partition, its error code, the leader's HW, and the set."""


def append_fetched(
    payload: memoryview,
    version: int,
    followed: dict[bytes, dict[int, FollowerState]],
    max_bytes: int,
    now_ms: int,
    frame: bytearray | None = None,
) -> tuple[list[LeftFetched], list[FollowerState], list[SegmentTail]] | None:
    """Append what a Fetch response has to the ends of the logs of `followed` (topic's name →
    partition's number → it), and adopt the leader's HWs, up to the log ends:

    the partitions that were left, with their results
    those to which something was appended, whose new fetch offsets are put into `frame`
    segments in which the set just appended must get an index entry

    None, with nothing appended, as for `read_fetched`.

    It leaves every exception to Python: an error, a log that may differ from the leader's, another
    fetch size than `max_bytes`, a partition that is not followed or is led here; a set for an empty
    segment or one that is to be rolled, one without a whole entry, one of 256 KB and more, and what
    is damaged, out of order, too large, or cannot be written. Then nothing has changed. `now_ms` is
    the present time.
    """
    response = read_fetched(payload, version, followed)
    if response is None:
        return None
    left: list[LeftFetched] = []
    appended: list[FollowerState] = []
    due: list[SegmentTail] = []
    for item, code, high_watermark, data in zip(*response, strict=True):
        if item.max_bytes != max_bytes or not _take(item, code, high_watermark, data, now_ms, due):
            left.append((item, code, high_watermark, data))
        elif data:
            appended.append(item)
            if frame is not None:
                OFFSET.pack_into(
                    frame, item.frame_position, item.partition.log.active_segment.end_offset
                )
    return left, appended, due


def _take(
    item: FollowerState,
    code: int,
    high_watermark: int,
    data: Buffer,
    now_ms: int,
    due: list[SegmentTail],
) -> bool:
    partition: LeaderState = item.partition
    if (
        code
        or not item.is_followed
        or item.unsettled is not None
        or partition.is_leader
        or partition.log is None
    ):
        return False
    tail: SegmentTail = partition.log.active_segment
    if data:
        if not _append(tail, data, now_ms):
            return False
        if tail.index_is_due:
            due.append(tail)
    partition.set_high_watermark(high_watermark)
    item.expected_bytes = len(data)
    item.lag = max(0, high_watermark - tail.end_offset)
    return True


def _append(tail: SegmentTail, data: Buffer, now_ms: int) -> bool:
    """Whether the whole entries of a set were appended as they are, at least one."""
    if not tail.takes_plain_sets or tail.is_full or not tail.size or len(data) >= LARGE_BYTES:
        return False
    try:
        summary = validate(data, MAX_SET_BYTES)
    except ValueError:
        return False
    return (
        summary.count > 0
        and summary.monotonic
        and summary.first_offset >= tail.end_offset
        and summary.last_offset - tail.base_offset <= INT_MAX
        and summary.size <= tail.segment_bytes - tail.size
        and age_of(tail, summary, now_ms) <= tail.age_max_ms
        and write_walked(tail, memoryview(data)[: summary.size], summary)
    )
