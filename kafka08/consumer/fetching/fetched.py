"""One partition's part of a Fetch response: its bytes, and the messages in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

from kafka08 import kernel
from kafka08.client.requests import fetch_results
from kafka08.consumer.fetching.batch import BatchLimits, MessageBatch
from kafka08.errors import (
    ApiError,
    InvalidMessage,
    MessageTooLarge,
    ProtocolError,
    error_of,
)
from kafka08.kernel import MessageAndMetadata, MessageIterator
from kafka08.kernel.types import ENTRY_HEADER, MESSAGE_MAGICS, MIN_MESSAGE_BYTES
from kafka08.protocol import message_set
from kafka08.protocol.fetch import NO_LAST_STABLE_OFFSET, AbortedTransaction, FetchResponse
from kafka08.protocol.types import Buffer
from kafka08.structs import NO_OFFSET, TopicPartition

Decoder = Callable[[bytes], Any]


def next_offset_after(error: BaseException | None) -> int | None:
    """The offset at which reading continues after the message for which the kernel raised `error`;
    None if the error does not name the message's offset. It is the next offset, after the last
    inner message of a compressed one that cannot be decompressed."""
    if not isinstance(error, kernel.CorruptMessage) or error.offset < 0:
        return None
    return error.offset + 1


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FetchedSet:
    """Iterate over it for its messages at or above `offset`; a partial last one is left out.

    topic_partition, offset   the position that was requested
    data            the message set as received; the kernel reads it directly
    max_bytes       the size that was requested
    source          the broker, for errors
    high_watermark  first offset that consumers must not see yet; -1 with an error
    error           why there are no messages; iterating raises it
    last_stable_offset  first offset that readers of committed messages must not see yet; -1 if the
                    broker did not say it
    aborted         transactions whose messages such a reader leaves out
    """

    topic_partition: TopicPartition
    offset: int
    data: Buffer
    max_bytes: int
    source: str
    high_watermark: int = -1
    error: ApiError | None = None
    last_stable_offset: int = NO_LAST_STABLE_OFFSET
    aborted: Sequence[AbortedTransaction] = ()

    def __reduce__(self) -> tuple[object, ...]:
        # A view of a response cannot be pickled.
        parts = [getattr(self, part.name) for part in fields(self)]
        return type(self), tuple(bytes(p) if isinstance(p, memoryview) else p for p in parts)

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
        """The messages with offset <= theirs < until_offset. Null stays None with any decoder.
        Raises `error`; for a damaged message InvalidMessage, which names partition, offset and
        reason."""
        try:
            yield from self.messages(key_decoder, value_decoder, until_offset=until_offset)
        except (kernel.CorruptMessage, kernel.UnknownCodec) as damage:
            raise self._damaged(damage) from damage

    def batches(self, limits: BatchLimits, *, timestamps: bool = False) -> Iterator[MessageBatch]:
        """The messages of `decoded` as undecoded batches, with `timestamps` if wanted; raises the
        same errors."""
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
        """The kernel's iterator, with its `next_offset`; it raises the kernel's errors."""
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
        """The offset of the next fetch: after the last whole entry (wrappers stay unopened), at a
        damaged entry (no reader gets past it), or `offset` if there is no entry. Raises `error`."""
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
        """The max_bytes that fetches the first message whole; None if it is whole or missing.

        If fewer than the 12 bytes of an entry's header were received, that is 12: the header has
        the size. MessageTooLarge names partition, offset and size if that exceeds `limit`.
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
                f"{self.topic_partition} at {self.source}: the broker cut off the message of "
                f"{needed} bytes at offset {offset}, though the fetch allowed {self.max_bytes}"
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


def has_all_crcs_checked(summary: kernel.SetSummary) -> bool:
    """Whether no CRC of a set that `kernel.validate` has read is left to check: in a compressed set
    of messages each has its own; records have that of their batch."""
    return not (summary.codec and summary.magics & MESSAGE_MAGICS)


def fetched_set(
    response: FetchResponse,
    topic_partition: TopicPartition,
    offset: int,
    *,
    max_bytes: int,
    source: str,
) -> FetchedSet:
    """The part of a partition that was requested alone, from `offset` on. Raises its error, and
    ProtocolError if the response leaves it out."""
    result = fetch_results(response).get(topic_partition)
    if result is None:
        raise ProtocolError(f"{source} left out {topic_partition} in its response")
    detail = f"{topic_partition} at {source}, offset {offset}"
    if (error := error_of(result.error_code, detail)) is not None:
        raise error
    return FetchedSet(
        *(topic_partition, offset, result.message_set, max_bytes, source, result.high_watermark),
        last_stable_offset=result.last_stable_offset,
        aborted=result.aborted or (),
    )
