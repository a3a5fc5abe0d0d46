"""Record batches (message format 2): what a leader takes of producers, and what old consumers get.

`prepare` is a leader of a topic whose format has records. A batch that needs no change but its
offset, its leader's epoch and its time is changed in place, compressed or not; its records are
checked all the same. Messages of older formats become one batch. The ways down are `lowered`, for a
topic of an older format, and `as_messages`, for a consumer.
Source: kafka.log.LogValidator and AbstractRecords.downConvert 0.11.0.3.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from functools import partial
from typing import Final

from kafka08 import kernel
from kafka08.errors import UnsupportedForMessageFormat
from kafka08.format import (
    Batch,
    Message,
    RecordFormat,
    batches,
    codec_of,
    entry_size,
    format_of,
    magic_of,
)
from kafka08.format.v2 import V2, VARINT
from kafka08.kernel.types import (
    LOG_APPEND_TIME,
    MAX_SET_BYTES,
    NO_TIMESTAMP,
    RECORDS_MAGIC,
    TIMESTAMP_TYPE_BIT,
    Rules,
    Unpacker,
)
from kafka08.protocol import compression
from kafka08.protocol.message_set import (
    MAX_STORED_UNPACKED_BYTES,
    MAX_UNPACKED_BYTES,
    PreparedSet,
    fitting,
    in_place,
    pack,
    produce_error,
)
from kafka08.protocol.types import Buffer

STANDARD: Final = 1
"""The magic whose lz4 frames have the standard header, as those of record batches."""


def compress(codec: int, data: Buffer) -> bytes | bytearray:
    """The records of a batch, compressed."""
    return compression.compress(codec, data, STANDARD)


def _decompress(
    codec: int, data: Buffer, max_bytes: int, magic: int = STANDARD
) -> bytes | bytearray:
    return compression.decompress(codec, data, max_bytes, magic=magic)


def is_one_batch(data: Buffer) -> bool:
    """Whether a set has the one whole batch that Produce 3 sends; bytes behind it that are no entry
    do not count."""
    if magic_of(data) == RECORDS_MAGIC and entry_size(data, 0) == len(data) >= V2.head_bytes:
        return True
    try:
        return [batch.magic for batch in batches(data)] == [RECORDS_MAGIC]
    except kernel.CorruptMessage:
        return False


def prepare(
    data: Buffer,
    base_offset: int,
    now_ms: int,
    rules: Rules,
    max_message_bytes: int,
    max_set_bytes: int,
    target_codec: int | None = None,
    max_unpacked_bytes: int = MAX_UNPACKED_BYTES,
    leader_epoch: int = 0,
) -> PreparedSet:
    """Check a produced set for a topic of record batches and assign offsets from `base_offset`.

    `data` must be writable. `target_codec` is the topic's compression.type, None for "producer". A
    partial entry at the end is cut off. Errors as `validation.prepare`; besides, InvalidMessage for
    a base offset other than 0, a control batch, a producer without a sequence, and offsets other
    than 0, 1, 2 …

    # 0.11: accepts such offsets, and gives some of them to two messages.
    """
    leader = _Leader(
        base_offset,
        now_ms,
        rules,
        max_message_bytes,
        target_codec,
        max_unpacked_bytes,
        leader_epoch,
    )
    try:
        prepared = leader.number(data) or leader.take(memoryview(data))
    except ValueError as cause:
        raise produce_error(cause) from cause
    return fitting(prepared, max_set_bytes)


def lowered(
    data: Buffer,
    now_ms: int,
    rules: Rules,
    max_message_bytes: int,
    max_unpacked_bytes: int = MAX_UNPACKED_BYTES,
) -> bytearray:
    """Check a produced set of record batches for a topic of an older format, and convert it.

    Nothing is lost: UnsupportedForMessageFormat for a batch of an idempotent producer, UnknownError
    for a transactional one and for headers; other errors as `prepare`.
    """
    leader = _Leader(0, now_ms, rules, max_message_bytes, None, max_unpacked_bytes, 0)
    try:
        return leader.lower(memoryview(data))
    except ValueError as cause:
        raise produce_error(cause) from cause


class _Leader:
    """Takes one produced set."""

    def __init__(
        self,
        base_offset: int,
        now_ms: int,
        rules: Rules,
        max_message_bytes: int,
        target_codec: int | None,
        max_unpacked_bytes: int,
        leader_epoch: int,
    ) -> None:
        form = format_of(RECORDS_MAGIC)
        assert isinstance(form, RecordFormat)
        self._format = form
        self._checksum = getattr(kernel, form.crc)
        self._base_offset = self._next_offset = base_offset
        self._now_ms = now_ms
        self._rules = rules
        self._max_message_bytes = max_message_bytes
        self._target_codec = target_codec
        self._max_unpacked_bytes = max_unpacked_bytes
        self._leader_epoch = leader_epoch
        self._unpacked_bytes = 0

    def number(self, data: Buffer) -> PreparedSet | None:
        """The usual set, one batch that keeps its codec, numbered in place. None for another one,
        and for one with a fault, which `take` names."""
        if self._target_codec not in (None, codec_of(data)):
            return None
        try:
            summary = kernel.number_batch(
                data,
                self._base_offset,
                self._max_message_bytes,
                self._rules,
                self._now_ms,
                self._leader_epoch,
                self._unpack,
            )
        except ValueError:  # of a codec
            summary = None
        if summary is None:
            self._unpacked_bytes = 0
            return None
        prepared = in_place(data, summary)
        prepared.unpacked_bytes = self._unpacked_bytes
        if self._rules.log_append_time:
            prepared.log_append_time_ms = self._now_ms
        return prepared

    def take(self, view: memoryview) -> PreparedSet:
        found = list(batches(view))
        if not found:
            return PreparedSet(b"", -1, -1, 0, 0)
        if all(isinstance(format_of(batch.magic), RecordFormat) for batch in found):
            parts = [self._take_batch(view[batch.position : batch.end]) for batch in found]
        else:
            parts = [self._take_messages(view[: found[-1].end], found)]
        data = parts[0][0] if len(parts) == 1 else b"".join(part for part, *_ in parts)
        last_offset = self._next_offset - 1
        max_ms = max(timestamp_ms for *_, timestamp_ms in parts)
        return PreparedSet(
            data,
            self._base_offset,
            last_offset,
            self._next_offset - self._base_offset,
            parts[-1][1],
            max_ms,
            last_offset if max_ms != NO_TIMESTAMP else -1,
            self._now_ms if self._rules.log_append_time else NO_TIMESTAMP,
            self._unpacked_bytes,
        )

    def lower(self, view: memoryview) -> bytearray:
        """The batches as messages of the topic's magic."""
        lowered = bytearray()
        for batch in batches(view):
            if batch.magic != RECORDS_MAGIC:
                raise _corrupt(batch, "messages of an older format beside record batches")
            data = view[batch.position : batch.end]
            self._check(data)
            if batch.is_transactional:
                raise ValueError(f"magic {self._rules.magic} has no transactions")
            if batch.producer_id >= 0:
                raise UnsupportedForMessageFormat(
                    f"magic {self._rules.magic} has no sequences of idempotent producers"
                )
            limit = self._max_unpacked_bytes
            lowered += as_messages(data, self._rules.magic, limit, drops_headers=False)
        return lowered

    def _check(self, data: memoryview) -> tuple[Batch, int]:
        """A batch that is as a producer must send it, and the timestamp that it is stored with."""
        (batch,) = batches(data)
        if batch.base_offset:
            raise _corrupt(
                batch, f"a produced batch begins at offset {batch.base_offset}, not at 0"
            )
        kernel.validate(data, self._max_message_bytes)
        if batch.is_control:
            raise _corrupt(batch, "a producer must not send control batches")
        if batch.producer_id >= 0 and batch.base_sequence < 0:
            raise _corrupt(batch, "a producer's batch without a sequence number")
        if batch.has_append_time:
            reason = "a producer may not send a timestamp of type LogAppendTime"
            raise kernel.BadTimestamp(0, batch.max_timestamp_ms, reason)
        return batch, self._check_records(data, batch)

    def _take_batch(self, data: memoryview) -> tuple[Buffer, int, int]:
        """A batch with its new offsets, its codec, and its largest timestamp."""
        batch, max_ms = self._check(data)
        offset, self._next_offset = self._next_offset, self._next_offset + batch.record_count
        codec = batch.codec if self._target_codec is None else self._target_codec
        result: memoryview | bytearray = data
        if codec != batch.codec:
            again = _messages(data, self._unpack_again)
            result = bytearray(
                self._format.build(again, codec, compress, like=batch, checksum=self._checksum)
            )
        (batch,) = batches(result)
        by_broker = self._rules.log_append_time
        self._format.number(
            *(memoryview(result), batch, offset, self._leader_epoch, max_ms, by_broker),
            checksum=self._checksum,
        )
        return self._limited(result), codec, max_ms

    def _check_records(self, data: memoryview, batch: Batch) -> int:
        """The timestamp of a batch whose records are as they must be."""
        rules = self._rules
        try:
            rows = list(
                kernel.column_batches(
                    *(data, 0, None, self._unpack, rules.keys_required, False, False),
                    max_rows=MAX_SET_BYTES,
                    max_bytes=MAX_SET_BYTES,
                    timestamps=True,
                )
            )
        except kernel.CorruptMessage as error:
            if error.__cause__ is not None:
                raise error.__cause__ from error  # of a codec
            if error.reason == VARINT:
                raise ValueError(VARINT) from error
            raise
        (columns,) = rows
        count = columns.count
        in_order = columns.offsets == array("q", range(count)).tobytes()
        if not count or not in_order or {batch.record_count, batch.last_offset + 1} != {count}:
            raise _corrupt(batch, "the offsets of a produced batch must be 0, 1, 2 and so on")
        if rules.keys_required and columns.key_validity is not None:
            raise _corrupt(batch, "a message of a compacted topic needs a key")
        times = memoryview(columns.timestamps or b"").cast("B").cast("q")
        newest_ms, oldest_ms = max(times), min(times)
        if rules.log_append_time:
            return self._now_ms
        for timestamp_ms in (newest_ms, oldest_ms):
            self._check_time(timestamp_ms)
        if oldest_ms == NO_TIMESTAMP != newest_ms:
            for timestamp_ms in times:
                self._check_time(timestamp_ms)
        return max(newest_ms, NO_TIMESTAMP)

    def _check_time(self, timestamp_ms: int) -> None:
        limit = self._rules.max_difference_ms
        if timestamp_ms != NO_TIMESTAMP and abs(timestamp_ms - self._now_ms) > limit:
            reason = f"more than {limit} ms from the broker's time {self._now_ms}"
            raise kernel.BadTimestamp(0, timestamp_ms, reason)

    def _take_messages(self, data: memoryview, found: list[Batch]) -> tuple[Buffer, int, int]:
        """One batch of all messages of older formats, with the last codec in the set."""
        if any(isinstance(format_of(batch.magic), RecordFormat) for batch in found):
            raise _corrupt(found[0], "record batches beside messages of an older format")
        codec = next((batch.codec for batch in reversed(found) if batch.codec), compression.NONE)
        codec = codec if self._target_codec is None else self._target_codec
        messages = []
        # Clients before 0.10 write lz4 with a header checksum of their own.
        unpack = partial(self._unpack, magic=min(batch.magic for batch in found))
        for message in kernel.messages(data, "", 0, 0, unpack):
            if self._rules.keys_required and message.key is None:
                raise _corrupt(found[0], "a message of a compacted topic needs a key")
            if message.timestamp_type == LOG_APPEND_TIME:
                reason = "a producer may not send a timestamp of type LogAppendTime"
                raise kernel.BadTimestamp(0, message.timestamp, reason)
            if not self._rules.log_append_time:
                self._check_time(message.timestamp)
            messages.append(_numbered(message, self._next_offset))
            self._next_offset += 1
        if not messages:
            raise ValueError("compressed message without messages")
        built = bytearray(self._format.build(messages, codec, compress, checksum=self._checksum))
        (batch,) = batches(built)
        by_broker = self._rules.log_append_time
        max_ms = self._now_ms if by_broker else batch.max_timestamp_ms
        self._format.number(
            *(memoryview(built), batch, batch.base_offset, self._leader_epoch, max_ms, by_broker),
            checksum=self._checksum,
        )
        return self._limited(built), codec, max_ms

    def _limited(self, data: memoryview | bytearray) -> memoryview | bytearray:
        if len(data) > self._max_message_bytes:
            raise kernel.EntryTooLarge(0, len(data), self._max_message_bytes)
        return data

    def _unpack(self, codec: int, value: Buffer, magic: int = STANDARD) -> bytes | bytearray:
        """All batches of a set share one limit."""
        left = self._max_unpacked_bytes - self._unpacked_bytes
        data = _decompress(codec, value, left, magic)
        self._unpacked_bytes += len(data)
        return data

    def _unpack_again(self, codec: int, value: Buffer) -> bytes | bytearray:
        return _decompress(codec, value, self._max_unpacked_bytes)


def _corrupt(batch: Batch, reason: str) -> kernel.CorruptMessage:
    return kernel.CorruptMessage(batch.position, batch.base_offset, reason)


def _messages(data: memoryview, unpack: object) -> Iterator[Message]:
    for message in kernel.messages(data, "", 0, 0, unpack, verify_crc=False):  # type: ignore[arg-type]
        yield _numbered(message, message.offset)


def _numbered(message: kernel.MessageAndMetadata[bytes, bytes], offset: int) -> Message:
    return Message(
        offset,
        None if message.key is None else memoryview(message.key),
        None if message.value is None else memoryview(message.value),
        message.timestamp,
        message.timestamp_type,
        message.headers,
    )


def as_messages(
    data: Buffer,
    magic: int,
    max_unpacked_bytes: int = MAX_STORED_UNPACKED_BYTES,
    *,
    drops_headers: bool = True,
    from_offset: int = 0,
) -> Buffer:
    """One batch as entries of magic 0 or 1: plain messages with their offsets, from `from_offset`
    on, or one wrapper of its codec. A control batch becomes nothing; producer, sequence and epoch
    are lost.

    Headers are dropped, so that an old consumer goes on behind them, or with `drops_headers` False
    a ValueError. CorruptMessage: CRC, records.

    # 0.11: one batch with headers fails every partition of a fetch, for ever.
    """
    (batch,) = batches(data)
    unpack = Unpacker(compression.decompress, max_unpacked_bytes)
    first = 0 if batch.codec else from_offset
    rows = list(kernel.messages(data, "", 0, first, unpack))
    if not drops_headers and any(row.headers for row in rows):
        raise ValueError(f"messages of magic {magic} have no headers")
    if not rows:
        return b""
    attributes = TIMESTAMP_TYPE_BIT if magic and batch.has_append_time else 0
    first_offset = rows[0].offset if magic and batch.codec else 0
    built = bytearray()
    start = 0
    for end in range(1, len(rows) + 1):
        # Compaction leaves gaps.
        if end < len(rows) and rows[end].offset == rows[end - 1].offset + 1:
            continue
        part = rows[start:end]
        built += kernel.build_set(
            [(row.key, row.value) for row in part],
            part[0].offset - first_offset,
            attributes,
            magic,
            [row.timestamp for row in part] if magic else None,
        )
        start = end
    if not batch.codec:
        return built
    newest_ms = max(row.timestamp for row in rows)
    return pack(built, batch.codec, rows[-1].offset, magic, newest_ms, bool(attributes))
