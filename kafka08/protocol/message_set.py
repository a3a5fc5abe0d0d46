"""Message sets: made by producers, read by consumers, checked and numbered by leaders.

A set is entries `offset:i64 size:i32 message[size]` one after the other; the last may be cut off.
In a compressed set the entries are the value of one wrapper message, whose offset is that of the
last message inside; inner offsets are absolute. Everything here is pure and thread-safe, and the
long parts run with the GIL released.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from struct import error
from typing import Final

from kafka08 import kernel
from kafka08.config import LONG_MAX
from kafka08.errors import (
    ApiError,
    InvalidMessage,
    MessageSetSizeTooLarge,
    MessageSizeTooLarge,
    UnknownError,
)
from kafka08.kernel.types import (
    ATTRIBUTES_POSITION,
    CODEC_MASK,
    LENGTH,
    MAX_NESTING,
    Decompress,
    Messages,
)
from kafka08.protocol import compression
from kafka08.protocol.types import Buffer

MAX_UNPACKED_BYTES: Final = 100 << 20
"""What a leader unpacks of one set at most: a set that large could not have been sent
uncompressed under the default socket.request.max.bytes. The JVM has no such limit."""
MAX_STORED_UNPACKED_BYTES: Final = 1 << 30
"""What is unpacked at most of a wrapper in a log of ours: a JVM leader may have let it in."""
NO_LIMIT: Final = LONG_MAX
KEY_LENGTH_POSITION: Final = ATTRIBUTES_POSITION + 1
"""In an entry of magic 0."""


def encode(messages: Messages, codec: int = compression.NONE, base_offset: int = 0) -> bytes:
    """A set of (key, value) pairs, None for null; one wrapper around it if `codec` is not 0."""
    entries = kernel.build_set(messages, base_offset)
    if codec == compression.NONE or not messages:
        return bytes(entries)
    last_offset = base_offset + len(messages) - 1
    return bytes(kernel.wrap(compression.compress(codec, entries), last_offset, codec))


def unpack(codec: int, value: Buffer) -> bytes | bytearray:
    """The set inside a wrapper of a log: what its readers give the kernel as `decompress`."""
    return compression.decompress(codec, value, MAX_STORED_UNPACKED_BYTES)


def fetched_unpacker(fetch_bytes: int) -> Decompress:
    """`unpack` for wrappers that a broker sent when it was asked for `fetch_bytes`
    (fetch.message.max.bytes): at most MAX_UNPACKED_BYTES, or `fetch_bytes` if that is more. A
    broker cannot make a client take the thousandfold of what it sends. The JVM has no limit."""
    return partial(_unpack_fetched, max(MAX_UNPACKED_BYTES, fetch_bytes))


def _unpack_fetched(max_bytes: int, codec: int, value: Buffer) -> bytes | bytearray:
    try:
        return compression.decompress(codec, value, max_bytes)
    except compression.UnpacksToMore as error:
        raise compression.UnpacksToMore(
            f"{error}; a larger fetch size (fetch.message.max.bytes) allows more"
        ) from error


def decode(
    data: Buffer, from_offset: int = 0, topic: str = "", partition: int = 0
) -> kernel.MessageIterator:
    """The messages of a fetched set from `from_offset` on, unpacked. See kernel.messages."""
    return kernel.messages(data, topic, partition, from_offset, unpack)


def begins_compressed(data: Buffer) -> bool:
    """Whether the first entry is compressed, so that `prepare` has to unpack and pack `data`, some
    50 times the work. That holds for a compressed entry further on as well, but no client is known
    to send a plain one before it."""
    return len(data) > ATTRIBUTES_POSITION and bool(data[ATTRIBUTES_POSITION] & CODEC_MASK)


@dataclass(slots=True)
class PreparedSet:
    """A set as a leader appends it: whole entries, numbered from `first_offset`.

    data          the bytes to write: the caller's own buffer, cut, unless it was repacked
    first_offset  -1 if the set was empty
    last_offset   first_offset - 1 if a wrapper held no message
    count         messages, not entries: those in wrappers count
    codec         of the one wrapper that holds the set, 0 if it is not compressed
    """

    data: Buffer
    first_offset: int
    last_offset: int
    count: int
    codec: int

    @property
    def size(self) -> int:
        return len(self.data)


def prepare(
    data: Buffer,
    base_offset: int,
    max_message_bytes: int,
    max_set_bytes: int,
    max_unpacked_bytes: int = MAX_UNPACKED_BYTES,
) -> PreparedSet:
    """Check a produced set and number it from `base_offset`, as a leader does before it appends.

    A partial entry at the end is cut off. An uncompressed set is numbered in place: `data` must be
    writable. If any entry is compressed the whole set, plain entries and wrappers in wrappers
    included, goes into one wrapper of the last codec seen; the messages inside keep their bytes
    and their CRCs, which are not checked again.

    InvalidMessage: size below 14 (inside wrappers too) or CRC. MessageSizeTooLarge: an entry, its
    12-byte header included, above `max_message_bytes`, before or after repacking.
    MessageSetSizeTooLarge: all entries together above `max_set_bytes`. UnknownError: unknown
    codec, a wrapper that cannot be unpacked or unpacks to more than `max_unpacked_bytes`. After an
    error the offsets in `data` mean nothing. Source: kafka.log.Log.append 0.8.2.2.
    """
    try:
        summary = kernel.validate_and_assign(data, base_offset, max_message_bytes)
        if summary.codec:
            entries = memoryview(data)[: summary.size]
            prepared = _repack(entries, base_offset, summary.codec, max_unpacked_bytes)
            if prepared.size > max_message_bytes:
                raise kernel.EntryTooLarge(0, prepared.size, max_message_bytes)
        else:
            prepared = _in_place(data, summary)
    except ValueError as cause:
        raise _produce_error(cause) from cause
    if prepared.size > max_set_bytes:
        raise MessageSetSizeTooLarge(
            f"message set of {prepared.size} bytes, segments have at most {max_set_bytes}"
        )
    return prepared


def _produce_error(cause: ValueError) -> ApiError:
    """What a producer is told about an error of the kernel or a codec."""
    match cause:
        case kernel.CorruptMessage():
            return InvalidMessage(str(cause))
        case kernel.EntryTooLarge():
            return MessageSizeTooLarge(str(cause))
    return UnknownError(str(cause))


def _in_place(data: Buffer, summary: kernel.SetSummary) -> PreparedSet:
    whole = summary.size == len(data)
    return PreparedSet(
        data if whole else memoryview(data)[: summary.size],
        summary.first_offset,
        summary.last_offset,
        summary.count,
        summary.codec,
    )


def _repack(
    entries: memoryview, base_offset: int, codec: int, max_unpacked_bytes: int
) -> PreparedSet:
    """One wrapper of `codec` around every message that `entries` hold, numbered anew."""
    runs = list(_Flattened(max_unpacked_bytes).runs(entries))
    # Mostly what one wrapper held; where it was unpacked to may be numbered as it is.
    only_one = len(runs) == 1 and not runs[0].readonly
    messages = runs[0] if only_one else bytearray().join(runs)
    summary = kernel.validate_and_assign(messages, base_offset, NO_LIMIT, verify_crc=False)
    last_offset = base_offset + summary.count - 1
    packed: Buffer = b""
    if summary.count:
        packed = kernel.wrap(compression.compress(codec, messages), last_offset, codec)
    return PreparedSet(packed, base_offset, last_offset, summary.count, codec)


class _Flattened:
    """The plain entries of a set and of all wrappers in it, to any depth Kafka could mean."""

    def __init__(self, max_unpacked_bytes: int) -> None:
        self._left = max_unpacked_bytes

    def runs(self, entries: memoryview, depth: int = 0) -> Iterator[memoryview]:
        """Stretches of plain entries, in order. ValueError if a wrapper cannot be unpacked."""
        if depth > MAX_NESTING:
            raise ValueError(f"more than {MAX_NESTING} levels of compressed messages")
        for run in kernel.runs(entries):
            if not run.codec:
                yield entries[run.start : run.end]
                continue
            value = _wrapper_value(entries[run.start : run.end])
            inner = compression.decompress(run.codec, value, self._left, strict=True)
            self._left -= len(inner)
            yield from self.runs(memoryview(inner), depth + 1)


def _wrapper_value(entry: memoryview) -> memoryview:
    """The value of an entry, read as magic 0 whatever its magic says.

    # 0.8: so a magic-1 wrapper fails, as its timestamp is taken for the length of a key.
    """
    try:
        (key_length,) = LENGTH.unpack_from(entry, KEY_LENGTH_POSITION)
        position = KEY_LENGTH_POSITION + LENGTH.size + max(0, key_length)
        (length,) = LENGTH.unpack_from(entry, position)
    except error as cause:
        raise ValueError("compressed message without a value") from cause
    value = entry[position + LENGTH.size :]
    if not 0 <= length <= len(value):
        raise ValueError(f"compressed message with a value of {length} bytes")
    return value[:length]
