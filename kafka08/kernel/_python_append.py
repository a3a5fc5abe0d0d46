"""Appends sets to the ends of segments, and copies them from there into responses (twin)."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import chain, zip_longest
from struct import Struct
from typing import Final

from kafka08.format import Batch, batches
from kafka08.format import codec_of as codec_of_set
from kafka08.format.batch import NO_PRODUCER
from kafka08.format.v2 import V2, place
from kafka08.kernel._python_requests import write_fetched
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
from kafka08.kernel._python_validation import check_key, number_batch, validate_and_stamp
from kafka08.kernel.types import (
    ANY_DIFFERENCE_MS,
    EMPTY_ENTRY_BYTES,
    MAGIC_POSITION,
    MAX_SET_BYTES,
    RECORDS_MAGIC,
    TIMESTAMP_BYTES,
    BatchesOfProducers,
    Buffer,
    EntryTooLarge,
    Rules,
)

RECORDS: Final = V2()
INT_MAX: Final = (1 << 31) - 1
INDEX_ENTRY: Final = Struct(">II")
TIME_ENTRY: Final = Struct(">qI")
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

    Entries of a time index have a timestamp, i64, and a relative offset, u32; `last_ms` is the last
    timestamp, -1 if there is none.
    """

    base_offset: int
    entries: int
    capacity: int
    allocated: int
    last_offset: int
    last_position: int
    last_ms: int
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
    time_tail                gets the largest timestamp with each of these entries; None: no time
                             index
    records                  knows the producers of record batches

    The limits of `append_plain`:

    takes_plain_sets         False: it appends nothing
    is_full                  True: it appends nothing, because an index has no room
    segment_bytes, age_max_ms        the segment's largest size, and its largest age since
                             `first_ms`, a timestamp, or if that is negative since `created_ms`;
                             beyond these a new segment begins
    max_entry_bytes          the largest message that a producer may send, with its offset and size
    rules                    the topic's rules for messages; None: magic 0, by the rules of 0.8
    index_interval_bytes     an index entry is due once more bytes than this follow the last one
    min_in_sync              in-sync replicas that acks -1 needs; negative: the topic does not say
    read                     (size, position) -> bytes: fewer at the end of the file; or OSError
    write                    (data, position): writes all of it, or raises OSError
    descriptor               the open file of both, which the native kernel uses directly; -1: there
                             is none
    noted_epoch              the leader epoch whose batches are noted already; -1: none
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
    time_tail: IndexTail | None
    noted_epoch: int
    records: BatchesOfProducers | None

    __slots__ = tuple(__annotations__)


def append_plain(
    payload: Buffer,
    tails: list[SegmentTail | None],
    starts: list[int],
    sizes: list[int],
    now_ms: int,
    leader_epochs: list[int] | None = None,
) -> list[int]:
    """Append plain sets, the bytes of `payload` at `starts`, to the ends of segments: check, number
    in place, one write each. Returns the offset of each set's first message, -1 if it was not
    appended. `payload` must be writable, and a segment occurs once. `now_ms` is the current time.

    It leaves to the caller, besides what has no tail: sets for an empty segment or one that must
    roll; compressed sets, sets of 256 KB and more, and sets that end inside an entry; invalid sets,
    failed writes, and all sets under LogAppendTime. Of these only the offsets may have been
    overwritten, and those of a record batch have not.

    A set for a topic of magic 2 is one record batch, which gets the leader epoch of its tail in
    `leader_epochs`. The first batch of an epoch is left, and of a producer all but its next one.

    A set of magic 0 for a topic of magic 1 that accepts any timestamp is converted as by `convert`,
    which does not change its bytes in `payload`.
    """
    if not len(tails) == len(starts) == len(sizes):
        raise ValueError("as many starts and sizes as tails")
    view = memoryview(payload)
    base_offsets: list[int] = []
    epochs = [-1] * len(tails) if leader_epochs is None else leader_epochs
    if len(epochs) != len(tails):
        raise ValueError("as many leader epochs as tails")
    for tail, start, size, epoch in zip(tails, starts, sizes, epochs, strict=True):
        if start < 0 or not 0 <= size <= len(view) - start:
            raise IndexError("a set outside of the payload")
        data = view[start : start + size]
        base_offsets.append(-1 if tail is None else _append(tail, data, now_ms, epoch))
    return base_offsets


def append_copies(tails: list[SegmentTail | None], sets: list[Buffer], now_ms: int) -> list[bool]:
    """Append sets of a leader to the ends of segments, with their offsets. Returns which were: an
    empty set is, one without a tail is not.

    It leaves a set for an empty segment or one that is to be rolled, one without a whole entry, one
    of 256 KB and more, and what is damaged, out of order, too large, or cannot be written; of
    record batches the first one of an epoch, and one that ends a transaction. Then nothing has
    changed. `now_ms` is the present time.
    """
    return [
        tail is not None and (not data or _append_copy(tail, data, now_ms))
        for tail, data in zip(tails, sets, strict=True)
    ]


def copy_fetched(
    payload: memoryview,
    tails: list[SegmentTail],
    offsets: list[int],
    limits: list[int],
    positions: list[int],
    bytes_max: int,
    high_watermarks: list[int],
    log_starts: list[int] | None = None,
) -> bytes | None:
    """The encoded response to a Fetch request that `read_fetch` has read, with copies of the sets
    from these offsets to the segments' ends. `positions`: where the messages from these offsets on
    begin; negative if that is not known. `log_starts` as for `write_fetched`.

    None, if that is not the rule: the messages from the fetch offset on begin in an earlier
    segment, at a position that is not known without reading, or in a file without a descriptor; a
    size limit cuts them; all are more than `bytes_max`; or they cannot be read.
    """
    sizes: list[int] = []
    sets: list[bytes] = []
    for tail, offset, limit, noted in zip(tails, offsets, limits, positions, strict=True):
        position: int | None = tail.size
        if offset != tail.end_offset:
            position = _position_of(tail, offset, noted)
        if position is None:
            return None
        size = tail.size - position
        sizes.append(size)
        if limit < 0 or (size and size >= limit) or sum(sizes) > bytes_max:
            return None
        if size:
            try:
                sets.append(os.pread(tail.descriptor, size, position))
            except OSError:
                return None
            if len(sets[-1]) != size:
                return None
    try:
        headers = write_fetched(payload, high_watermarks, sizes, log_starts)
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


def _append(tail: SegmentTail, data: memoryview, now_ms: int, leader_epoch: int) -> int:
    size, base_offset = len(data), tail.end_offset
    if not (
        tail.takes_plain_sets
        and not tail.is_full
        and tail.size > 0
        and EMPTY_ENTRY_BYTES <= size < LARGE_BYTES
        and size <= tail.segment_bytes - tail.size
        and not codec_of_set(data)
    ):
        return -1
    rules = tail.rules
    if rules is not None and rules.magic == RECORDS_MAGIC:
        return _append_batch(tail, data, now_ms, leader_epoch, rules)
    source: Buffer = data
    try:
        if rules is None:
            summary = validate_and_assign(data, base_offset, tail.max_entry_bytes)
        elif rules.log_append_time:
            return -1
        elif data[MAGIC_POSITION] == rules.magic:
            summary = validate_and_stamp(data, base_offset, tail.max_entry_bytes, rules, now_ms)
        elif rules.magic and rules.max_difference_ms == ANY_DIFFERENCE_MS:
            source = _raise_magic(data, base_offset, tail.max_entry_bytes, rules)
            summary, size = validate(source, tail.max_entry_bytes), len(source)
        else:
            return -1
    except (ValueError, OverflowError):
        return -1
    if summary.codec or summary.size != size or size > tail.segment_bytes - tail.size:
        return -1
    if rules is not None and summary.magics != 1 << rules.magic:
        return -1
    if _age_of(tail, summary, now_ms) > tail.age_max_ms or not _write_walked(tail, source, summary):
        return -1
    return base_offset


def _append_batch(
    tail: SegmentTail, data: memoryview, now_ms: int, leader_epoch: int, rules: Rules
) -> int:
    """The same for a set that must be one record batch. One that is left has its offset again."""
    if rules.log_append_time or leader_epoch < 0 or tail.noted_epoch != leader_epoch:
        return -1
    limit = tail.max_entry_bytes
    summary = number_batch(data, tail.end_offset, limit, rules, now_ms, leader_epoch)
    if summary is None:
        return -1
    head = RECORDS.batch(data, 0)
    fits = summary.last_offset - tail.base_offset <= INT_MAX
    if fits and _age_of(tail, summary, now_ms) <= tail.age_max_ms:
        records = None if head.producer_id == NO_PRODUCER else tail.records
        batch = None if records is None else _noted(records, head)
        is_next = records is None or records.is_next(batch)
        if is_next and _write_walked(tail, data, summary):
            if records is not None:
                records.note_batch(batch, now_ms)
            return head.base_offset
    place(data, 0, leader_epoch)
    return -1


def _append_copy(tail: SegmentTail, data: Buffer, now_ms: int) -> bool:
    """Whether the whole entries of a set were appended as they are, at least one."""
    if not tail.takes_plain_sets or tail.is_full or not tail.size or len(data) >= LARGE_BYTES:
        return False
    try:
        summary = validate(data, MAX_SET_BYTES)
    except ValueError:
        return False
    view = memoryview(data)[: summary.size]
    batches_of_set = list(batches(view)) if summary.magics & 1 << RECORDS_MAGIC else []
    copied = [one for one in batches_of_set if one.magic == RECORDS_MAGIC]
    if not (
        summary.count > 0
        and summary.monotonic
        and summary.first_offset >= tail.end_offset
        and summary.last_offset - tail.base_offset <= INT_MAX
        and summary.size <= tail.segment_bytes - tail.size
        and _age_of(tail, summary, now_ms) <= tail.age_max_ms
        and all(one.leader_epoch == tail.noted_epoch and not one.is_control for one in copied)
        and _write_walked(tail, view, summary)
    ):
        return False
    for one in copied:
        if one.producer_id != NO_PRODUCER and tail.records is not None:
            tail.records.note_batch(_noted(tail.records, one), now_ms)
    return True


def _noted(records: BatchesOfProducers, batch: Batch) -> object:
    """The part of a batch that a log keeps of its producer."""
    return records.batch(
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        batch.base_offset,
        batch.last_offset,
        batch.max_timestamp_ms,
        batch.is_transactional,
    )


def _age_of(tail: SegmentTail, summary: SetSummary, now_ms: int) -> int:
    """The segment's age in ms with this set: between timestamps, or if the first message has none
    between clock times."""
    if tail.first_ms < 0:
        return now_ms - tail.created_ms
    return summary.max_timestamp_ms - tail.first_ms


def _write_walked(tail: SegmentTail, data: Buffer, summary: SetSummary) -> bool:
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
    """Add the entries of the last set to the indexes; False if this is left to the owner."""
    index, times = tail.index_tail, tail.time_tail
    relative = tail.tail_offset - tail.base_offset
    if (
        index is None
        or tail.tail_offset <= index.last_offset
        or tail.tail_position <= index.last_position
        or not 0 < relative <= INT_MAX
        or tail.tail_position > INT_MAX
        or not _has_room(index, INDEX_ENTRY)
    ):
        return False
    if times is not None:
        if not _add_time(tail, times):
            return False
        tail.is_full = times.entries >= times.capacity - 1
    _put(index, INDEX_ENTRY, relative, tail.tail_position)
    index.last_offset, index.last_position = tail.tail_offset, tail.tail_position
    tail.is_full = tail.is_full or index.entries >= index.capacity
    return True


def _add_time(tail: SegmentTail, times: IndexTail) -> bool:
    """Add the largest timestamp to the time index, unless its last entry has that or a later one;
    False without room for it."""
    offset = tail.max_timestamp_offset
    if (
        tail.max_timestamp_ms <= times.last_ms
        or not 0 <= offset - tail.base_offset <= INT_MAX
        or offset < times.last_offset
    ):
        return True
    if not _has_room(times, TIME_ENTRY):
        return False
    _put(times, TIME_ENTRY, tail.max_timestamp_ms, offset - tail.base_offset)
    times.last_ms, times.last_offset = tail.max_timestamp_ms, offset
    return True


def _has_room(index: IndexTail, entry: Struct) -> bool:
    end = (index.entries + 1) * entry.size
    return (
        index.view is not None
        and 0 <= index.entries < index.capacity
        and end <= min(index.allocated, len(index.view))
    )


def _put(index: IndexTail, entry: Struct, *fields: int) -> None:
    assert index.view is not None
    entry.pack_into(index.view, index.entries * entry.size, *fields)
    index.entries += 1


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
