"""A leader's validation of produced messages from 0.9 on; numbers and stamps them in place (twin).

Source: kafka.log.LogValidator and org.apache.kafka.common.record.ByteBufferLogInputStream 0.10.2.2.
"""

from __future__ import annotations

import zlib
from typing import Final

from kafka08.config import LONG_MAX
from kafka08.format import Batch, magic_of
from kafka08.format.v2 import V2
from kafka08.kernel._python_sets import (
    CRC,
    MESSAGES,
    OFFSET,
    SetSummary,
    check_base_offset,
    check_codec,
    count_in,
    message_batches,
    numbered,
    timestamp_of,
    timestamp_type_of,
    walk,
    writable,
)
from kafka08.kernel.types import (
    ANY_DIFFERENCE_MS,
    ATTRIBUTES_POSITION,
    CRC_END,
    ENTRY_HEADER_BYTES,
    LENGTH,
    LOG_APPEND_TIME,
    MAGIC_POSITION,
    MAX_MAGIC,
    NO_TIMESTAMP,
    RECORDS_MAGIC,
    TIMESTAMP_BYTES,
    TIMESTAMP_POSITION,
    TIMESTAMP_TYPE_BIT,
    BadTimestamp,
    Buffer,
    CorruptMessage,
    Decompress,
    EntryTooLarge,
    Rules,
)

RECORDS: Final = V2()


def validate_and_stamp(
    data: Buffer, base_offset: int, max_entry_bytes: int, rules: Rules, now_ms: int
) -> SetSummary:
    """`validate`; then, if all entries are plain and have the topic's magic, prepare them in place:
    check them against `rules`, number them from `base_offset`, and set the append time.

    Otherwise (the summary has a codec other than 0, or another magic than the topic's) the caller
    must check the messages with `check_messages` and compress or convert them; only offsets of
    plain entries in `data` may have changed. Errors of sizes, CRCs and codecs come first:
    CorruptMessage, EntryTooLarge, UnknownCodec; then those of `check_messages`. The summary's
    largest timestamp is that for the time index: under LogAppendTime `now_ms`, at the first offset.
    """
    view = writable(data)
    check_base_offset(base_offset, len(view))
    summary = SetSummary()
    refused: ValueError | None = None
    in_place = True
    for batch in message_batches(view):
        position, offset, size = batch.position, batch.last_offset, batch.size
        if size > max_entry_bytes:
            raise EntryTooLarge(position, size, max_entry_bytes)
        MESSAGES.check_crc(view, batch)
        check_codec(batch)
        in_place = in_place and not batch.codec and batch.magic == rules.magic
        if in_place:
            refused = refused or _refusal(view, position, offset, size, rules, now_ms)
            batch = numbered(view, batch, base_offset + summary.count)
        count_in(summary, batch)
    if in_place and refused is not None:
        raise refused
    if in_place and rules.log_append_time and rules.magic:
        for position, _, size in walk(view):
            set_time(view, position, size, now_ms, True)
        if summary.count:
            summary.max_timestamp_ms = now_ms
            summary.max_timestamp_offset = summary.first_offset
    return summary


def number_batch(
    data: Buffer,
    base_offset: int,
    max_entry_bytes: int,
    rules: Rules,
    now_ms: int,
    leader_epoch: int,
    unpack: Decompress | None = None,
) -> SetSummary | None:
    """Check a set that is one record batch of a producer, and number it in place: offset, leader's
    epoch, time. `unpack` uncompresses the records of a compressed one; its errors are passed on.
    None for any other set, without `unpack` also for a compressed batch, and for one that a leader
    refuses (kafka08.protocol.record_batches): it is unchanged then."""
    view = writable(data)
    if magic_of(view) != RECORDS_MAGIC or not V2.head_bytes <= len(view) <= max_entry_bytes:
        return None
    batch = RECORDS.batch(view, 0)
    if (
        batch.size != len(view)
        or batch.base_offset
        or (batch.codec and unpack is None)
        or batch.has_append_time
        or batch.is_control
        or batch.record_count <= 0
        or batch.last_offset != batch.record_count - 1
        or not 0 <= base_offset <= LONG_MAX - batch.record_count
        or (batch.producer_id >= 0 and batch.base_sequence < 0)
    ):
        return None
    try:
        RECORDS.check_crc(view, batch)
    except ValueError:
        return None
    records: Buffer = view[V2.head_bytes :]
    if batch.codec and unpack is not None:
        records = unpack(batch.codec, view[V2.head_bytes :])
    try:
        newest_ms = _newest(memoryview(records), batch, rules, now_ms)
    except ValueError:
        return None
    by_broker = rules.log_append_time
    RECORDS.number(view, batch, base_offset, leader_epoch, newest_ms, by_broker)
    summary = SetSummary()
    count_in(summary, RECORDS.batch(view, 0))
    summary.count = batch.record_count
    return summary


def _newest(records: memoryview, batch: Batch, rules: Rules, now_ms: int) -> int:
    """The timestamp that a batch is stored with, at least NO_TIMESTAMP; ValueError if a record is
    refused."""
    newest_ms = NO_TIMESTAMP
    for number, record in enumerate(RECORDS.read_records(records, batch)):
        if record.offset != number or (rules.keys_required and record.key is None):
            raise ValueError("a record that is refused")
        time_ms = record.timestamp_ms
        newest_ms = max(newest_ms, time_ms)
        is_checked = time_ms != NO_TIMESTAMP and not rules.log_append_time
        if is_checked and abs(time_ms - now_ms) > rules.max_difference_ms:
            raise ValueError("a timestamp that is refused")
    return now_ms if rules.log_append_time else newest_ms


def _refusal(
    view: memoryview, position: int, offset: int, size: int, rules: Rules, now_ms: int
) -> ValueError | None:
    try:
        check_key(view, position, offset, size, rules)
        if rules.magic:
            check_time(view, position, rules, now_ms)
            check_type(view, position)
    except (CorruptMessage, BadTimestamp) as error:
        return error
    return None


def check_messages(
    data: Buffer,
    rules: Rules,
    now_ms: int,
    wrapper_magic: int = -1,
    check_unstamped: bool = False,
) -> SetSummary:
    """Check messages that will be compressed or converted, or that come from a wrapper.

    `wrapper_magic` is the magic of their wrapper, -1 without one. `check_unstamped` checks the
    timestamps of all messages, where magic 0 counts as timestamp -1, and for topics of magic 0 too,
    as 0.10.2.2 does when it converts plain sets. A partial entry at the end is ignored.

    CorruptMessage: sizes, CRC, a magic that is unknown or not the wrapper's, a wrapper inside a
    wrapper, a missing key. BadTimestamp: more than `max_difference_ms` from `now_ms`, or of type
    LogAppendTime (inside a wrapper only the wrapper's type counts, which the caller checks).
    """
    view = memoryview(data)
    summary = SetSummary()
    for batch in message_batches(view):
        position, offset, size = batch.position, batch.last_offset, batch.size
        magic = batch.magic
        if magic > MAX_MAGIC:
            raise CorruptMessage(position, offset, f"magic {magic} is not known")
        if wrapper_magic not in (-1, magic):
            reason = f"magic {magic} inside a compressed message of magic {wrapper_magic}"
            raise CorruptMessage(position, offset, reason)
        if batch.codec:
            raise CorruptMessage(position, offset, "compressed message inside a compressed one")
        check_key(view, position, offset, size, rules)
        if check_unstamped or (magic and rules.magic):
            check_time(view, position, rules, now_ms)
            if wrapper_magic == -1:
                check_type(view, position)
        MESSAGES.check_crc(view, batch)
        count_in(summary, batch)
    return summary


def check_key(view: memoryview, position: int, offset: int, size: int, rules: Rules) -> None:
    if not rules.keys_required:
        return
    at = position + TIMESTAMP_POSITION
    at += TIMESTAMP_BYTES if view[position + MAGIC_POSITION] else 0
    if position + size - at < LENGTH.size:
        raise CorruptMessage(position, offset, "key or value extends beyond the message")
    if LENGTH.unpack_from(view, at)[0] < 0:
        raise CorruptMessage(position, offset, "a message of a compacted topic needs a key")


def check_time(view: memoryview, position: int, rules: Rules, now_ms: int) -> None:
    """ANY_DIFFERENCE_MS allows every timestamp: the JVM's subtraction wraps around 64 bits."""
    if rules.log_append_time or rules.max_difference_ms == ANY_DIFFERENCE_MS:
        return
    timestamp_ms = timestamp_of(view, position)
    if abs(timestamp_ms - now_ms) > rules.max_difference_ms:
        reason = f"more than {rules.max_difference_ms} ms from the broker's time {now_ms}"
        raise BadTimestamp(position, timestamp_ms, reason)


def check_type(view: memoryview, position: int) -> None:
    if timestamp_type_of(view, position) == LOG_APPEND_TIME:
        reason = "a producer may not send a timestamp of type LogAppendTime"
        raise BadTimestamp(position, timestamp_of(view, position), reason)


def set_wrapper(data: Buffer, offset: int, timestamp_ms: int, log_append_time: bool) -> None:
    """Set offset, timestamp and timestamp type of the first entry of `data`, which has magic 1.
    Computes its CRC again only if timestamp or type change.

    CorruptMessage unless `data` has a complete entry of magic 1, BufferError if it is read-only.
    Source: ByteBufferLogEntry.setCreateTime 0.10.2.2.
    """
    view = writable(data)
    for position, _, size in walk(view):
        if view[position + MAGIC_POSITION] != 1:
            break
        OFFSET.pack_into(view, position, offset)
        same_type = (timestamp_type_of(view, position) == LOG_APPEND_TIME) == log_append_time
        if not same_type or timestamp_of(view, position) != timestamp_ms:
            set_time(view, position, size, timestamp_ms, log_append_time)
        return
    raise CorruptMessage(0, -1, "there is no complete message of magic 1")


def set_time(
    view: memoryview, position: int, size: int, timestamp_ms: int, log_append_time: bool
) -> None:
    """Set timestamp, timestamp type and CRC of an entry of magic 1."""
    attributes = view[position + ATTRIBUTES_POSITION] & ~TIMESTAMP_TYPE_BIT
    attributes |= TIMESTAMP_TYPE_BIT if log_append_time else 0
    view[position + ATTRIBUTES_POSITION] = attributes
    OFFSET.pack_into(view, position + TIMESTAMP_POSITION, timestamp_ms)
    crc = zlib.crc32(view[position + CRC_END : position + size])
    CRC.pack_into(view, position + ENTRY_HEADER_BYTES, crc)
