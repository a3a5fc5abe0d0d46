"""Appends a Produce request: reads, validates, numbers and writes its sets, and encodes the
response, in one call (twin)."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import chain, zip_longest
from struct import Struct
from typing import Any, Final

from kafka08.kernel._python_requests import find_sets, write_fetched, write_produced
from kafka08.kernel._python_sets import (
    SetSummary,
    append_entry,
    build_set,
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
    NOT_AT_THE_END,
    TIMESTAMP_BYTES,
    UNKNOWN_LOG_END,
    Buffer,
    EntryTooLarge,
    Messages,
    Rules,
)

INT_MAX: Final = (1 << 31) - 1
INDEX_ENTRY: Final = Struct(">II")
LARGE_BYTES = 256 << 10
"""Larger sets are left to the caller, which lets other greenlets run meanwhile."""


class IndexTail:
    """The end of an offset index: entries of a relative offset and a position, both u32. Its owner
    sets every field before the first append.

    base_offset   offsets in the entries are relative to it
    entries       the number of used ones
    capacity      the number of entries with room; 0: none is added
    allocated     bytes from its start that may be written without a look at the disk's space
    last_offset, last_position       of the last entry; (base_offset, 0) if there is none
    view          the mapped file, writable; None: none is added
    """

    base_offset: int
    entries: int
    capacity: int
    allocated: int
    last_offset: int
    last_position: int
    view: memoryview | None

    __slots__ = tuple(__annotations__)


class SegmentTail:
    """The end of a log's active segment. Its owner sets every field before the first append.

    base_offset              of the segment: offsets in its index are relative to it
    size                     bytes of messages in the segment
    end_offset               the next offset to be written
    tail_offset, tail_position       the start of the last set
    bytes_since_index        bytes since the last set with an index entry, including that set
    max_timestamp_ms, max_timestamp_offset      the largest timestamp, and its message's offset
    index_is_due             the last set needs an index entry: the owner adds one at once
    index_tail               gets these entries as long as it has allocated room; None: the owner
                             adds each one

    The limits of `append_produced`:

    takes_plain_sets         False: it appends nothing
    is_full                  True: it appends nothing, because an index has no room
    segment_bytes, age_max_ms        the segment's largest size, and its largest age since
                             `first_ms`, a timestamp, or if that is negative since `created_ms`;
                             beyond these a new segment begins
    max_entry_bytes          the largest message that a producer may send, with its offset and size
    rules                    the topic's rules for messages; None: magic 0, by the rules of 0.8
    index_interval_bytes     an index entry is due once more bytes than this follow the last one
    min_in_sync              in-sync replicas that acks -1 needs; -1: LeaderState.reached_in_sync
    read                     (size, position) -> bytes: fewer at the end of the file; or OSError
    write                    (data, position): writes all of it, or raises OSError
    descriptor               the open file of both, which the native kernel uses directly; -1: there
                             is none
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
    read: Callable[[int, int], bytes]
    write: Callable[[Buffer, int], object]
    descriptor: int
    min_in_sync: int
    index_tail: IndexTail | None

    __slots__ = tuple(__annotations__)


class LeaderState:
    """The part of a leader's state that an append or a follower's fetch reads and changes. The
    owner sets every field before use.

    topic_partition          its name
    log                      None, or an object with a SegmentTail as `active_segment`, and its
                             first offset as `log_start_offset`
    followers                broker id → FollowerReplica
    isr                      ids of the in-sync replicas
    reached_in_sync          in-sync replicas that acks -1 needs, if the topic does not say how many
    maximal_isr              ids of the replicas that limit the HW
    is_leader                False: nothing is appended
    is_internal              True: Produce requests append nothing
    is_queued                True: others wait to be appended, so nothing else is
    high_watermark           consumers may read the messages below it. 0 <= HW <= LEO. Only
                             `maybe_raise_high_watermark` (as the leader: all in-sync replicas have
                             everything below it) and `set_high_watermark` change it
    high_watermark_max       it does not rise above this: an fsync is under way from here on
    messages_in, bytes_in    counts of all appends, in the bytes of the producers
    bytes_out                count of all reads by consumers
    produce_requests         count of the sets of Produce requests that were appended
    fetch_requests           count of the responses to Fetch requests
    """

    topic_partition: Any
    log: Any
    followers: dict[int, FollowerReplica]
    isr: tuple[int, ...]
    reached_in_sync: int
    maximal_isr: tuple[int, ...]
    is_leader: bool
    is_internal: bool
    is_queued: bool
    high_watermark: int
    high_watermark_max: int
    messages_in: int
    bytes_in: int
    bytes_out: int
    produce_requests: int
    fetch_requests: int

    __slots__ = tuple(__annotations__)

    def has_enough_in_sync(self) -> bool:
        """Whether the ISR is large enough for an append with acks -1. It must have a log."""
        least: int = self.log.active_segment.min_in_sync
        return len(self.isr) >= (least if least >= 0 else self.reached_in_sync)

    def maybe_raise_high_watermark(self) -> bool:
        """HW := the smallest LEO of the maximal ISR, this broker's included, if that is higher. Not
        above messages whose fsync, by flush.messages, is under way. Called after a follower's fetch
        above the HW, and after an append to a log whose HW was at its end."""
        log_end_offset: int = self.log.active_segment.end_offset
        lowest = min(log_end_offset, self.high_watermark_max)
        if len(self.maximal_isr) > 1:
            for broker_id in self.maximal_isr:
                follower = self.followers.get(broker_id)  # None for this broker
                if follower is not None:
                    lowest = min(lowest, follower.log_end_offset)
        if lowest <= self.high_watermark:
            return False
        self.high_watermark = lowest
        return True

    def set_high_watermark(self, wanted: int) -> None:
        """HW := `wanted`, but not above the log end, so it may fall: to what a follower's leader
        says, to a checkpoint, or to the end of a truncated log."""
        self.high_watermark = min(self.log.active_segment.end_offset, wanted)

    def record_follower_fetch(self, broker_id: int, offset: int, now: float) -> bool:
        """A follower, one of `followers`, fetched at `offset`, so it has everything before. True if
        the HW rose. Source: kafka.cluster.Replica.updateLogReadResult 0.10.2.2."""
        follower = self.followers[broker_id]
        log_end_offset = offset if self.log is None else self.log.active_segment.end_offset
        if offset >= log_end_offset:
            follower.last_caught_up = now
        elif follower.leader_log_end != UNKNOWN_LOG_END and offset >= follower.leader_log_end:
            follower.last_caught_up = follower.last_fetch
        follower.leader_log_end = log_end_offset
        follower.log_end_offset = offset
        follower.last_fetch = now
        if offset <= self.high_watermark or not self.is_leader:
            return False
        return self.maybe_raise_high_watermark()


class FollowerReplica:
    """A leader's view of a replica on another broker.

    last_fetch       monotonic time of its last fetch, in seconds, even without progress; at first,
                     of the LeaderAndIsr that announced it
    log_end_offset   the offset of that fetch: it has everything before; UNKNOWN_LOG_END at first.
                     UNKNOWN_LOG_END <= log_end_offset; falls if the follower truncates, or
                     compares its log again
    last_caught_up   monotonic time at which it last had everything that this broker had; at first,
                     that of last_fetch. last_caught_up <= last_fetch
    leader_log_end   this broker's LEO at that fetch
    """

    __slots__ = ("broker_id", "last_caught_up", "last_fetch", "leader_log_end", "log_end_offset")

    def __init__(self, broker_id: int, now: float) -> None:
        self.broker_id = broker_id
        self.last_fetch = self.last_caught_up = now
        self.log_end_offset = self.leader_log_end = UNKNOWN_LOG_END


def record_fetches(
    partitions: list[Any], offsets: list[int], broker_id: int, now: float
) -> tuple[list[Any], list[Any], list[Any]]:
    """Record the fetch of a follower of all these LeaderStates. Returns the names of those at which
    its offset is new, the names of those whose HW rose, and those whose ISR it is not in."""
    moved: list[Any] = []
    raised: list[Any] = []
    outside: list[Any] = []
    for partition, offset in zip(partitions, offsets, strict=True):
        if partition.followers[broker_id].log_end_offset != offset:
            moved.append(partition.topic_partition)
        if partition.record_follower_fetch(broker_id, offset, now):
            raised.append(partition.topic_partition)
        if broker_id not in partition.isr:
            outside.append(partition)
    return moved, raised, outside


Unappended = tuple[int, memoryview]
"""A set that was not appended: its index in the request, and its bytes there."""
Produced = tuple[
    int,
    int,
    list[LeaderState],
    list[int],
    list[Unappended],
    list[SegmentTail],
    bytes | None,
    dict[Any, int],
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
    with acks -1, if all sets were appended: the name → LEO of each partition whose HW is below it

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
    pending = {
        partition.topic_partition: end_offset
        for partition in (found if response is not None and acks < 0 else ())
        if partition.high_watermark < (end_offset := partition.log.active_segment.end_offset)
    }
    return acks, timeout_ms, found, base_offsets, unappended, due, response, pending


def partitions_to_read(
    partitions: list[Any], offsets: list[int], limits: list[int], is_follower: bool
) -> tuple[list[int], list[int], list[int]] | None:
    """The HWs of these LeaderStates, the indexes of those that a fetch from these offsets must
    read, and the positions at which the messages from these offsets on will begin: the log's end,
    -1 for another offset in the active segment, NOT_AT_THE_END for others and a negative limit.

    Those not to be read are at their end (the LEO for a follower, the HW for a consumer), so their
    response is empty. An offset or size limit (`limits`) that may be invalid is read too, so that
    the read reports the error.

    None if this broker does not lead one of the partitions.
    """
    high_watermarks: list[int] = []
    to_read: list[int] = []
    positions: list[int] = []
    for number, (partition, offset, limit) in enumerate(
        zip(partitions, offsets, limits, strict=True)
    ):
        log = partition.log
        if not partition.is_leader or log is None:
            return None
        log_end_offset = log.active_segment.end_offset
        end_offset = log_end_offset if is_follower else partition.high_watermark
        high_watermarks.append(partition.high_watermark)
        if limit < 0 or not log.active_segment.base_offset <= offset <= log_end_offset:
            positions.append(NOT_AT_THE_END)
        else:
            positions.append(log.active_segment.size if offset == log_end_offset else -1)
        if (
            offset != end_offset
            or limit < 0
            or (end_offset != log_end_offset and offset < log.log_start_offset)
        ):
            to_read.append(number)
    return high_watermarks, to_read, positions


def has_news(partitions: list[Any], offsets: list[int]) -> bool:
    """Whether a follower that has these partitions up to these offsets must hear of one of them: it
    is longer, or shorter, or no more led by this broker."""
    return any(
        not partition.is_leader
        or partition.log is None
        or partition.log.active_segment.end_offset != offset
        for partition, offset in zip(partitions, offsets, strict=True)
    )


def respond_to_follower(
    payload: memoryview,
    partitions: list[Any],
    offsets: list[int],
    limits: list[int],
    positions: list[int],
    bytes_max: int,
    high_watermarks: list[int] | None = None,
) -> bytes | None:
    """The encoded response to a follower's Fetch request that `read_fetch` has read, with copies of
    its sets, which counts the request. `positions` as `partitions_to_read` returned them for these
    offsets before the sets were appended, or since; `high_watermarks` are the present ones unless
    given.

    None, if that is not the rule: this broker does not lead one of the partitions; its messages
    from the fetch offset on begin in an earlier segment, at a position that is not known without
    reading, or in a file without a descriptor; a size limit cuts them; all are more than
    `bytes_max`; or they cannot be read.
    """
    marks: list[int] = []
    sizes: list[int] = []
    sets: list[bytes] = []
    for partition, offset, limit, noted in zip(partitions, offsets, limits, positions, strict=True):
        if not partition.is_leader or partition.log is None or limit < 0:
            return None
        tail: SegmentTail = partition.log.active_segment
        position: int | None = tail.size
        if offset != tail.end_offset:
            position = _position_of(tail, offset, noted)
        if position is None:
            return None
        size = tail.size - position
        marks.append(partition.high_watermark)
        sizes.append(size)
        if (size and size >= limit) or sum(sizes) > bytes_max:
            return None
        if size:
            try:
                sets.append(os.pread(tail.descriptor, size, position))
            except OSError:
                return None
            if len(sets[-1]) != size:
                return None
    try:
        headers = write_fetched(payload, high_watermarks or marks, sizes, partitions, True)
    except OverflowError:
        return None
    return b"".join(chain.from_iterable(zip_longest(headers, sets, fillvalue=b"")))


def _position_of(tail: SegmentTail, offset: int, position: int) -> int | None:
    """Where the messages from `offset` on begin in the active segment; None if that is unknown."""
    if not tail.base_offset <= offset <= tail.end_offset or tail.descriptor < 0:
        return None
    if offset == tail.base_offset:
        position = 0
    elif offset == tail.tail_offset:
        position = tail.tail_position
    elif position < 0:
        position = _indexed_position(tail, offset)
    return position if 0 <= position < tail.size else None


def _indexed_position(tail: SegmentTail, offset: int) -> int:
    """The position of this very offset in the index; -1 if it has no entry."""
    index = tail.index_tail
    if index is None or index.view is None:
        return -1
    used = index.view[: index.entries * INDEX_ENTRY.size]
    found = dict[int, int](INDEX_ENTRY.iter_unpack(used))
    position: int = found.get(offset - tail.base_offset, -1)
    return position


def append_records(partition: LeaderState, records: Messages, acks: int, now_ms: int) -> int:
    """Append keys and values as one plain set, also to an internal partition, by the rules of
    `append_produced`; their timestamp is `now_ms` if the topic has magic 1. Returns the offset of
    the first, or -1 if nothing was appended. The caller adds an index entry if the segment needs
    one."""
    if partition.log is None:
        return -1
    rules = partition.log.active_segment.rules
    magic = 0 if rules is None else rules.magic
    timestamps = [now_ms] * len(records) if magic else None
    return append_set(
        partition, build_set(records, magic=magic, timestamps=timestamps), acks, now_ms
    )


def append_set(partition: LeaderState, data: Buffer, acks: int, now_ms: int) -> int:
    """Append one writable set as `append_produced` does, also to an internal partition. Returns the
    offset of its first message, or -1 if it was not appended."""
    if (
        not partition.is_leader
        or partition.is_queued
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
        # With others in the ISR, a HW below this set waits for them, not for this append.
        if len(partition.maximal_isr) <= 1 or partition.high_watermark >= base_offset:
            partition.maybe_raise_high_watermark()
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
        tail.index_is_due = not _add_index_entry(tail)
        tail.bytes_since_index = 0
    tail.bytes_since_index += size
    tail.size += size
    tail.end_offset = summary.last_offset + 1
    return True


def _add_index_entry(tail: SegmentTail) -> bool:
    """Add the entry of the last set to the index; False if this is left to the owner."""
    index = tail.index_tail
    if index is None or index.view is None:
        return False
    position = index.entries * INDEX_ENTRY.size
    relative = tail.tail_offset - tail.base_offset
    if (
        not 0 <= index.entries < index.capacity
        or position + INDEX_ENTRY.size > min(index.allocated, len(index.view))
        or tail.tail_offset <= index.last_offset
        or tail.tail_position <= index.last_position
        or not 0 < relative <= INT_MAX
        or tail.tail_position > INT_MAX
    ):
        return False
    INDEX_ENTRY.pack_into(index.view, position, relative, tail.tail_position)
    index.entries += 1
    index.last_offset, index.last_position = tail.tail_offset, tail.tail_position
    if index.entries >= index.capacity:
        tail.is_full = True
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
