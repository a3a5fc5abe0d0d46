"""Plain sets to the ends of many logs: checked, numbered, written, in one call (twin)."""

from __future__ import annotations

from collections.abc import Callable

from kafka08.kernel._python_sets import validate_and_assign
from kafka08.kernel._python_validation import validate_and_stamp
from kafka08.kernel.types import (
    ATTRIBUTES_POSITION,
    CODEC_MASK,
    EMPTY_ENTRY_BYTES,
    MAGIC_POSITION,
    Buffer,
    Rules,
)

LARGE_BYTES = 256 << 10
"""Sets from this size on are left to those who let others run meanwhile."""


class SegmentTail:
    """The end of the segment that takes a log's appends. Its owner sets every field before the
    first append.

    size                     bytes of messages in the segment
    end_offset               the next offset to be written
    tail_offset, tail_position       where the last set begins
    bytes_since_index        bytes from the last set that has an index entry on, that set's included
    max_timestamp_ms, max_timestamp_offset      the largest timestamp, and where it is
    index_is_due             the last set is to get an index entry: its owner adds one at once

    What may be appended by `append_plain_sets`:

    takes_plain_sets         False: nothing
    is_full                  True: nothing, for an index has no room
    segment_bytes, age_max_ms        beyond these a new segment begins: its size, and its age since
                             `first_ms`, a timestamp, or if that is negative since `created_ms`
    max_entry_bytes          of one message, with its offset and size
    rules                    what a topic asks of messages; None: magic 0 as 0.8 takes it in
    index_interval_bytes     an index entry is due when more was appended since the last
    write                    (data, position): writes all of it, or raises OSError
    """

    size: int
    end_offset: int
    tail_offset: int
    tail_position: int
    bytes_since_index: int
    created_ms: int
    first_ms: int
    max_timestamp_ms: int
    max_timestamp_offset: int
    max_entry_bytes: int
    segment_bytes: int
    index_interval_bytes: int
    age_max_ms: int
    takes_plain_sets: bool
    is_full: bool
    index_is_due: bool
    rules: Rules | None
    write: Callable[[Buffer, int], object]

    __slots__ = tuple(__annotations__)


def append_plain_sets(
    tails: list[SegmentTail | None], sets: list[Buffer], now_ms: int
) -> list[int]:
    """Append each set to the tail beside it; the offsets that their first messages got, -1 for a
    set that is left.

    Left is whatever is not the rule: a set for no tail (None), for an empty segment or one that is
    to be rolled, a compressed one, one that ends inside an entry or has 256 KB and more, and what
    is refused or cannot be written, and under LogAppendTime every set. Its offsets may have been
    overwritten then, nothing else was. `now_ms` is the present time. The sets are writable.
    """
    if len(tails) != len(sets):
        raise ValueError("as many tails as sets")
    return [
        -1 if tail is None else _append(tail, data, now_ms)
        for tail, data in zip(tails, sets, strict=True)
    ]


def _append(tail: SegmentTail, data: Buffer, now_ms: int) -> int:
    size, base_offset = len(data), tail.end_offset
    if not (
        tail.takes_plain_sets
        and not tail.is_full
        and tail.size > 0
        and EMPTY_ENTRY_BYTES <= size < LARGE_BYTES
        and size <= tail.segment_bytes - tail.size
        and not data[ATTRIBUTES_POSITION] & CODEC_MASK
    ):
        return -1
    rules = tail.rules
    if rules is not None and (rules.log_append_time or data[MAGIC_POSITION] != rules.magic):
        return -1
    try:
        if rules is None:
            summary = validate_and_assign(data, base_offset, tail.max_entry_bytes)
        else:
            summary = validate_and_stamp(data, base_offset, tail.max_entry_bytes, rules, now_ms)
    except (ValueError, OverflowError):
        return -1
    if summary.codec or summary.size != size:
        return -1
    if rules is not None and summary.magics != 1 << rules.magic:
        return -1
    if tail.first_ms < 0:
        age_ms = now_ms - tail.created_ms
    else:
        age_ms = summary.max_timestamp_ms - tail.first_ms
    if age_ms > tail.age_max_ms:
        return -1
    try:
        tail.write(data, tail.size)
    except OSError:
        return -1
    if rules is not None and summary.max_timestamp_ms > tail.max_timestamp_ms:
        tail.max_timestamp_ms = summary.max_timestamp_ms
        tail.max_timestamp_offset = summary.max_timestamp_offset
    tail.tail_offset = base_offset
    tail.tail_position = tail.size
    if tail.bytes_since_index > tail.index_interval_bytes:
        tail.index_is_due = True
        tail.bytes_since_index = 0
    tail.bytes_since_index += size
    tail.size += size
    tail.end_offset = summary.last_offset + 1
    return base_offset
