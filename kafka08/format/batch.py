"""Batch: an entry of a log, which answers by name; and what a message format can do."""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import ClassVar, Final, NamedTuple, TypeAlias

from kafka08.format.types import (
    ATTRIBUTES_POSITION,
    ENTRY_HEADER,
    ENTRY_HEADER_BYTES,
    LOG_APPEND_TIME,
    MIN_MESSAGE_BYTES,
    NO_TIMESTAMP,
    NO_TIMESTAMP_TYPE,
    Buffer,
    CorruptMessage,
    Decompress,
)

Compress: TypeAlias = Callable[[int, Buffer], Buffer]
"""(codec, bytes) → the same bytes compressed."""
Checksum: TypeAlias = Callable[[Buffer], int]
Header: TypeAlias = tuple[str, bytes | None]
NO_PRODUCER: Final = -1
NO_SEQUENCE: Final = -1


class Batch(NamedTuple):
    """One entry of a set, by its own fields; what is inside of it is not read.

    position       its first byte in the data
    size           all of its bytes
    base_offset    of its first message; a wrapper of magic 0 or 1 has only the last one
    last_offset    of its last message, or a higher one that compaction has removed
    codec          0: not compressed
    timestamp_type, max_timestamp_ms    NO_TIMESTAMP_TYPE and -1 in magic 0
    crc            as stored

    The rest only a record batch (magic 2) has:

    record_count   records inside; 1 in magic 0 and 1, where nothing inside is counted
    first_timestamp_ms    the base of their timestamps
    leader_epoch   of the leader that appended it
    producer_id, producer_epoch, base_sequence    of an idempotent producer, else -1
    is_control     it has the marker of a transaction, which is no message
    """

    magic: int
    position: int
    size: int
    base_offset: int
    last_offset: int
    codec: int
    timestamp_type: int
    max_timestamp_ms: int
    crc: int
    record_count: int = 1
    first_timestamp_ms: int = NO_TIMESTAMP
    leader_epoch: int = -1
    producer_id: int = NO_PRODUCER
    producer_epoch: int = -1
    base_sequence: int = NO_SEQUENCE
    is_transactional: bool = False
    is_control: bool = False

    @property
    def end(self) -> int:
        """The position after it."""
        return self.position + self.size

    @property
    def has_timestamp(self) -> bool:
        """Whether its format has timestamps."""
        return self.timestamp_type != NO_TIMESTAMP_TYPE

    @property
    def has_append_time(self) -> bool:
        """Whether its messages have the broker's time."""
        return self.timestamp_type == LOG_APPEND_TIME


class Message(NamedTuple):
    """A message, with views of its bytes."""

    offset: int
    key: memoryview | None
    value: memoryview | None
    timestamp_ms: int
    timestamp_type: int
    headers: tuple[Header, ...] = ()


class Format(ABC):
    """How entries of one magic are read and written. A new one is a module with a subclass, and a
    row of `FORMATS`.

    magic          of its entries
    head_bytes     the first bytes of an entry from which `batch` reads
    crc_position, crc_start    where the CRC is, and the first byte that it covers
    codec_position    the byte whose lowest bits are the codec
    crc            the kernel's function for it, which is faster than `checksum`
    """

    magic: ClassVar[int]
    head_bytes: ClassVar[int]
    crc_position: ClassVar[int] = ENTRY_HEADER_BYTES
    crc_start: ClassVar[int] = ENTRY_HEADER_BYTES + 4
    codec_position: ClassVar[int] = ATTRIBUTES_POSITION
    crc: ClassVar[str] = "crc32"

    @abstractmethod
    def batch(self, view: memoryview, position: int) -> Batch:
        """The entry at `position`, of which `head_bytes` are there."""

    def least_size(self) -> int:
        """The lowest value of a size field."""
        return max(MIN_MESSAGE_BYTES, self.head_bytes - ENTRY_HEADER_BYTES)

    def checksum(self, data: Buffer, value: int = 0) -> int:
        """The CRC of `data`, continued from `value`."""
        return zlib.crc32(data, value)

    def check_crc(self, view: memoryview, batch: Batch) -> None:
        """Raise CorruptMessage unless the stored CRC is that of the bytes."""
        computed = self.checksum(view[batch.position + self.crc_start : batch.end])
        if batch.crc != computed:
            reason = f"stored crc {batch.crc} is not the computed crc {computed}"
            raise CorruptMessage(batch.position, batch.last_offset, reason)


class RecordFormat(Format):
    """A format whose entries contain records, with or without a codec."""

    @abstractmethod
    def records(self, view: memoryview, batch: Batch, decompress: Decompress) -> Iterator[Message]:
        """The messages of a batch, also those of a control batch. CorruptMessage for records that
        contradict their sizes or the batch, ValueError for what cannot be decompressed."""

    @abstractmethod
    def build(
        self,
        messages: Iterable[Message],
        codec: int,
        compress: Compress,
        *,
        like: Batch | None = None,
        checksum: Checksum | None = None,
    ) -> bytes:
        """A batch of `messages`, with their offsets. `like`: a batch whose place it takes, of which
        it keeps offsets, producer and timestamp type; then there may be no messages. `checksum`
        computes what this format's own does, faster."""

    @abstractmethod
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
        """Write what a leader sets into a batch in place. `checksum`: a faster one than its own."""


def entry_size(view: Buffer, position: int) -> int:
    """All bytes of the entry at `position`, whose first ENTRY_HEADER_BYTES are there."""
    return ENTRY_HEADER_BYTES + int(ENTRY_HEADER.unpack_from(view, position)[1])
