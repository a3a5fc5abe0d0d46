"""One partition's part of a fetch answer: bytes, and the messages in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from kafka08 import kernel
from kafka08.consumer.batch import BatchLimits, MessageBatch
from kafka08.errors import ApiError, InvalidMessage, MessageTooLarge
from kafka08.kernel import MessageAndMetadata, MessageIterator
from kafka08.kernel.types import ENTRY_HEADER, MIN_MESSAGE_BYTES
from kafka08.protocol import message_set
from kafka08.protocol.types import Buffer
from kafka08.structs import NO_OFFSET, TopicPartition

Decoder = Callable[[bytes], Any]


def offset_behind(error: BaseException | None) -> int | None:
    """Where reading goes on behind the message for which the kernel raised `error`; None if the
    offset of that message is not known. It is one offset further, behind all of a compressed
    message that cannot be decompressed."""
    if not isinstance(error, kernel.CorruptMessage) or error.offset < 0:
        return None
    return error.offset + 1


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FetchedSet:
    """Iterate over it for its messages at or above `offset`; a partial last one is left out.

    topic_partition, offset   what was asked for
    data            the bytes as they came, to be read with the kernel directly
    max_bytes       how much of it was asked for
    source          the broker, for errors
    high_watermark  first offset that consumers may not see yet; -1 with an error
    error           why there is nothing; iterating raises it
    """

    topic_partition: TopicPartition
    offset: int
    data: Buffer
    max_bytes: int
    source: str
    high_watermark: int = -1
    error: ApiError | None = None

    def __repr__(self) -> str:
        state = str(self.error) if self.error else f"{len(self.data)} bytes"
        return f"<FetchedSet {self.topic_partition} from offset {self.offset}: {state}>"

    def __iter__(self) -> Iterator[MessageAndMetadata[bytes, bytes]]:
        return self.decoded()

    def decoded(
        self,
        key_decoder: Decoder | None = None,
        value_decoder: Decoder | None = None,
        *,
        until_offset: int | None = None,
    ) -> Iterator[MessageAndMetadata[Any, Any]]:
        """The messages with offset <= theirs < until_offset, null kept as None whatever the
        decoders. Raises `error`; InvalidMessage naming partition, offset and reason for a message
        that is damaged."""
        try:
            yield from self.messages(key_decoder, value_decoder, until_offset=until_offset)
        except (kernel.CorruptMessage, kernel.UnknownCodec) as damage:
            raise self._damaged(damage) from damage

    def batches(self, limits: BatchLimits, *, timestamps: bool = False) -> Iterator[MessageBatch]:
        """What `decoded` yields, undecoded and as batches; raises the same. `timestamps`: with
        those of the messages."""
        if self.error is not None:
            raise self.error
        try:
            for columns in kernel.column_batches(
                self.data,
                self.offset,
                None,
                message_set.fetched_unpacker(self.max_bytes),
                max_rows=limits.max_messages,
                max_bytes=limits.max_bytes,
                timestamps=timestamps,
            ):
                if columns.count:
                    yield MessageBatch(self.topic_partition, columns)
        except (kernel.CorruptMessage, kernel.UnknownCodec) as damage:
            raise self._damaged(damage) from damage

    def messages(
        self,
        key_decoder: Decoder | None = None,
        value_decoder: Decoder | None = None,
        *,
        until_offset: int | None = None,
    ) -> MessageIterator:
        """The kernel's own iterator, with its `next_offset`; it raises the kernel's errors."""
        if self.error is not None:
            raise self.error
        return kernel.messages(
            self.data,
            *self.topic_partition,
            self.offset,
            message_set.fetched_unpacker(self.max_bytes),
            key_decoder,
            value_decoder,
            until_offset=until_offset,
        )

    def next_offset(self) -> int:
        """Where a following fetch goes on: behind the last whole entry, wrappers unopened; at a
        damaged one, since reading ends there; at `offset` if there is none. Raises `error`."""
        if self.error is not None:
            raise self.error
        if self.is_withheld:
            return self.offset + 1
        try:
            summary = kernel.validate(self.data, message_set.NO_LIMIT)
        except kernel.CorruptMessage as damage:
            return max(self.offset, damage.offset)
        return max(self.offset, summary.last_offset + 1) if summary.count else self.offset

    @property
    def is_withheld(self) -> bool:
        """Whether `offset` holds nothing for this client, a transaction's marker for instance: a
        broker from 1.0 on then sends, in place of a first message, the header of one that cannot be
        (LazyDownConversionRecords 2.8.2)."""
        if len(self.data) < ENTRY_HEADER.size or self.error is not None:
            return False
        offset, size = ENTRY_HEADER.unpack_from(self.data)
        return bool(offset == NO_OFFSET and ENTRY_HEADER.size + size > len(self.data))

    def size_needed(self, limit: int) -> int | None:
        """The max_bytes that brings the first message whole; None if it is here, or none is.

        With fewer than the 12 bytes of an entry's header that is those 12, which tell the rest.
        MessageTooLarge names partition, offset and size if it takes more than `limit`.
        """
        size = len(self.data)
        if size == 0 or self.error is not None or self.is_withheld:
            return None
        offset, needed = NO_OFFSET, ENTRY_HEADER.size
        if size >= needed:
            offset, message_size = ENTRY_HEADER.unpack_from(self.data)
            needed += message_size
            if message_size < MIN_MESSAGE_BYTES or needed <= size:
                return None
        if needed <= self.max_bytes:
            raise InvalidMessage(
                f"{self.topic_partition} at {self.source}: the message of {needed} bytes at offset "
                f"{offset} came cut, though {self.max_bytes} bytes were asked for"
            )
        if needed > limit:
            raise MessageTooLarge(
                f"{self.topic_partition} at {self.source}: the message at offset {offset} has "
                f"{needed} bytes, more than the {limit} allowed"
            )
        return needed

    def _damaged(self, damage: kernel.CorruptMessage | kernel.UnknownCodec) -> InvalidMessage:
        return InvalidMessage(
            f"{self.topic_partition} at {self.source}, fetched from offset {self.offset}: {damage}"
        )
