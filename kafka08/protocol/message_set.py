"""Message sets: producers encode them, leaders check and number them, consumers decode them.

A set is a sequence of entries `offset:i64 size:i32 message[size]`; the last may be incomplete. In a
compressed set the entries are the value of one wrapper message, whose offset is that of the last
inner message; inner offsets are absolute in magic 0, relative in magic 1 (0.10). Everything here is
pure and thread-safe, and long loops release the GIL. `prepare` implements a leader of 0.8,
`validation.prepare` later ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from struct import error
from typing import Final

from kafka08 import kernel
from kafka08.config import LONG_MAX
from kafka08.errors import (
    ApiError,
    InvalidMessage,
    InvalidTimestamp,
    MessageSetSizeTooLarge,
    MessageSizeTooLarge,
    UnknownError,
    UnpacksTooLarge,
)
from kafka08.format import batch_at, codec_of
from kafka08.format.v2 import V2, packed
from kafka08.kernel.types import (
    ATTRIBUTES_POSITION,
    ENTRY_HEADER,
    ENTRY_HEADER_BYTES,
    LENGTH,
    MAGIC_POSITION,
    MAX_MAGIC,
    MAX_NESTING,
    MIN_MESSAGE_BYTES,
    NO_TIMESTAMP,
    RECORDS_MAGIC,
    TIMESTAMP_BYTES,
    TIMESTAMP_POSITION,
    Messages,
    Rules,
    Unpacker,
)
from kafka08.protocol import compression
from kafka08.protocol.types import Buffer

MAX_UNPACKED_BYTES: Final = 100 << 20
"""A leader decompresses at most so much of one set: with the default socket.request.max.bytes, no
larger set could have been sent uncompressed. The JVM has no such limit."""
MAX_STORED_UNPACKED_BYTES: Final = 1 << 30
"""Limit for a wrapper in a local log, which a JVM leader may have accepted."""
NO_LIMIT: Final = LONG_MAX
TIMESTAMP_END: Final = TIMESTAMP_POSITION + TIMESTAMP_BYTES
"""In an entry of magic 1."""
KEY_LENGTH_POSITION: Final = ATTRIBUTES_POSITION + 1
"""In an entry of magic 0."""


def encode(
    messages: Messages,
    codec: int = compression.NONE,
    base_offset: int = 0,
    magic: int = 0,
    timestamps: Sequence[int] | None = None,
) -> bytes:
    """A set of (key, value) pairs, None for null; in one wrapper if `codec` is not 0.

    `timestamps`: one for each message of magic 1; without it, none has a timestamp.
    """
    is_relative = magic > 0 and codec != compression.NONE
    first_offset = 0 if is_relative else base_offset
    entries = kernel.build_set(messages, first_offset, magic=magic, timestamps=timestamps)
    if codec == compression.NONE or not messages:
        return bytes(entries)
    last_offset = base_offset + len(messages) - 1
    max_timestamp_ms = max(timestamps or (), default=NO_TIMESTAMP)
    return bytes(pack(entries, codec, last_offset, magic, max(max_timestamp_ms, NO_TIMESTAMP)))


def pack(
    entries: Buffer,
    codec: int,
    last_offset: int,
    magic: int = 0,
    timestamp_ms: int = NO_TIMESTAMP,
    log_append_time: bool = False,
) -> bytearray:
    """One wrapper around `entries`, a set whose last message has `last_offset` in the log; of
    magic 2 `entries`, a plain batch, with its records compressed."""
    if magic == RECORDS_MAGIC:
        records = compression.compress(codec, memoryview(entries)[V2.head_bytes :], magic)
        return packed(entries, codec, records, kernel.crc32c)
    value = compression.compress(codec, entries, magic)
    return kernel.wrap(value, last_offset, codec, magic, timestamp_ms, log_append_time)


unpack: Final = Unpacker(compression.decompress, MAX_STORED_UNPACKED_BYTES)
"""(codec, value of a wrapper) → its inner set: readers of a log pass it to the kernel as
`decompress`. Nested wrappers share the limit."""


def fetched_unpacker(fetch_bytes: int) -> Unpacker:
    """`unpack` for wrappers in the response to a fetch of `fetch_bytes` (fetch.message.max.bytes):
    at most MAX_UNPACKED_BYTES, or `fetch_bytes` if that is more. So a broker cannot make a client
    allocate a thousand times what it sends. The JVM has no limit."""
    return Unpacker(_unpack_fetched, max(MAX_UNPACKED_BYTES, fetch_bytes))


def _unpack_fetched(codec: int, value: Buffer, max_bytes: int) -> bytes | bytearray:
    try:
        return compression.decompress(codec, value, max_bytes)
    except compression.UnpacksToMore as error:
        raise compression.UnpacksToMore(
            f"{error}; a larger fetch size (fetch.message.max.bytes) allows more"
        ) from error


def decode(
    data: Buffer, from_offset: int = 0, topic: str = "", partition: int = 0
) -> kernel.MessageIterator:
    """The messages of a fetched set from `from_offset` on, decompressed. See kernel.messages."""
    return kernel.messages(data, topic, partition, from_offset, unpack)


def begins_compressed(data: Buffer) -> bool:
    """Whether the first entry is compressed: then `prepare` must decompress and compress `data`. A
    later compressed entry would need that, too, but no known client
    sends a plain one before it."""
    return codec_of(data) != compression.NONE


def begins_whole(data: Buffer) -> bool:
    """Whether the first entry is complete."""
    if len(data) < ENTRY_HEADER_BYTES:
        return False
    return bool(ENTRY_HEADER.unpack_from(data)[1] <= len(data) - ENTRY_HEADER_BYTES)


def is_plausible(start: Buffer) -> bool:
    """Whether the size of the entry that begins here agrees with the lengths of its key and value,
    as far as they are in `start`. Before its CRC can be checked, this tells a large message from a
    damaged size."""
    if len(start) <= MAGIC_POSITION or start[MAGIC_POSITION] > MAX_MAGIC:
        return False
    stamp_bytes = TIMESTAMP_BYTES * start[MAGIC_POSITION]
    key_at = KEY_LENGTH_POSITION + stamp_bytes
    if len(start) < key_at + LENGTH.size:
        return False
    key_and_value = ENTRY_HEADER.unpack_from(start)[1] - MIN_MESSAGE_BYTES - stamp_bytes
    key_bytes = max(0, LENGTH.unpack_from(start, key_at)[0])
    value_at = key_at + LENGTH.size + key_bytes
    if len(start) < value_at + LENGTH.size:
        return bool(key_bytes <= key_and_value)
    return bool(key_and_value == key_bytes + max(0, LENGTH.unpack_from(start, value_at)[0]))


def pieces(data: Buffer, max_bytes: int) -> Iterator[memoryview]:
    """The whole entries of a checked set, in pieces of at most `max_bytes`; an entry that is larger
    is a piece of its own."""
    view, position = memoryview(data), 0
    while len(view) - position >= ENTRY_HEADER_BYTES:
        size = kernel.validate(view[position : position + max_bytes], NO_LIMIT, False).size
        if not size:
            size = ENTRY_HEADER_BYTES + ENTRY_HEADER.unpack_from(view, position)[1]
            if size > len(view) - position:
                return  # the last entry is not whole
        yield view[position : position + size]
        position += size


def first_timestamp(data: Buffer) -> int:
    """The timestamp of the first entry, in ms; NO_TIMESTAMP without one, and for an entry that has
    fewer than TIMESTAMP_END bytes."""
    with suppress(kernel.CorruptMessage):
        batch = batch_at(data)
        return NO_TIMESTAMP if batch is None else batch.max_timestamp_ms
    return NO_TIMESTAMP


@dataclass(slots=True)
class PreparedSet:
    """A set that a leader appends: complete entries with offsets from `first_offset` on.

    data          the bytes to write: a slice of the caller's buffer, unless it was recompressed
    first_offset  -1 if the set was empty
    last_offset   first_offset - 1 if a wrapper had no message
    count         number of messages, including those in wrappers
    codec         of the one wrapper of the set, 0 if it is not compressed
    max_timestamp_ms      the largest timestamp, -1 without one
    max_timestamp_offset  its offset in the time index, -1 without one
    log_append_time_ms    for the producer's response; -1 unless the topic uses LogAppendTime
    unpacked_bytes        of the messages, if they were unpacked or compressed for this, else 0
    """

    data: Buffer
    first_offset: int
    last_offset: int
    count: int
    codec: int
    max_timestamp_ms: int = NO_TIMESTAMP
    max_timestamp_offset: int = -1
    log_append_time_ms: int = NO_TIMESTAMP
    unpacked_bytes: int = 0

    @property
    def size(self) -> int:
        return len(self.data)


def prepare(
    data: Buffer,
    base_offset: int,
    max_message_bytes: int,
    max_set_bytes: int,
    max_unpacked_bytes: int = MAX_UNPACKED_BYTES,
    *,
    target_codec: int | None = None,
    rules: Rules | None = None,
) -> PreparedSet:
    """Check a produced set and assign offsets from `base_offset`, before a leader appends it.

    A partial entry at the end is cut off. An uncompressed set gets its offsets in place: `data`
    must be writable. If any entry is compressed, the whole set, including plain entries and nested
    wrappers, goes into one wrapper with the last codec in it; inner messages keep their bytes and
    CRCs, which are not checked again.

    From 0.9 on `target_codec` is the topic's compression.type (None: "producer"), which replaces
    that codec, and `rules` say whether messages need keys.

    InvalidMessage: size below 14 (inside wrappers too), CRC, or a missing key.
    MessageSizeTooLarge: an entry, its 12-byte header included, above `max_message_bytes`, before or
    after repacking.
    MessageSetSizeTooLarge: all entries together above `max_set_bytes`. UnknownError: unknown
    codec, or a wrapper that cannot be decompressed; UnpacksTooLarge if the wrappers decompress to
    more than `max_unpacked_bytes`.
    After an error the offsets in `data` are undefined. Source: kafka.log.Log.append 0.8.2.2 and
    0.9.0.1.
    """
    try:
        summary = kernel.validate_and_assign(data, base_offset, max_message_bytes)
        codec = summary.codec if target_codec is None else target_codec
        entries = memoryview(data)[: summary.size]
        if rules is not None and not summary.codec:
            kernel.check_messages(entries, rules, 0)
        if summary.codec or (codec and summary.count):
            limit = NO_LIMIT if codec else max_message_bytes
            prepared = _repack(entries, base_offset, codec, limit, max_unpacked_bytes, rules)
            if codec and prepared.size > max_message_bytes:
                raise kernel.EntryTooLarge(0, prepared.size, max_message_bytes)
        else:
            prepared = in_place(data, summary)
    except ValueError as cause:
        raise produce_error(cause) from cause
    return fitting(prepared, max_set_bytes)


def fitting(prepared: PreparedSet, max_set_bytes: int) -> PreparedSet:
    """`prepared`; MessageSetSizeTooLarge if no segment can hold it."""
    if prepared.size > max_set_bytes:
        raise MessageSetSizeTooLarge(
            f"message set of {prepared.size} bytes, but segments have at most {max_set_bytes}"
        )
    return prepared


def produce_error(cause: ValueError) -> ApiError:
    """The error of the response to a producer, for an error of the kernel or a codec."""
    match cause:
        case kernel.CorruptMessage():
            return InvalidMessage(str(cause))
        case kernel.EntryTooLarge():
            return MessageSizeTooLarge(str(cause))
        case kernel.BadTimestamp():
            return InvalidTimestamp(str(cause))
        case compression.UnpacksToMore():
            return UnpacksTooLarge(str(cause))
    return UnknownError(str(cause))


def in_place(data: Buffer, summary: kernel.SetSummary) -> PreparedSet:
    """The caller's buffer up to the end of its last complete entry."""
    whole = summary.size == len(data)
    return PreparedSet(
        data if whole else memoryview(data)[: summary.size],
        summary.first_offset,
        summary.last_offset,
        summary.count,
        summary.codec,
        summary.max_timestamp_ms,
        summary.max_timestamp_offset,
    )


def _repack(
    entries: memoryview,
    base_offset: int,
    codec: int,
    max_message_bytes: int,
    max_unpacked_bytes: int,
    rules: Rules | None,
) -> PreparedSet:
    """One wrapper of `codec` around every message in `entries`, with new offsets; a plain set if
    `codec` is none."""
    runs = list(_Flattened(max_unpacked_bytes).runs(entries))
    # Mostly the content of one wrapper; offsets can be assigned in that buffer.
    only_one = len(runs) == 1 and not runs[0].readonly
    messages = runs[0] if only_one else bytearray().join(runs)
    summary = kernel.validate_and_assign(messages, base_offset, max_message_bytes, verify_crc=False)
    if rules is not None:
        kernel.check_messages(messages, rules, 0)
    last_offset = base_offset + summary.count - 1
    packed: Buffer = b"" if codec else messages
    if summary.count and codec:
        packed = kernel.wrap(compression.compress(codec, messages), last_offset, codec)
    return PreparedSet(
        packed, base_offset, last_offset, summary.count, codec, unpacked_bytes=len(messages)
    )


class _Flattened:
    """The plain entries of a set and of all wrappers in it, down to MAX_NESTING levels."""

    def __init__(self, max_unpacked_bytes: int) -> None:
        self._left = max_unpacked_bytes

    def runs(self, entries: memoryview, depth: int = 0) -> Iterator[memoryview]:
        """Yields runs of plain entries, in order. ValueError for a wrapper it cannot decompress."""
        if depth > MAX_NESTING:
            raise ValueError(f"more than {MAX_NESTING} levels of compressed messages")
        for run in kernel.runs(entries):
            if not run.codec:
                yield entries[run.start : run.end]
                continue
            value = wrapper_value(entries[run.start : run.end])
            inner = compression.decompress(run.codec, value, self._left, strict=True)
            self._left -= len(inner)
            yield from self.runs(memoryview(inner), depth + 1)


def wrapper_value(entry: memoryview, magic: int = 0) -> memoryview:
    """The value of an entry, parsed as `magic`, which may differ from its own. ValueError without a
    value.

    # 0.8: a wrapper of magic 1 fails when parsed as magic 0, as its timestamp is taken for the
    # length of a key.
    """
    key_position = KEY_LENGTH_POSITION + TIMESTAMP_BYTES * magic
    try:
        (key_length,) = LENGTH.unpack_from(entry, key_position)
        position = key_position + LENGTH.size + max(0, key_length)
        (length,) = LENGTH.unpack_from(entry, position)
    except error as cause:
        raise ValueError("compressed message without a value") from cause
    value = entry[position + LENGTH.size :]
    if not 0 <= length <= len(value):
        raise ValueError(f"compressed message with a value of {length} bytes")
    return value[:length]
