"""Layout that all message formats share, and the errors of their readers."""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Final, TypeAlias

__all__ = [
    "ATTRIBUTES_POSITION",
    "CODEC_MASK",
    "CRC_END",
    "CREATE_TIME",
    "EMPTY_ENTRY_BYTES",
    "ENTRY_HEADER",
    "ENTRY_HEADER_BYTES",
    "LENGTH",
    "LOG_APPEND_TIME",
    "MAGIC_POSITION",
    "MAX_CODEC",
    "MAX_MAGIC",
    "MAX_NESTING",
    "MAX_RECORDS_CODEC",
    "MIN_MESSAGE_BYTES",
    "NO_TIMESTAMP",
    "NO_TIMESTAMP_TYPE",
    "RECORDS_MAGIC",
    "TIMESTAMP_BYTES",
    "TIMESTAMP_POSITION",
    "TIMESTAMP_TYPE_BIT",
    "BadTimestamp",
    "Buffer",
    "CorruptMessage",
    "Decompress",
    "EntryTooLarge",
    "UnknownCodec",
]

Buffer: TypeAlias = bytes | bytearray | memoryview
Decompress: TypeAlias = Callable[[int, memoryview], Buffer]
"""(codec, value of a wrapper) → the message set inside; ValueError if the value is invalid. An
`Unpacker` also limits the decompressed size of an outermost wrapper with all wrappers in it."""
ENTRY_HEADER: Final = Struct(">qi")
"""Offset and size, before every message of a set."""
ENTRY_HEADER_BYTES: Final = ENTRY_HEADER.size
CRC_END: Final = ENTRY_HEADER_BYTES + 4
"""In an entry; the crc covers everything after this position."""
MAGIC_POSITION: Final = CRC_END
ATTRIBUTES_POSITION: Final = MAGIC_POSITION + 1
TIMESTAMP_POSITION: Final = ATTRIBUTES_POSITION + 1
"""In an entry of magic 1."""
TIMESTAMP_BYTES: Final = 8
"""A message of magic 1 is this much larger than one of magic 0."""
LENGTH: Final = Struct(">i")
"""Before a key and before a value; negative for null."""
MIN_MESSAGE_BYTES: Final = 14
"""crc, magic, attributes and the lengths of a null key and a null value (magic 0)."""
EMPTY_ENTRY_BYTES: Final = ENTRY_HEADER_BYTES + MIN_MESSAGE_BYTES
"""Bytes of an entry without its key and value (magic 0)."""
MAX_NESTING: Final = 16
"""The most levels of wrappers inside wrappers. Kafka's own broker flattens them to one level."""
CODEC_MASK: Final = 0x07
MAX_CODEC: Final = 3
MAX_RECORDS_CODEC: Final = 4
"""In a record batch, from 2.1 on: zstd. No broker of ours takes it from a producer."""
MAX_MAGIC: Final = 1
"""Message formats: 0 without timestamps, 1 (0.10.0) with them."""
RECORDS_MAGIC: Final = 2
"""The message format of record batches (0.11.0)."""
TIMESTAMP_TYPE_BIT: Final = 0x08
"""In the attributes of magic 1: set for LogAppendTime, clear for CreateTime."""
NO_TIMESTAMP: Final = -1
"""The timestamp of a message of magic 0, or of a producer that sets none."""
NO_TIMESTAMP_TYPE: Final = -1
"""The timestamp type of a message of magic 0."""
CREATE_TIME: Final = 0
"""The producer set the timestamp."""
LOG_APPEND_TIME: Final = 1
"""The broker set the timestamp."""


class CorruptMessage(ValueError):
    """An entry does not match its CRC or its size fields.

    `position` is the first byte of its outermost entry in the given data, `offset` the entry's own
    offset (-1: unknown).
    """

    def __init__(self, position: int, offset: int, reason: str) -> None:
        super().__init__(position, offset, reason)
        self.position = position
        self.offset = offset
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.reason} (offset {self.offset}, at byte {self.position})"


class EntryTooLarge(ValueError):
    """An entry of `size` bytes (its 12-byte header included) exceeds `limit`."""

    def __init__(self, position: int, size: int, limit: int) -> None:
        super().__init__(position, size, limit)
        self.position = position
        self.size = size
        self.limit = limit

    def __str__(self) -> str:
        return (
            f"message size is {self.size} bytes, more than the maximum of {self.limit} "
            f"(at byte {self.position})"
        )


class BadTimestamp(ValueError):
    """A producer's timestamp is too far from now, or has the type LogAppendTime.

    `position` as in CorruptMessage.
    """

    def __init__(self, position: int, timestamp_ms: int, reason: str) -> None:
        super().__init__(position, timestamp_ms, reason)
        self.position = position
        self.timestamp_ms = timestamp_ms
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.reason} (timestamp {self.timestamp_ms}, at byte {self.position})"


class UnknownCodec(ValueError):
    """A compression codec that 0.8 does not have."""

    def __init__(self, codec: int) -> None:
        super().__init__(codec)
        self.codec = codec

    def __str__(self) -> str:
        return f"{self.codec} is an unknown compression codec"
