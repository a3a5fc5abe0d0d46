"""Message format 2 (0.11): an entry is a batch of records, the unit of codec, CRC and offsets.

     0  base_offset:i64  size:i32  leader_epoch:i32  magic:i8  crc:u32           = 21 bytes
    21  attributes:i16  last_offset_delta:i32  first_timestamp:i64  max_timestamp:i64
    43  producer_id:i64  producer_epoch:i16  base_sequence:i32  count:i32        = 61 bytes
    61  records, compressed as one stream if the attributes have a codec

A record: `length attributes:i8 timestamp_delta offset_delta key value header_count headers`. All
lengths and deltas are zigzag varints, those of null keys and values -1; a header is a key of UTF-8
and a value. The CRC is CRC-32C of everything from the attributes on: a leader writes base offset
and epoch without computing it again.

Attributes: bits 0 to 2 codec, 3 LogAppendTime (then every record has the maximum timestamp), 4
transactional, 5 control. Source: org.apache.kafka.common.record.DefaultRecordBatch and
DefaultRecord 0.11.0.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from struct import Struct
from typing import Final

from kafka08.format.batch import Batch, Checksum, Compress, Header, Message, RecordFormat
from kafka08.format.types import (
    CODEC_MASK,
    CREATE_TIME,
    ENTRY_HEADER_BYTES,
    LOG_APPEND_TIME,
    NO_TIMESTAMP,
    RECORDS_MAGIC,
    TIMESTAMP_TYPE_BIT,
    Buffer,
    CorruptMessage,
    Decompress,
)

TRANSACTIONAL_BIT: Final = 0x10
CONTROL_BIT: Final = 0x20
OFFSET_DELTA_MAX: Final = (1 << 31) - 1

SHORT: Final = "records end within their batch, or go on behind it"
LENGTH: Final = "record of another length than its fields"
VARINT: Final = "varint of too many bytes"
HEADERS: Final = "record with impossible headers"
REST: Final = "bytes behind the last record of a batch"
COUNT: Final = "negative number of records"

_HEAD: Final = Struct(">qiiBIhiqqqhii")
PRODUCER_AT: Final = Struct(">8xi4xB26xq")
"""Size, magic and producer id, at the positions that they have in an entry."""
_SENDER: Final = Struct(">16xb4xh20xqh")
"""Magic, attributes, producer id and epoch."""
_CRC: Final = Struct(">I")
_CHECKED: Final = Struct(">hiqqqhii")
"""The fields of the head that the CRC covers."""
_OFFSETS: Final = Struct(">qii")
"""Base offset, size and leader epoch."""
_SIZE: Final = Struct(">i")
_PRODUCER: Final = Struct(">qhi")
_TIMES: Final = Struct(">h4x8xq")
"""Attributes and maximum timestamp, from the attributes on."""


def _table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


_TABLE: Final = _table()


def crc32c(data: Buffer, value: int = 0) -> int:
    """CRC-32C (Castagnoli) of `data`, continued from `value`."""
    value ^= 0xFFFFFFFF
    for byte in memoryview(data).cast("B"):
        value = value >> 8 ^ _TABLE[(value ^ byte) & 0xFF]
    return value ^ 0xFFFFFFFF


def read_varint(view: memoryview, at: int, end: int, bits: int = 32) -> tuple[int, int]:
    """A zigzag varint of `bits`, and the position after it. IndexError at `end`, ValueError for one
    of too many bytes."""
    value = shift = 0
    while True:
        if at >= end:
            raise IndexError
        byte = view[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            value &= (1 << bits) - 1
            return value >> 1 ^ -(value & 1), at
        shift += 7
        if shift >= bits:
            raise ValueError(VARINT)


def varint(value: int, bits: int = 32) -> bytes:
    """The shortest zigzag varint of `value`."""
    value = (value << 1 ^ value >> bits - 1) & (1 << bits) - 1
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


class V2(RecordFormat):
    magic = RECORDS_MAGIC
    head_bytes = _HEAD.size
    crc_position = 17
    crc_start = 21
    codec_position = 22
    crc = "crc32c"

    def checksum(self, data: Buffer, value: int = 0) -> int:
        return crc32c(data, value)

    def batch(self, view: memoryview, position: int) -> Batch:
        (
            base_offset, size, leader_epoch, magic, crc, attributes, last_delta, first_ms, max_ms,
            producer_id, producer_epoch, base_sequence, record_count,
        ) = _HEAD.unpack_from(view, position)  # fmt: skip
        return Batch(
            magic,
            position,
            size + ENTRY_HEADER_BYTES,
            base_offset,
            _wrapped(base_offset + last_delta),
            attributes & CODEC_MASK,
            LOG_APPEND_TIME if attributes & TIMESTAMP_TYPE_BIT else CREATE_TIME,
            max_ms,
            crc,
            record_count,
            first_ms,
            leader_epoch,
            producer_id,
            producer_epoch,
            base_sequence,
            attributes & TRANSACTIONAL_BIT != 0,
            attributes & CONTROL_BIT != 0,
        )

    def records(self, view: memoryview, batch: Batch, decompress: Decompress) -> Iterator[Message]:
        inner = view[batch.position + self.head_bytes : batch.end]
        if batch.codec:
            inner = memoryview(decompress(batch.codec, inner))
        return self.read_records(inner, batch)

    def read_records(self, inner: memoryview, batch: Batch) -> Iterator[Message]:
        """The records of a batch, which `inner` has uncompressed. CorruptMessage: one of them, or
        their number, is wrong."""

        def corrupt(reason: str) -> CorruptMessage:
            return CorruptMessage(batch.position, batch.base_offset, reason)

        if batch.record_count < 0:
            raise corrupt(COUNT)
        at, end = 0, len(inner)
        for _ in range(batch.record_count):
            try:
                length, start = read_varint(inner, at, end)
            except IndexError:
                raise corrupt(SHORT) from None
            except ValueError as error:
                raise corrupt(str(error)) from None
            if not 0 <= length <= end - start:
                raise corrupt(SHORT)
            at = start + length
            try:
                yield _record(inner, start, at, batch)
            except IndexError:
                raise corrupt(LENGTH) from None
            except ValueError as error:
                raise corrupt(str(error)) from None
        if at != end:
            raise corrupt(REST)

    def build(
        self,
        messages: Iterable[Message],
        codec: int,
        compress: Compress,
        *,
        like: Batch | None = None,
        checksum: Checksum | None = None,
    ) -> bytes:
        kept = list(messages)
        if like is None and not kept:
            raise ValueError("a batch needs a record")
        base_offset = kept[0].offset if like is None else like.base_offset
        last_offset = kept[-1].offset if like is None else like.last_offset
        if not 0 <= last_offset - base_offset <= OFFSET_DELTA_MAX:
            raise OverflowError(f"a batch cannot hold offsets {base_offset} to {last_offset}")
        first_ms = kept[0].timestamp_ms if kept else NO_TIMESTAMP
        if like is not None and (like.has_append_time or not kept):
            max_ms = like.max_timestamp_ms
        else:
            max_ms = max(NO_TIMESTAMP, *(message.timestamp_ms for message in kept))
        records = b"".join(_encoded(message, base_offset, first_ms) for message in kept)
        attributes = codec | (TIMESTAMP_TYPE_BIT if like and like.has_append_time else 0)
        producer = (-1, -1, -1)
        if like is not None:
            attributes |= TRANSACTIONAL_BIT if like.is_transactional else 0
            attributes |= CONTROL_BIT if like.is_control else 0
            producer = (like.producer_id, like.producer_epoch, like.base_sequence)
        checked = _CHECKED.pack(
            attributes, last_offset - base_offset, first_ms, max_ms, *producer, len(kept)
        ) + (compress(codec, records) if codec else records)  # fmt: skip
        size = len(checked) + self.crc_start - 12
        epoch = 0 if like is None else like.leader_epoch
        return b"".join(
            (
                _OFFSETS.pack(base_offset, size, epoch),
                b"\2",
                _CRC.pack((checksum or crc32c)(checked)),
                checked,
            )
        )

    def number(
        self,
        view: memoryview,
        batch: Batch,
        base_offset: int,
        leader_epoch: int,
        max_timestamp_ms: int,
        log_append_time: bool,
        *,
        checksum: Checksum | None = None,
    ) -> None:
        _OFFSETS.pack_into(view, batch.position, base_offset, batch.size - 12, leader_epoch)
        if (max_timestamp_ms, log_append_time) == (batch.max_timestamp_ms, batch.has_append_time):
            return
        checked = view[batch.position + self.crc_start : batch.end]
        (attributes, _) = _TIMES.unpack_from(checked)
        attributes &= ~TIMESTAMP_TYPE_BIT
        attributes |= TIMESTAMP_TYPE_BIT if log_append_time else 0
        Struct(">h").pack_into(checked, 0, attributes)
        Struct(">q").pack_into(checked, 14, max_timestamp_ms)
        _CRC.pack_into(view, batch.position + self.crc_position, (checksum or crc32c)(checked))


def _record(view: memoryview, at: int, end: int, batch: Batch) -> Message:
    """The record whose fields are in [at, end). IndexError if they are not, ValueError for fields
    that cannot be."""
    if at >= end:
        raise IndexError
    at += 1  # attributes, of which none is in use
    timestamp_delta, at = read_varint(view, at, end, 64)
    offset_delta, at = read_varint(view, at, end)
    key, at = read_field(view, at, end)
    value, at = read_field(view, at, end)
    count, at = read_varint(view, at, end)
    # Each header has two lengths at least.
    if not 0 <= count <= (end - at) // 2:
        raise ValueError(HEADERS)
    headers: list[Header] = []
    for _ in range(count):
        name, at = read_field(view, at, end)
        if name is None:
            raise ValueError(HEADERS)
        content, at = read_field(view, at, end)
        headers.append((str(name, "utf-8", "replace"), None if content is None else bytes(content)))
    if at != end:
        raise IndexError
    if batch.has_append_time:
        timestamp_ms = batch.max_timestamp_ms
    else:
        timestamp_ms = _wrapped(batch.first_timestamp_ms + timestamp_delta)
    offset = _wrapped(batch.base_offset + offset_delta)
    return Message(offset, key, value, timestamp_ms, batch.timestamp_type, tuple(headers))


def read_field(view: memoryview, at: int, end: int) -> tuple[memoryview | None, int]:
    """A field of a record, and the position after it. IndexError if that is above `end`."""
    length, at = read_varint(view, at, end)
    if length < 0:
        return None, at
    if length > end - at:
        raise IndexError
    return view[at : at + length], at + length


def _encoded(message: Message, base_offset: int, first_ms: int) -> bytes:
    return record(
        message.timestamp_ms - first_ms,
        message.offset - base_offset,
        message.key,
        message.value,
        encoded_headers(message.headers),
    )


def record(
    time_delta: int,
    offset_delta: int,
    key: Buffer | None,
    value: Buffer | None,
    headers: Buffer = b"\0",
) -> bytes:
    """A record; `headers`: their number and themselves, as `encoded_headers` makes them."""
    body = b"".join(
        (
            b"\0",
            varint(time_delta, 64),
            varint(offset_delta),
            prefixed(key),
            prefixed(value),
            headers,
        )
    )
    return varint(len(body)) + body


def encoded_headers(headers: Iterable[Header]) -> bytes:
    """The headers of a record, behind their number. TypeError if one is not a pair of text and
    bytes or None."""
    pieces = []
    for one in headers:
        if not isinstance(one, tuple) or len(one) != 2:
            raise TypeError(f"a header is a pair (name, bytes or None), not {one!r}")
        name, content = one
        if not isinstance(name, str) or not isinstance(content, bytes | bytearray | None):
            raise TypeError(f"a header is text and bytes or None, not {one!r}")
        pieces.append(prefixed(name.encode()) + prefixed(content))
    return varint(len(pieces)) + b"".join(pieces)


def sent_batch(records: Buffer, count: int, first_ms: int, max_ms: int) -> bytearray:
    """A batch as a producer sends it first: of offset 0, no producer and no codec."""
    checked = _CHECKED.pack(0, count - 1, first_ms, max_ms, -1, -1, -1, count)
    built = bytearray(_OFFSETS.pack(0, _HEAD.size + len(records) - 12, -1))
    built += b"\2" + _CRC.pack(crc32c(records, crc32c(checked))) + checked + bytes(records)
    return built


def packed(batch: Buffer, codec: int, records: Buffer, checksum: Checksum = crc32c) -> bytearray:
    """A batch that was not compressed with its `records` as `codec` has compressed them."""
    built = bytearray(memoryview(batch)[: _HEAD.size])
    built += records
    _SIZE.pack_into(built, 8, len(built) - 12)
    built[V2.codec_position] |= codec
    _sign(built, checksum)
    return built


def transactional_producer(data: Buffer) -> tuple[int, int] | None:
    """Id and epoch of the producer, if the entry that begins here is a transactional batch."""
    if len(data) < _HEAD.size:
        return None
    magic, attributes, producer_id, epoch = _SENDER.unpack_from(data)
    is_transactional = magic == RECORDS_MAGIC and attributes & TRANSACTIONAL_BIT
    return (producer_id, epoch) if is_transactional else None


def stamp(
    batch: bytearray,
    producer_id: int,
    epoch: int,
    sequence: int,
    *,
    is_transactional: bool = False,
    is_control: bool = False,
    checksum: Checksum = crc32c,
) -> None:
    """Write into a batch who sent it, and as which of its records."""
    _PRODUCER.pack_into(batch, 43, producer_id, epoch, sequence)
    bits = batch[V2.codec_position] & ~(TRANSACTIONAL_BIT | CONTROL_BIT)
    bits |= TRANSACTIONAL_BIT if is_transactional else 0
    batch[V2.codec_position] = bits | (CONTROL_BIT if is_control else 0)
    _sign(batch, checksum)


def place(batch: bytearray | memoryview, base_offset: int, leader_epoch: int) -> None:
    """Write into a batch where its leader appends it."""
    _OFFSETS.pack_into(batch, 0, base_offset, len(batch) - ENTRY_HEADER_BYTES, leader_epoch)


def _sign(batch: bytearray, checksum: Checksum) -> None:
    checked = memoryview(batch)[V2.crc_start :]
    _CRC.pack_into(batch, V2.crc_position, checksum(checked))


def prefixed(field: Buffer | None) -> bytes:
    """A field of a record: its length and itself."""
    return varint(-1) if field is None else varint(len(field)) + bytes(field)


def _wrapped(value: int) -> int:
    """`value` in 64 bits, for sums in damaged batches."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)
