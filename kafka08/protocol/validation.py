"""Validates a produced set for a leader of 0.9 or later, before the append.

It checks keys and timestamps, sets timestamps, converts messages of another magic, and assigns
offsets. A wrapper of magic 1 with the inner offsets 0, 1, 2 … is not compressed again: the leader
checks its content, and writes offset and timestamp into the wrapper. Source:
kafka.log.LogValidator and kafka.log.Log.append 0.10.2.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kafka08 import kernel
from kafka08.kernel.types import (
    ANY_DIFFERENCE_MS,
    ATTRIBUTES_POSITION,
    CODEC_MASK,
    ENTRY_HEADER,
    MAGIC_POSITION,
    MAX_MAGIC,
    NO_TIMESTAMP,
    TIMESTAMP_BYTES,
    TIMESTAMP_TYPE_BIT,
    Rules,
)
from kafka08.protocol import compression
from kafka08.protocol.conversion import convert_plain
from kafka08.protocol.message_set import (
    MAX_UNPACKED_BYTES,
    NO_LIMIT,
    PreparedSet,
    fitting,
    in_place,
    pack,
    produce_error,
    wrapper_value,
)
from kafka08.protocol.types import Buffer

OLD_MAGIC_ALONE: Final = 1
"""SetSummary.magics of a set of magic 0."""


def prepare(
    data: Buffer,
    base_offset: int,
    now_ms: int,
    rules: Rules,
    max_message_bytes: int,
    max_set_bytes: int,
    target_codec: int | None = None,
    max_unpacked_bytes: int = MAX_UNPACKED_BYTES,
) -> PreparedSet:
    """Check a produced set by the topic's `rules` and assign offsets from `base_offset`.

    `target_codec` is the topic's compression.type, None for "producer". `data` must be writable: a
    plain set of the topic's magic, and a wrapper with the inner offsets 0, 1, 2 …, are changed in
    place. Anything else becomes a plain set of the topic's magic, or one wrapper of the target
    codec (for "producer": the last one in the set). A partial entry at the end is cut off.

    InvalidMessage: sizes, CRC, a missing key, an unknown magic, a wrapper in a wrapper, a message
    inside of another magic than its wrapper. InvalidTimestamp: further from `now_ms` than the rules
    allow, or typed LogAppendTime. MessageSizeTooLarge, MessageSetSizeTooLarge, UnknownError and
    UnpacksTooLarge as `message_set.prepare`. After an error the offsets in `data` are undefined.
    """
    raised = None if target_codec else _with_magic_1(data, base_offset, rules, max_message_bytes)
    if raised is not None:
        return fitting(raised, max_set_bytes)
    try:
        if target_codec:
            summary = kernel.validate(data, max_message_bytes)
        else:
            summary = kernel.validate_and_stamp(data, base_offset, max_message_bytes, rules, now_ms)
        codec = summary.codec if target_codec is None else target_codec
        if not summary.count or _is_finished_in_place(summary, codec, rules):
            prepared = in_place(data, summary)
        else:
            entries = memoryview(data)[: summary.size]
            leader = _Leader(base_offset, now_ms, rules, max_unpacked_bytes)
            prepared = leader.take(entries, codec, max_message_bytes)
    except ValueError as cause:
        raise produce_error(cause) from cause
    if rules.log_append_time and prepared.count:
        prepared.log_append_time_ms = now_ms
    return fitting(prepared, max_set_bytes)


def _with_magic_1(
    data: Buffer, base_offset: int, rules: Rules, max_message_bytes: int
) -> PreparedSet | None:
    """A plain set of magic 0, as old producers send it, for a topic without further rules: the
    result of `_Leader`, in two passes. None for any other set, and for one
    that may be refused."""
    if (
        not rules.magic
        or rules.log_append_time
        or rules.keys_required
        or rules.max_difference_ms < ANY_DIFFERENCE_MS
        or len(data) <= MAGIC_POSITION
        or data[MAGIC_POSITION]
    ):
        return None
    try:
        summary = kernel.validate_and_assign(data, base_offset, max_message_bytes - TIMESTAMP_BYTES)
        if summary.codec or summary.magics != OLD_MAGIC_ALONE:
            return None
        entries = memoryview(data)[: summary.size]
        messages = convert_plain(entries, summary.count, rules.magic)
    except ValueError:
        return None
    return PreparedSet(messages, base_offset, summary.last_offset, summary.count, compression.NONE)


def _is_finished_in_place(summary: kernel.SetSummary, codec: int, rules: Rules) -> bool:
    """Whether `validate_and_stamp` has already changed the whole set in place."""
    return not codec and not summary.codec and summary.magics == 1 << rules.magic


@dataclass(frozen=True, slots=True)
class _Piece:
    """Checked plain messages of a set.

    wrapper_offset  offset of their wrapper; -1 without one
    is_whole        False: after the messages, the wrapper has bytes that are no message
    """

    messages: Buffer
    summary: kernel.SetSummary
    wrapper_offset: int = -1
    wrapper_codec: int = compression.NONE
    is_whole: bool = True


class _Leader:
    """Validates one set that must be converted or recompressed, or that is one wrapper."""

    def __init__(
        self, base_offset: int, now_ms: int, rules: Rules, max_unpacked_bytes: int
    ) -> None:
        self._base_offset = base_offset
        self._now_ms = now_ms
        self._rules = rules
        self._left_bytes = max_unpacked_bytes

    def take(self, entries: memoryview, codec: int, max_message_bytes: int) -> PreparedSet:
        runs = kernel.runs(entries)
        if not codec and not any(run.codec for run in runs):
            return self._convert(entries, max_message_bytes)
        pieces = [
            self._open(entries[run.start : run.end])
            if run.codec
            else self._check(entries[run.start : run.end])
            for run in runs
        ]
        if len(pieces) == 1 and self._stays(pieces[0], codec):
            prepared = self._number_wrapper(entries, pieces[0])
        else:
            prepared = self._repack(pieces, codec, max_message_bytes)
        prepared.unpacked_bytes = sum(len(piece.messages) for piece in pieces)
        return prepared

    def _convert(self, entries: memoryview, max_message_bytes: int) -> PreparedSet:
        """Convert a plain set that has messages of another magic than the topic's."""
        rules = self._rules
        summary = kernel.check_messages(entries, rules, self._now_ms, check_unstamped=True)
        time = self._now_ms if rules.log_append_time else NO_TIMESTAMP
        messages = convert_plain(
            entries, summary.count, rules.magic, 0, time, rules.log_append_time
        )
        return self._plain(messages, max_message_bytes)

    def _check(self, entries: memoryview) -> _Piece:
        return _Piece(entries, kernel.check_messages(entries, self._rules, self._now_ms))

    def _open(self, entry: memoryview) -> _Piece:
        """The content of a wrapper. All wrappers of a set share one size limit."""
        magic, attributes = entry[MAGIC_POSITION], entry[ATTRIBUTES_POSITION]
        offset, _ = ENTRY_HEADER.unpack_from(entry)
        if magic > MAX_MAGIC:
            raise kernel.CorruptMessage(0, offset, f"magic {magic} is not known")
        codec = attributes & CODEC_MASK
        value = wrapper_value(entry, magic)
        inner = compression.decompress(codec, value, self._left_bytes, magic=magic)
        self._left_bytes -= len(inner)
        if magic and self._rules.magic and attributes & TIMESTAMP_TYPE_BIT:
            reason = "a producer may not send a timestamp of type LogAppendTime"
            raise kernel.BadTimestamp(0, NO_TIMESTAMP, reason)
        summary = kernel.check_messages(inner, self._rules, self._now_ms, magic)
        if not summary.count:
            raise ValueError("compressed message without messages")
        return _Piece(inner, summary, offset, codec, summary.size == len(inner))

    def _stays(self, piece: _Piece, codec: int) -> bool:
        """Whether it suffices to write offset and timestamp into the wrapper.

        # 0.10: inner offsets are relative to the wrapper's, or absolute if the base would be below
        # 0: so librdkafka's wrappers with offset 0 are kept, too.
        """
        summary = piece.summary
        base = piece.wrapper_offset - summary.last_offset
        first = summary.first_offset + max(0, base)
        count_up = summary.monotonic and summary.last_offset - summary.first_offset + 1
        return (
            piece.wrapper_codec == codec
            and summary.magics == 1 << self._rules.magic
            and self._rules.magic > 0
            and piece.is_whole
            and first == 0
            and count_up == summary.count
        )

    def _number_wrapper(self, entry: memoryview, piece: _Piece) -> PreparedSet:
        time = self._now_ms if self._rules.log_append_time else piece.summary.max_timestamp_ms
        last_offset = self._base_offset + piece.summary.count - 1
        kernel.set_wrapper(entry, last_offset, time, self._rules.log_append_time)
        return self._prepared(entry, piece.summary.count, piece.wrapper_codec, time, last_offset)

    def _repack(self, pieces: list[_Piece], codec: int, max_message_bytes: int) -> PreparedSet:
        """One wrapper around all messages, or a plain set if `codec` is none."""
        magic = self._rules.magic
        messages = bytearray().join(
            convert_plain(piece.messages, piece.summary.count, magic) for piece in pieces
        )
        if not codec:
            return self._plain(messages, max_message_bytes)
        first_offset = 0 if magic else self._base_offset
        summary = kernel.validate_and_assign(messages, first_offset, NO_LIMIT, verify_crc=False)
        last_offset = self._base_offset + summary.count - 1
        by_broker = magic > 0 and self._rules.log_append_time
        time = self._now_ms if by_broker else summary.max_timestamp_ms
        packed = pack(messages, codec, last_offset, magic, time, by_broker)
        if len(packed) > max_message_bytes:
            raise kernel.EntryTooLarge(0, len(packed), max_message_bytes)
        return self._prepared(packed, summary.count, codec, time, last_offset)

    def _plain(self, messages: Buffer, max_message_bytes: int) -> PreparedSet:
        """A plain set from converted or decompressed messages.

        # 0.10: with LogAppendTime, messages that had the topic's magic keep the producer's
        # timestamps here, while the time index gets the broker's, at the last offset.
        """
        summary = kernel.validate_and_assign(
            messages, self._base_offset, max_message_bytes, verify_crc=False
        )
        if self._rules.magic and self._rules.log_append_time:
            last_offset = summary.last_offset
            return self._prepared(messages, summary.count, 0, self._now_ms, last_offset)
        return in_place(messages, summary)

    def _prepared(
        self, data: Buffer, count: int, codec: int, timestamp_ms: int, timestamp_offset: int
    ) -> PreparedSet:
        return PreparedSet(
            data,
            self._base_offset,
            self._base_offset + count - 1,
            count,
            codec,
            timestamp_ms,
            timestamp_offset if timestamp_ms != NO_TIMESTAMP else -1,
        )
