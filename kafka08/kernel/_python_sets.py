"""Message sets without decompression: validate, number, search, recover; read and build entries
(twin).

Source: kafka.message.ByteBufferMessageSet, kafka.message.Message, kafka.log.FileMessageSet and
kafka.log.Log.analyzeAndValidateMessageSet 0.8.2.2; timestamps as in
org.apache.kafka.common.record 0.10.2.2.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from struct import Struct
from typing import Final

from kafka08.format import FORMATS, Batch, RecordFormat, batches, format_of
from kafka08.kernel.types import (
    ATTRIBUTES_POSITION,
    CODEC_MASK,
    CRC_END,
    ENTRY_HEADER,
    ENTRY_HEADER_BYTES,
    LENGTH,
    MAGIC_POSITION,
    MAX_CODEC,
    MAX_MAGIC,
    MAX_RECORDS_CODEC,
    MAX_SET_BYTES,
    MIN_MESSAGE_BYTES,
    NO_TIMESTAMP,
    NO_TIMESTAMP_TYPE,
    OTHER_MAGIC_BIT,
    TIMESTAMP_POSITION,
    TIMESTAMP_TYPE_BIT,
    Buffer,
    CorruptMessage,
    EntryTooLarge,
    KeyAndValue,
    RecoverResult,
    Run,
    UnknownCodec,
)

MESSAGE: Final = Struct(">Ibb")
"""crc, magic, attributes; the crc covers everything after itself."""
OFFSET: Final = Struct(">q")
CRC: Final = Struct(">I")
MESSAGES: Final = FORMATS[0]
"""Of magic 1 the CRC is the same."""
MAX_OFFSET: Final = (1 << 63) - 1


def crc32(data: Buffer, value: int = 0) -> int:
    """CRC-32 (zlib's polynomial) of `data`, continued from `value`."""
    return zlib.crc32(data, value)


def new_buffer(size: int) -> bytearray:
    """A bytearray of `size` bytes, in the compiled kernel with undefined content: only for bytes
    that are received at once. ValueError or SystemError for a negative size."""
    return bytearray(size)


class SetSummary:
    """The summary of a set's entries.

    count          complete entries (a wrapper counts as one)
    size           their bytes, without a partial entry at the end
    first_offset   base offset of the first entry, -1 if there is none; the new one if the set was
                   numbered
    last_offset    of the last entry, likewise
    codec          of the last compressed entry, 0 if none is compressed
    largest_entry  bytes of the largest entry, its header included
    monotonic      offsets increase, and none is negative
    magics         bit 0: an entry has magic 0; bit 1: magic 1; …; OTHER_MAGIC_BIT: an unknown one
    max_timestamp_ms      the largest of the entries' own timestamps, -1 if there is none
    max_timestamp_offset  last offset of the first entry with this timestamp, -1 if there is none
    """

    __slots__ = (
        "codec",
        "count",
        "first_offset",
        "largest_entry",
        "last_offset",
        "magics",
        "max_timestamp_ms",
        "max_timestamp_offset",
        "monotonic",
        "size",
    )

    count: int
    size: int
    first_offset: int
    last_offset: int
    codec: int
    largest_entry: int
    monotonic: bool
    magics: int
    max_timestamp_ms: int
    max_timestamp_offset: int

    def __init__(self) -> None:
        self.count = self.size = self.codec = self.largest_entry = self.magics = 0
        self.first_offset = self.last_offset = -1
        self.max_timestamp_ms = NO_TIMESTAMP
        self.max_timestamp_offset = -1
        self.monotonic = True

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)}" for name in sorted(self.__slots__))
        return f"SetSummary({fields})"


def count_in(summary: SetSummary, batch: Batch) -> None:
    """Count an entry."""
    if not summary.count:
        summary.first_offset = batch.base_offset
    summary.monotonic = summary.monotonic and batch.base_offset > summary.last_offset
    summary.last_offset = batch.last_offset
    summary.count += 1
    summary.size += batch.size
    summary.largest_entry = max(summary.largest_entry, batch.size)
    summary.codec = batch.codec or summary.codec
    summary.magics |= 1 << batch.magic if batch.magic in FORMATS else OTHER_MAGIC_BIT
    if batch.max_timestamp_ms > summary.max_timestamp_ms:
        summary.max_timestamp_ms = batch.max_timestamp_ms
        summary.max_timestamp_offset = batch.last_offset


def walk(view: memoryview) -> Iterator[tuple[int, int, int]]:
    """(position, offset, entry bytes) of each complete entry, up to the end or a partial entry."""
    position = 0
    end = len(view)
    while end - position >= ENTRY_HEADER_BYTES:
        offset, size = ENTRY_HEADER.unpack_from(view, position)
        if size < MIN_MESSAGE_BYTES:
            raise CorruptMessage(position, offset, f"message with corrupt size {size}")
        if size > end - position - ENTRY_HEADER_BYTES:
            return
        yield position, offset, ENTRY_HEADER_BYTES + size
        position += ENTRY_HEADER_BYTES + size


def check_crc(view: memoryview, position: int, offset: int, size: int) -> None:
    """Raise CorruptMessage unless the entry's stored CRC is that of its bytes."""
    start = position + ENTRY_HEADER_BYTES
    (stored,) = CRC.unpack_from(view, start)
    computed = zlib.crc32(view[position + CRC_END : position + size])
    if stored != computed:
        raise CorruptMessage(
            position, offset, f"stored crc {stored} is not the computed crc {computed}"
        )


def codec_of(view: memoryview, position: int) -> int:
    """Codec of the message at `position`; UnknownCodec if 0.8 has no such codec."""
    codec = view[position + ATTRIBUTES_POSITION] & CODEC_MASK
    if codec > MAX_CODEC:
        raise UnknownCodec(codec)
    return codec


def signed64(value: int) -> int:
    """`value` wrapped around to 64 bits, for sums of offsets in corrupt wrappers."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def timestamp_of(view: memoryview, position: int) -> int:
    """Timestamp of the complete entry at `position`; even MIN_MESSAGE_BYTES have room for it."""
    if view[position + MAGIC_POSITION] != 1:
        return NO_TIMESTAMP
    return int(OFFSET.unpack_from(view, position + TIMESTAMP_POSITION)[0])


def timestamp_type_of(view: memoryview, position: int) -> int:
    """CREATE_TIME or LOG_APPEND_TIME; NO_TIMESTAMP_TYPE for magic 0."""
    if view[position + MAGIC_POSITION] != 1:
        return NO_TIMESTAMP_TYPE
    return int(bool(view[position + ATTRIBUTES_POSITION] & TIMESTAMP_TYPE_BIT))


def validate(data: Buffer, max_entry_bytes: int, verify_crc: bool = True) -> SetSummary:
    """Check sizes and, unless told otherwise, CRC of every entry, as a leader does before it
    appends.

    Raises for the first invalid entry: CorruptMessage (size below 14, CRC), EntryTooLarge (entry
    above `max_entry_bytes`; checked before the CRC), UnknownCodec. Does not check magic, other
    attributes, key and value lengths, and the contents of wrappers and record batches.
    """
    return _check(memoryview(data), max_entry_bytes, None, verify_crc)


def validate_and_assign(
    data: Buffer, base_offset: int, max_entry_bytes: int, verify_crc: bool = True
) -> SetSummary:
    """`validate` for a set of messages (magic 0 and 1), and number the entries from `base_offset`
    in the same pass. An entry of another magic is taken for a message.

    If the summary's codec is not 0, offsets in `data` and in the summary are meaningless: the
    caller must decompress the set and number its messages. Offsets in `data` are meaningless after
    an error, too. BufferError if `data` is read-only, OverflowError if offsets would exceed 63
    bits.
    """
    view = writable(data)
    check_base_offset(base_offset, len(view))
    return _check(view, max_entry_bytes, base_offset, verify_crc)


def _check(
    view: memoryview, max_entry_bytes: int, base_offset: int | None, verify_crc: bool
) -> SetSummary:
    summary = SetSummary()
    are_messages = base_offset is not None
    for batch in message_batches(view) if are_messages else batches(view):
        if batch.size > max_entry_bytes:
            raise EntryTooLarge(batch.position, batch.size, max_entry_bytes)
        if verify_crc:
            (MESSAGES if are_messages else format_of(batch.magic)).check_crc(view, batch)
        check_codec(batch, is_message=are_messages)
        if base_offset is not None:
            batch = numbered(view, batch, base_offset + summary.count)
        count_in(summary, batch)
    return summary


def message_batches(view: memoryview) -> Iterator[Batch]:
    """The complete entries of a set of messages: one of an unknown magic is taken for magic 0."""
    for position, _, _ in walk(view):
        yield FORMATS[int(view[position + MAGIC_POSITION] == 1)].batch(view, position)


def check_codec(batch: Batch, *, is_message: bool = False) -> None:
    """UnknownCodec if there is no such codec in its format; `is_message`: whatever its magic."""
    if batch.codec > (MAX_RECORDS_CODEC if has_records(batch) and not is_message else MAX_CODEC):
        raise UnknownCodec(batch.codec)


def numbered(view: memoryview, message: Batch, offset: int) -> Batch:
    """An entry of magic 0 or 1 with a new offset, which is written."""
    OFFSET.pack_into(view, message.position, offset)
    return message._replace(base_offset=offset, last_offset=offset)


def writable(data: Buffer) -> memoryview:
    view = memoryview(data)
    if view.readonly:
        raise BufferError("Object is not writable.")
    return view


def check_base_offset(base_offset: int, size: int) -> None:
    if not 0 <= base_offset <= MAX_OFFSET - size:
        raise OverflowError(f"base offset {base_offset} is out of range")


def recover(
    data: Buffer,
    index_interval: int,
    since_last_index: int,
    max_timestamp_ms: int = NO_TIMESTAMP,
    max_timestamp_offset: int = -1,
) -> RecoverResult:
    """Check the entries of a segment's chunk that starts at an entry; see RecoverResult.

    An entry gets an index point if it is more than `index_interval` bytes after the previous one.
    `max_timestamp_ms` and `max_timestamp_offset` are the result of the previous chunk. Corrupt data
    raises no error. Source: kafka.log.LogSegment.recover.
    """
    view = memoryview(data)
    points: list[tuple[int, int, int]] = []
    time_points: list[tuple[int, int]] = []
    valid_bytes = count = 0
    last_offset = -1
    error: CorruptMessage | None = None
    try:
        for batch in batches(view):
            format_of(batch.magic).check_crc(view, batch)
            if batch.max_timestamp_ms > max_timestamp_ms:
                max_timestamp_ms = batch.max_timestamp_ms
                max_timestamp_offset = batch.last_offset
            if since_last_index > index_interval:
                codec = 0 if has_records(batch) else batch.codec
                points.append((batch.position, batch.base_offset, codec))
                time_points.append((max_timestamp_ms, max_timestamp_offset))
                since_last_index = 0
            since_last_index += batch.size
            valid_bytes += batch.size
            last_offset = batch.last_offset
            count += 1
    except CorruptMessage as found:
        error = found
    return RecoverResult(
        valid_bytes,
        last_offset,
        count,
        points,
        since_last_index,
        error,
        time_points,
        max_timestamp_ms,
        max_timestamp_offset,
    )


def runs(data: Buffer) -> list[Run]:
    """The set's complete entries as runs: one for consecutive plain messages, one for each wrapper
    and each record batch.

    CorruptMessage on an impossible size, UnknownCodec. Does not verify CRCs.
    """
    found: list[Run] = []
    for batch in batches(data):
        check_codec(batch)
        run = Run(batch.position, batch.end, batch.codec, has_records(batch))
        if found and not any((run.codec, run.has_records, *found[-1][2:])):
            run = run._replace(start=found.pop().start)
        found.append(run)
    return found


def has_records(batch: Batch) -> bool:
    """Whether the entry is a batch of records, not a message or a wrapper."""
    return isinstance(format_of(batch.magic), RecordFormat)


class MessageAndOffset:
    """One entry of a set; a wrapper's value is the compressed inner set.

    offset          as stored
    position        its first byte in the given data
    size            its size field: the bytes of the message (`entry_size`, 12 more, those of the
                    entry)
    timestamp_ms    -1 for magic 0, and if the producer set none
    timestamp_type  NO_TIMESTAMP_TYPE, CREATE_TIME or LOG_APPEND_TIME
    key, value      None for null
    """

    __slots__ = (
        "attributes",
        "crc",
        "key",
        "magic",
        "offset",
        "position",
        "size",
        "timestamp_ms",
        "value",
    )

    def __init__(
        self,
        offset: int,
        magic: int,
        attributes: int,
        crc: int,
        key: bytes | None,
        value: bytes | None,
        position: int,
        size: int,
        timestamp_ms: int = -1,
    ) -> None:
        self.offset = offset
        self.magic = magic
        self.attributes = attributes
        self.crc = crc
        self.key = key
        self.value = value
        self.position = position
        self.size = size
        self.timestamp_ms = timestamp_ms

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def timestamp_type(self) -> int:
        if self.magic != 1:
            return NO_TIMESTAMP_TYPE
        return int(bool(self.attributes & TIMESTAMP_TYPE_BIT))

    @property
    def entry_size(self) -> int:
        return ENTRY_HEADER_BYTES + self.size

    def __repr__(self) -> str:
        return (
            f"MessageAndOffset(offset={self.offset}, magic={self.magic}, "
            f"attributes={self.attributes}, key={self.key!r}, value={self.value!r})"
        )


def entries(data: Buffer, verify_crc: bool = False) -> Iterator[MessageAndOffset]:
    """The complete entries of a set, without decompression.

    CorruptMessage on a size below 14, a wrong CRC (if `verify_crc`), key or value lengths beyond
    the message, or a magic other than 0 and 1.
    """
    view = memoryview(data)
    for position, offset, size in walk(view):
        if verify_crc:
            check_crc(view, position, offset, size)
        crc, magic, attributes = MESSAGE.unpack_from(view, position + ENTRY_HEADER_BYTES)
        timestamp_ms, key, value = fields(view, position, offset, size)
        yield MessageAndOffset(
            offset,
            magic,
            attributes & 0xFF,
            crc,
            None if key is None else bytes(key),
            None if value is None else bytes(value),
            position,
            size - ENTRY_HEADER_BYTES,
            timestamp_ms,
        )


def fields(
    view: memoryview, position: int, offset: int, size: int
) -> tuple[int, memoryview | None, memoryview | None]:
    """(timestamp or -1, key, value) of the complete entry at `position`; key and value are views.

    As in the JVM, bytes after the value are ignored, and every negative length is null.
    """
    magic = view[position + MAGIC_POSITION]
    if magic > 1:
        raise CorruptMessage(position, offset, f"magic {magic} is not known")
    end = position + size
    at = position + ENTRY_HEADER_BYTES + MESSAGE.size
    timestamp_ms = -1
    if magic == 1:
        (timestamp_ms,) = OFFSET.unpack_from(view, at)  # MIN_MESSAGE_BYTES has room for it
        at += OFFSET.size
    key, at = _field(view, at, end, position, offset)
    value, at = _field(view, at, end, position, offset)
    return timestamp_ms, key, value


def _field(
    view: memoryview, at: int, end: int, position: int, offset: int
) -> tuple[memoryview | None, int]:
    if end - at < LENGTH.size:
        raise CorruptMessage(position, offset, "key or value extends beyond the message")
    (length,) = LENGTH.unpack_from(view, at)
    at += LENGTH.size
    if length < 0:
        return None, at
    if length > end - at:
        raise CorruptMessage(position, offset, "key or value extends beyond the message")
    return view[at : at + length], at + length


def build_set(
    messages: Iterable[KeyAndValue],
    base_offset: int = 0,
    attributes: int = 0,
    magic: int = 0,
    timestamps: Iterable[int] | int | None = None,
) -> bytearray:
    """A set of entries, numbered from `base_offset`; iterates over `messages` once.

    `timestamps` (for magic 1) has one for each message, or is that of all; without it messages have
    none (-1).
    ValueError if their number differs, or if the magic is unknown. OverflowError above 2 GiB - 1,
    or if offsets would exceed 63 bits.
    """
    check_magic(magic)
    pairs = list(messages)
    check_base_offset(base_offset, len(pairs))
    one = NO_TIMESTAMP if timestamps is None else timestamps
    times = [one] * len(pairs) if isinstance(one, int) else list(one)
    check_timestamps(magic, timestamps is not None, len(times), len(pairs))
    built = bytearray()
    for offset, ((key, value), time) in enumerate(zip(pairs, times, strict=True), base_offset):
        append_entry(built, offset, attributes, key, value, magic, time)
    return built


def check_magic(magic: int) -> None:
    if not 0 <= magic <= MAX_MAGIC:
        raise ValueError(f"magic {magic} cannot be written")


def check_timestamps(magic: int, given: bool, timestamps: int, messages: int) -> None:
    if given and magic == 0:
        raise ValueError("messages of magic 0 have no timestamps")
    if timestamps != messages:
        raise ValueError(f"{timestamps} timestamps for {messages} messages")


def wrap(
    value: Buffer,
    offset: int,
    codec: int,
    magic: int = 0,
    timestamp_ms: int = NO_TIMESTAMP,
    log_append_time: bool = False,
) -> bytearray:
    """A wrapper: one entry with a null key and `value`, a set compressed with `codec`.

    `offset` is that of the last message inside. `timestamp_ms` and its type are for magic 1.
    """
    check_magic(magic)
    built = bytearray()
    attributes = codec | TIMESTAMP_TYPE_BIT if magic and log_append_time else codec
    append_entry(built, offset, attributes, None, value, magic, timestamp_ms)
    return built


def append_entry(
    built: bytearray,
    offset: int,
    attributes: int,
    key: Buffer | None,
    value: Buffer | None,
    magic: int = 0,
    timestamp_ms: int = NO_TIMESTAMP,
) -> None:
    """Append one entry to `built`."""
    body = bytearray((magic, attributes & 0xFF))
    if magic:
        body += OFFSET.pack(timestamp_ms)
    for field in (key, value):
        if field is None:
            body += LENGTH.pack(-1)
        else:
            view = memoryview(field).cast("B")
            body += LENGTH.pack(len(view)) if len(view) <= MAX_SET_BYTES else _refuse_size()
            body += view
    if len(built) + ENTRY_HEADER_BYTES + CRC.size + len(body) > MAX_SET_BYTES:
        _refuse_size()
    built += ENTRY_HEADER.pack(offset, CRC.size + len(body))
    built += CRC.pack(zlib.crc32(body))
    built += body


def _refuse_size() -> bytes:
    raise OverflowError(f"a message set may have at most {MAX_SET_BYTES} bytes")
