"""What both kernels share: their errors, their limits and the results that are built rarely.

Results that are built for every set or every message (`SetSummary`, `MessageAndMetadata`,
`MessageAndOffset`) live in each kernel, because the native ones are compiled classes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from struct import Struct
from typing import Final, NamedTuple, TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview
Decompress: TypeAlias = Callable[[int, memoryview], Buffer]
"""(codec, value of a wrapper) → the message set inside. Raises ValueError if it cannot. An
`Unpacker` also bounds what an outermost wrapper and all wrappers in it unpack to."""
Decoder: TypeAlias = Callable[[bytes], object]
"""Makes an object of the bytes of a key or a value; never called for null."""
KeyAndValue: TypeAlias = tuple[Buffer | None, Buffer | None]
Messages: TypeAlias = Sequence[KeyAndValue]

ENTRY_HEADER: Final = Struct(">qi")
"""Offset and size, in front of every message of a set."""
ENTRY_HEADER_BYTES: Final = ENTRY_HEADER.size
CRC_END: Final = ENTRY_HEADER_BYTES + 4
"""In an entry; the crc covers everything from here on."""
MAGIC_POSITION: Final = CRC_END
ATTRIBUTES_POSITION: Final = MAGIC_POSITION + 1
TIMESTAMP_POSITION: Final = ATTRIBUTES_POSITION + 1
"""In an entry of magic 1."""
TIMESTAMP_BYTES: Final = 8
"""What a message of magic 1 takes more than one of magic 0."""
LENGTH: Final = Struct(">i")
"""In front of a key and of a value; negative for an absent one."""
MIN_MESSAGE_BYTES: Final = 14
"""crc, magic, attributes and the lengths of an absent key and an absent value (magic 0)."""
EMPTY_ENTRY_BYTES: Final = ENTRY_HEADER_BYTES + MIN_MESSAGE_BYTES
"""What a message takes in a set beside its key and its value."""
MAX_SET_BYTES: Final = (1 << 31) - 1
"""What the size of a set, or of a frame, can say."""
MAX_NESTING: Final = 16
"""How deep wrappers may sit in wrappers. Kafka's own broker flattens them to one level."""
CODEC_MASK: Final = 0x07
MAX_CODEC: Final = 3
MAX_MAGIC: Final = 1
"""Message formats: 0 without timestamps, 1 (0.10.0) with them."""
OTHER_MAGIC_BIT: Final = 1 << (MAX_MAGIC + 1)
"""In SetSummary.magics: an entry whose magic is unknown."""
TIMESTAMP_TYPE_BIT: Final = 0x08
"""In the attributes of magic 1: set for LogAppendTime, clear for CreateTime."""
NO_TIMESTAMP: Final = -1
"""Of a message of magic 0, or to which the producer gave none."""
NO_TIMESTAMP_TYPE: Final = -1
"""Of a message of magic 0."""
CREATE_TIME: Final = 0
"""The producer gave the timestamp."""
LOG_APPEND_TIME: Final = 1
"""The broker gave the timestamp."""
ANY_DIFFERENCE_MS: Final = (1 << 63) - 1
"""message.timestamp.difference.max.ms that no timestamp exceeds: its default."""
INTERFACE: Final = 11
"""Rises with every change of a name, signature or meaning; `_native` carries the same number."""
DEFAULT_MAX_ROWS: Final = 65536
DEFAULT_MAX_COLUMN_BYTES: Final = 8 << 20


class CorruptMessage(ValueError):
    """An entry that is not what its CRC or its sizes say.

    `position` is the byte at which its outermost entry starts in the data given, `offset` the
    entry's own offset (-1: not known).
    """

    def __init__(self, position: int, offset: int, reason: str) -> None:
        super().__init__(position, offset, reason)
        self.position = position
        self.offset = offset
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.reason} (offset {self.offset}, at byte {self.position})"


class EntryTooLarge(ValueError):
    """An entry of `size` bytes (its 12-byte header included) where at most `limit` may be."""

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
    """A timestamp that a producer may not send: too far from now, or typed LogAppendTime.

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


@dataclass(frozen=True, slots=True)
class Unpacker:
    """A `Decompress` with one budget for an outermost wrapper and all wrappers inside it.

    function   (codec, value, max_bytes) → the set inside; ValueError if it cannot, or if the set
               has more than max_bytes
    max_bytes  the budget
    """

    function: Callable[[int, Buffer, int], bytes | bytearray]
    max_bytes: int

    def __call__(self, codec: int, value: Buffer) -> bytes | bytearray:
        return self.function(codec, value, self.max_bytes)


class Rules(NamedTuple):
    """What a topic asks of produced messages, from 0.9 on.

    magic              the format it stores (message.format.version)
    log_append_time    whether the broker gives the timestamps (message.timestamp.type)
    max_difference_ms  how far a producer's timestamp may be from now; not asked under
                       LogAppendTime (message.timestamp.difference.max.ms)
    keys_required      whether messages must have a key (cleanup.policy contains compact)
    """

    magic: int = MAX_MAGIC
    log_append_time: bool = False
    max_difference_ms: int = ANY_DIFFERENCE_MS
    keys_required: bool = False


class Converted(NamedTuple):
    """What `convert` did.

    read     bytes of the source it is done with
    written  bytes it wrote
    entries  how many they are
    wrapper  whether it stopped in front of a wrapper
    """

    read: int
    written: int
    entries: int
    wrapper: bool


class ScanResult(NamedTuple):
    """Where a scan for an offset or a timestamp ended.

    found     whether an entry with offset (timestamp) >= target was met
    position  byte of that entry; if not found, byte at which the next entry header would start,
              which may lie beyond the data
    offset    offset of that entry; -1 if not found
    """

    found: bool
    position: int
    offset: int


@dataclass(frozen=True, slots=True)
class RecoverResult:
    """What a chunk of a segment holds, up to its first incomplete or broken entry.

    valid_bytes       bytes of whole, sound entries from the start of the chunk
    last_offset       offset of the last of them, -1 if none
    count             how many they are (a wrapper counts as one)
    index_points      (position in the chunk, offset of the entry there, its codec) wherever the
                      sparse index wants an entry; with a codec other than 0 the index wants the
                      first *inner* offset, which the caller gets by unpacking that entry
    since_last_index  bytes between the last index entry and valid_bytes; goes into the next call
    error             the error that ended the chunk, None if it ended whole or incomplete
    time_points       for each index point (largest timestamp up to and with that entry, offset of
                      the first entry that has it), (-1, -1) before the first timestamp
    max_timestamp_ms, max_timestamp_offset  the same at the end of the valid part
    """

    valid_bytes: int
    last_offset: int
    count: int
    index_points: list[tuple[int, int, int]]
    since_last_index: int
    error: CorruptMessage | EntryTooLarge | None
    time_points: list[tuple[int, int]]
    max_timestamp_ms: int
    max_timestamp_offset: int


class Retained(NamedTuple):
    """What OffsetMap.retain did with a set.

    written  bytes copied
    read     messages looked at
    kept     messages copied
    unkeyed  messages left out because they have no key, which a compacted log has no place for
    """

    written: int
    read: int
    kept: int
    unkeyed: int


class Run(NamedTuple):
    """Bytes [start, end) of a set: entries that are all plain (codec 0), or one wrapper."""

    start: int
    end: int
    codec: int


@dataclass(frozen=True, slots=True)
class Columns:
    """Messages as Arrow buffers (native byte order); `None` where a column was not asked for.

    count           rows
    offsets         i64 × count
    key_offsets     i32 × (count + 1): row i's key is key_data[key_offsets[i]:key_offsets[i + 1]]
    key_validity    bitmap, lowest bit first, 0 = null; None if no key is null
    value_…         the same for values
    next_offset     what to fetch, or to pass as from_offset, to go on after these rows
    more            True: the data holds further rows that max_rows or max_bytes left out
    timestamps      i64 × count, milliseconds, NO_TIMESTAMP (-1) for none
    timestamp_validity  bitmap as above, 0 = no timestamp; None if every row has one
    timestamp_types  i32 × count: NO_TIMESTAMP_TYPE, CREATE_TIME or LOG_APPEND_TIME
    """

    count: int
    offsets: bytes | bytearray
    key_offsets: bytes | bytearray | None
    key_data: bytes | bytearray | None
    key_validity: bytes | bytearray | None
    value_offsets: bytes | bytearray | None
    value_data: bytes | bytearray | None
    value_validity: bytes | bytearray | None
    next_offset: int
    more: bool
    timestamps: bytes | bytearray | None = None
    timestamp_validity: bytes | bytearray | None = None
    timestamp_types: bytes | bytearray | None = None
