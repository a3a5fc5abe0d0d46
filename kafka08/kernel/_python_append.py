"""Appends a Produce request: reads, validates, numbers and writes its sets, and encodes the
response, in one call (twin)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kafka08.kernel._python_requests import find_sets, write_produced
from kafka08.kernel._python_sets import (
    SetSummary,
    append_entry,
    check_crc,
    codec_of,
    fields,
    validate,
    validate_and_assign,
    walk,
)
from kafka08.kernel._python_validation import check_key, validate_and_stamp
from kafka08.kernel.types import (
    ANY_DIFFERENCE_MS,
    ATTRIBUTES_POSITION,
    CODEC_MASK,
    EMPTY_ENTRY_BYTES,
    MAGIC_POSITION,
    NO_TIMESTAMP,
    TIMESTAMP_BYTES,
    Buffer,
    EntryTooLarge,
    Rules,
)

LARGE_BYTES = 256 << 10
"""Larger sets are left to the caller, which lets other greenlets run meanwhile."""


class SegmentTail:
    """The end of a log's active segment. Its owner sets every field before the first append.

    base_offset              of the segment: offsets in its index are relative to it
    size                     bytes of messages in the segment
    end_offset               the next offset to be written
    tail_offset, tail_position       the start of the last set
    bytes_since_index        bytes since the last set with an index entry, including that set
    max_timestamp_ms, max_timestamp_offset      the largest timestamp, and its message's offset
    index_is_due             the last set needs an index entry: the owner adds one at once

    The limits of `append_produced`:

    takes_plain_sets         False: it appends nothing
    is_full                  True: it appends nothing, because an index has no room
    segment_bytes, age_max_ms        the segment's largest size, and its largest age since
                             `first_ms`, a timestamp, or if that is negative since `created_ms`;
                             beyond these a new segment begins
    max_entry_bytes          the largest message, with its offset and size
    rules                    the topic's rules for messages; None: magic 0, by the rules of 0.8
    index_interval_bytes     an index entry is due once more bytes than this follow the last one
    write                    (data, position): writes all of it, or raises OSError
    descriptor               the open file of `write`, to which the native kernel writes directly;
                             -1: there is none
    """

    base_offset: int
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
    descriptor: int

    __slots__ = tuple(__annotations__)


class LeaderState:
    """The part of a leader's state that an append reads and changes. The owner sets every field
    before use, and implements two methods:

    has_enough_in_sync()             whether an append with acks -1 is allowed
    maybe_raise_high_watermark()     called after an append to a log whose HW was at its end, if the
                                     ISR has other members; a lower one waits for one of them

    log                      None, or an object with a SegmentTail as `active_segment`, and its
                             first offset as `log_start_offset`
    append_queue             None: appends go to the log at once
    maximal_isr              ids of the replicas that limit the HW
    is_leader                False: nothing is appended
    is_internal              True: Produce requests append nothing
    high_watermark           consumers may read the messages below it
    messages_in, bytes_in    counts of all appends, in the bytes of the producers
    bytes_out                count of all reads by consumers
    produce_requests         count of the sets of Produce requests that were appended
    fetch_requests           count of the responses to Fetch requests
    """

    log: Any
    append_queue: Any
    maximal_isr: Sequence[int]
    is_leader: bool
    is_internal: bool
    high_watermark: int
    messages_in: int
    bytes_in: int
    bytes_out: int
    produce_requests: int
    fetch_requests: int

    __slots__ = tuple(__annotations__)

    def has_enough_in_sync(self) -> bool:
        raise NotImplementedError

    def maybe_raise_high_watermark(self) -> bool:
        raise NotImplementedError


Unappended = tuple[int, memoryview]
"""A set that was not appended: its index in the request, and its bytes there."""
Produced = tuple[
    int, int, list[LeaderState], list[int], list[Unappended], list[SegmentTail], bytes | None
]


def append_produced(
    payload: memoryview,
    partitions: dict[bytes, dict[int, Any]],
    now_ms: int,
    count_max: int,
) -> Produced | None:
    """Append the sets of a Produce request to the ends of their logs. `payload` must be writable.
    Returns a tuple:

    acks, timeout in ms
    the LeaderState of each set, from `partitions` (topic name → partition number → LeaderState)
    the offset of each set's first message, -1 if the set was not appended
    the sets that were not appended
    the segments in which the appended set needs an index entry
    the encoded response; None unless all sets were appended

    None, with nothing appended, for an invalid layout, acks other than -1, 0 and 1, more than
    `count_max` sets, no partition, or one that is unknown or repeated.

    The caller appends the remaining sets: those for a partition that accepts no append now, for an
    empty segment or one that must roll; compressed sets, sets of 256 KB and more, and sets that end
    inside an entry; invalid sets, failed writes, and all sets under LogAppendTime. Of these only
    the offsets may have been overwritten. `now_ms` is the current time.

    A set of magic 0 for a topic of magic 1 that accepts any timestamp is converted as by `convert`,
    which does not change the bytes of the request.
    """
    request = find_sets(payload, partitions)
    if request is None:
        return None
    acks, timeout_ms, found, sets = request
    if not -1 <= acks <= 1 or len(found) > count_max:
        return None
    base_offsets: list[int] = []
    unappended: list[Unappended] = []
    due: list[SegmentTail] = []
    for number, (partition, data) in enumerate(zip(found, sets, strict=True)):
        base_offset = -1 if partition.is_internal else append_set(partition, data, acks, now_ms)
        base_offsets.append(base_offset)
        if base_offset < 0:
            unappended.append((number, data))
        elif partition.log.active_segment.index_is_due:
            due.append(partition.log.active_segment)
    times_ms = [NO_TIMESTAMP] * len(found)
    response = None if unappended else write_produced(payload, base_offsets, times_ms)
    return acks, timeout_ms, found, base_offsets, unappended, due, response


def partitions_to_read(
    partitions: list[Any], offsets: list[int], limits: list[int], is_follower: bool
) -> tuple[list[int], list[int]] | None:
    """The HWs of these LeaderStates, and the indexes of those that a fetch from these offsets must
    read. The others are at their end (the LEO for a follower, the HW for a consumer), so their
    response is empty. An offset or size limit (`limits`) that may be invalid is read too, so that
    the read reports the error.

    None if this broker does not lead one of the partitions.
    """
    high_watermarks: list[int] = []
    to_read: list[int] = []
    for number, (partition, offset, limit) in enumerate(
        zip(partitions, offsets, limits, strict=True)
    ):
        log = partition.log
        if not partition.is_leader or log is None:
            return None
        log_end_offset = log.active_segment.end_offset
        end_offset = log_end_offset if is_follower else partition.high_watermark
        high_watermarks.append(partition.high_watermark)
        if (
            offset != end_offset
            or limit < 0
            or (end_offset != log_end_offset and offset < log.log_start_offset)
        ):
            to_read.append(number)
    return high_watermarks, to_read


def append_set(partition: LeaderState, data: Buffer, acks: int, now_ms: int) -> int:
    """Append one writable set as `append_produced` does, also to an internal partition. Returns the
    offset of its first message, or -1 if it was not appended. The caller adds an index entry if the
    segment needs one."""
    if (
        not partition.is_leader
        or partition.append_queue is not None
        or partition.log is None
        or (acks < 0 and not partition.has_enough_in_sync())
    ):
        return -1
    tail: SegmentTail = partition.log.active_segment
    base_offset = _append(tail, data, now_ms)
    if base_offset >= 0:
        partition.messages_in += tail.end_offset - base_offset
        partition.bytes_in += len(data)
        partition.produce_requests += 1
        if len(partition.maximal_isr) > 1:
            if partition.high_watermark >= base_offset:
                partition.maybe_raise_high_watermark()
        elif tail.end_offset > partition.high_watermark:
            partition.high_watermark = tail.end_offset
    return base_offset


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
    try:
        if rules is None:
            summary = validate_and_assign(data, base_offset, tail.max_entry_bytes)
        elif rules.log_append_time:
            return -1
        elif data[MAGIC_POSITION] == rules.magic:
            summary = validate_and_stamp(data, base_offset, tail.max_entry_bytes, rules, now_ms)
        elif rules.magic and rules.max_difference_ms == ANY_DIFFERENCE_MS:
            data = _raise_magic(data, base_offset, tail.max_entry_bytes, rules)
            summary, size = validate(data, tail.max_entry_bytes), len(data)
        else:
            return -1
    except (ValueError, OverflowError):
        return -1
    if summary.codec or summary.size != size or size > tail.segment_bytes - tail.size:
        return -1
    if rules is not None and summary.magics != 1 << rules.magic:
        return -1
    if age_of(tail, summary, now_ms) > tail.age_max_ms or not write_walked(tail, data, summary):
        return -1
    return base_offset


def age_of(tail: SegmentTail, summary: SetSummary, now_ms: int) -> int:
    """The segment's age in ms with this set: between timestamps, or if the first message has none
    between clock times."""
    if tail.first_ms < 0:
        return now_ms - tail.created_ms
    return summary.max_timestamp_ms - tail.first_ms


def write_walked(tail: SegmentTail, data: Buffer, summary: SetSummary) -> bool:
    """Write a set, which `summary` describes; the tail then ends behind it. False if it cannot be
    written: the tail is as it was."""
    size = summary.size
    try:
        tail.write(data, tail.size)
    except OSError:
        return False
    if tail.rules is not None and summary.max_timestamp_ms > tail.max_timestamp_ms:
        tail.max_timestamp_ms = summary.max_timestamp_ms
        tail.max_timestamp_offset = summary.max_timestamp_offset
    tail.tail_offset = tail.end_offset
    tail.tail_position = tail.size
    if tail.bytes_since_index > tail.index_interval_bytes:
        tail.index_is_due = True
        tail.bytes_since_index = 0
    tail.bytes_since_index += size
    tail.size += size
    tail.end_offset = summary.last_offset + 1
    return True


def _raise_magic(data: Buffer, base_offset: int, max_entry_bytes: int, rules: Rules) -> bytearray:
    """A plain set of magic 0 as one of the topic's magic, numbered. ValueError for any other set,
    and where a leader would find anything to refuse."""
    view = memoryview(data)
    built = bytearray()
    end = 0
    for count, (position, offset, size) in enumerate(walk(view)):
        if size + TIMESTAMP_BYTES > max_entry_bytes:
            raise EntryTooLarge(position, size, max_entry_bytes)
        if view[position + MAGIC_POSITION] or codec_of(view, position):
            raise ValueError("not a plain message of magic 0")
        check_crc(view, position, offset, size)
        check_key(view, position, offset, size, rules)
        _, key, value = fields(view, position, offset, size)
        append_entry(built, base_offset + count, 0, key, value, rules.magic)
        end = position + size
    if end != len(view):
        raise ValueError("a partial message at the end")
    return built
