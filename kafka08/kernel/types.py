"""Errors, limits and rarely created results, which both kernels share.

Each kernel has its own classes for the results of every set or message (`SetSummary`,
`MessageAndMetadata`, `MessageAndOffset`): the native ones are compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from struct import Struct
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from kafka08.format.types import *  # noqa: F403
from kafka08.format.types import MAX_MAGIC, Buffer, CorruptMessage

Decoder: TypeAlias = Callable[[bytes], object]
"""The bytes of a key or value → an object; never called for null."""
KeyAndValue: TypeAlias = tuple[Buffer | None, Buffer | None]
Messages: TypeAlias = Sequence[KeyAndValue]
MAX_SET_BYTES: Final = (1 << 31) - 1
"""The largest size of a set or frame that its size field can hold."""
STRING_BYTES_MAX: Final = (1 << 15) - 1
"""The largest size of a string, in bytes of UTF-8."""
MESSAGE_MAGICS: Final = 0b11
"""SetSummary.magics of a set that has messages and wrappers only."""
OTHER_MAGIC_BIT: Final = 1 << 7
"""In SetSummary.magics: an entry whose magic is unknown."""
ANY_DIFFERENCE_MS: Final = (1 << 63) - 1
"""The default of message.timestamp.difference.max.ms: no limit."""
XERIAL_MAGIC: Final = b"\x82SNAPPY\0"
XERIAL_HEADER: Final = Struct(">8sii")
"""Of the stream that snappy-java writes: magic, version, lowest version that can read it."""
XERIAL_VERSION: Final = 1
XERIAL_BLOCK_SIZE: Final = Struct(">i")
"""Before each raw block of that stream."""
INTERFACE: Final = 46
"""Increases with every change of a name, signature or meaning; `_native` has the same number."""
DEFAULT_MAX_ROWS: Final = 65536
DEFAULT_MAX_COLUMN_BYTES: Final = 8 << 20


@dataclass(frozen=True, slots=True)
class Unpacker:
    """A `Decompress` with one size limit for an outermost wrapper and all wrappers inside it.

    function   (codec, value, max_bytes) → the set inside; ValueError if the value is invalid, or
               if the set exceeds max_bytes
    max_bytes  the limit
    """

    function: Callable[[int, Buffer, int], bytes | bytearray]
    max_bytes: int

    def __call__(self, codec: int, value: Buffer) -> bytes | bytearray:
        return self.function(codec, value, self.max_bytes)


class Rules(NamedTuple):
    """A topic's rules for produced messages, from 0.9 on.

    magic              the format that it stores (message.format.version)
    log_append_time    whether the broker sets the timestamps (message.timestamp.type)
    max_difference_ms  the largest distance of a producer's timestamp from now; not checked with
                       LogAppendTime (message.timestamp.difference.max.ms)
    keys_required      whether messages must have a key (cleanup.policy contains compact)
    """

    magic: int = MAX_MAGIC
    log_append_time: bool = False
    max_difference_ms: int = ANY_DIFFERENCE_MS
    keys_required: bool = False


class Converted(NamedTuple):
    """The result of `convert`.

    read     converted bytes of the source
    written  bytes in the output
    entries  number of converted entries
    wrapper  whether it stopped before a wrapper
    """

    read: int
    written: int
    entries: int
    wrapper: bool


class ScanResult(NamedTuple):
    """The result of a scan for a timestamp.

    found     whether there is an entry with timestamp >= target
    position  first byte of that entry; if not found, where the next entry header would start,
              possibly beyond the data
    offset    last offset of that entry; -1 if not found
    """

    found: bool
    position: int
    offset: int


@dataclass(frozen=True, slots=True)
class RecoverResult:
    """The valid part of a segment's chunk: everything before its first incomplete or corrupt entry.

    valid_bytes       bytes of complete, valid entries from the start of the chunk
    last_offset       offset of the last of them, -1 if there is none
    count             number of them (a wrapper counts as one)
    index_points      (position in the chunk, base offset of the entry there, its codec) for each
                      entry that needs an index entry; with a codec other than 0 the index needs the
                      first *inner* offset, for which the caller decompresses that wrapper. That of
                      a record batch is 0 here
    since_last_index  bytes between the last index entry and valid_bytes, for the next call
    error             the error of the entry after the valid part; None at the end of the chunk or
                      before an incomplete entry
    time_points       for each index point (largest timestamp up to and including that entry, offset
                      of the first entry with it), (-1, -1) before the first timestamp
    max_timestamp_ms, max_timestamp_offset  the same at the end of the valid part
    """

    valid_bytes: int
    last_offset: int
    count: int
    index_points: list[tuple[int, int, int]]
    since_last_index: int
    error: CorruptMessage | None
    time_points: list[tuple[int, int]]
    max_timestamp_ms: int
    max_timestamp_offset: int


class Retained(NamedTuple):
    """The result of OffsetMap.retain for one set.

    written  bytes copied
    read     messages read
    kept     messages copied
    unkeyed  messages dropped because they have no key, which a compacted log requires
    """

    written: int
    read: int
    kept: int
    unkeyed: int


class Run(NamedTuple):
    """Bytes [start, end) of a set: consecutive plain messages (codec 0), one wrapper, or one batch
    of records."""

    start: int
    end: int
    codec: int
    has_records: bool = False


@dataclass(frozen=True, slots=True)
class HeaderColumns:
    """Headers of rows as the buffers of an Arrow list of names and values.

    count           of all of them
    list_offsets    i32 × (rows + 1): row i has those from list_offsets[i] to list_offsets[i + 1]
    name_…          as a column of `Columns`, without nulls; UTF-8 if the producer was right
    value_…         the same, with validity
    """

    count: int
    list_offsets: bytearray
    name_offsets: bytearray
    name_data: bytearray
    value_offsets: bytearray
    value_data: bytearray
    value_validity: bytearray


@dataclass(frozen=True, slots=True)
class Columns:
    """Messages as Arrow buffers (native byte order). A column that was not requested is None.

    count           rows
    offsets         i64 × count
    key_offsets     i32 × (count + 1): row i's key is key_data[key_offsets[i]:key_offsets[i + 1]]
    key_validity    bitmap, lowest bit first, 0 = null; None if no key is null
    value_…         the same for values
    next_offset     the offset after these rows: the next one to fetch, or to pass as from_offset
    more            whether the data has further rows, which max_rows or max_bytes excluded
    timestamps      i64 × count, milliseconds; NO_TIMESTAMP (-1): none
    timestamp_validity  bitmap as above, 0 = no timestamp; None if every row has one
    timestamp_types  i32 × count: NO_TIMESTAMP_TYPE, CREATE_TIME or LOG_APPEND_TIME
    header_…        the same as for keys, for the headers of a row as `header_lists` takes them;
                    null for a row that has none
    """

    count: int
    offsets: bytes | bytearray
    key_offsets: bytes | bytearray | None
    key_data: bytes | bytearray | None
    key_validity: bytes | bytearray | None
    value_offsets: bytes | bytearray | None
    value_data: Buffer | None
    value_validity: bytes | bytearray | None
    next_offset: int
    more: bool
    timestamps: bytes | bytearray | None = None
    timestamp_validity: bytes | bytearray | None = None
    timestamp_types: bytes | bytearray | None = None
    header_offsets: bytes | bytearray | None = None
    header_data: bytes | bytearray | None = None
    header_validity: bytes | bytearray | None = None

    def __reduce__(self) -> tuple[object, ...]:
        # A column may be a view of the response, which cannot be pickled.
        parts = (getattr(self, part.name) for part in fields(self))
        return type(self), tuple(bytes(p) if isinstance(p, memoryview) else p for p in parts)


class BatchesOfProducers(Protocol):
    """The state of a log that batches of producers with an id need."""

    def batch(
        self,
        producer_id: int,
        epoch: int,
        base_sequence: int,
        base_offset: int,
        last_offset: int,
        max_timestamp_ms: int,
        is_transactional: bool,
        /,
    ) -> Any:
        """The part of such a batch that the log keeps."""

    def is_next(self, batch: Any, /) -> bool:
        """Whether a client's batch is the next one of its producer; another is left."""

    def note_batch(self, batch: Any, now_ms: int, /) -> object:
        """Note that it was appended."""
