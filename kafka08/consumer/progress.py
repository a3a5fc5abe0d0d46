"""How far an owned partition was fetched and read, and the sets on their way to a stream."""

from __future__ import annotations

from math import inf
from typing import NamedTuple, Protocol

from kafka08.errors import KafkaError
from kafka08.protocol.types import Buffer
from kafka08.structs import NO_OFFSET, TopicPartition


class Sink(Protocol):
    """Where a fetcher puts what it read: the stream, as a fetcher sees it."""

    @property
    def has_room(self) -> bool: ...

    @property
    def is_waited_for(self) -> bool: ...

    def offer(self, chunk: Chunk) -> bool: ...

    def reset(self, partition: OwnedPartition, from_offset: int, to_offset: int) -> bool: ...


class OwnedPartition:
    """A partition for the time that this member owns it; a new one is made for each claim.

    thread_id        the stream that reads it, as the owner's znode names it
    sink             that stream
    fetch_offset     where the next fetch begins; NO_OFFSET: auto.offset.reset decides
    consumed_offset  the first offset that the reader is not finished with, <= fetch_offset;
                     NO_OFFSET until a position is known. It is what a commit stores.
    fetch_bytes      how much to ask for: fetch.message.max.bytes, more for an oversize message
    held             not to be fetched until the stream has raised what is wrong with it
    revoked          not ours any more: sets still on their way are dropped
    high_watermark   the first offset that consumers may not see yet, at the last fetch; NO_OFFSET
                     before it
    failure          why it cannot be fetched, None while it is
    failing_since    when that began (monotonic seconds)

    Offsets and flags change under the stream's lock; `fetch_bytes` belongs to the fetcher.
    """

    __slots__ = (
        "consumed_offset",
        "failing_since",
        "failure",
        "fetch_bytes",
        "fetch_offset",
        "held",
        "high_watermark",
        "revoked",
        "sink",
        "thread_id",
        "topic_partition",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        *,
        thread_id: str,
        sink: Sink,
        offset: int,
        fetch_bytes: int,
    ) -> None:
        self.topic_partition = topic_partition
        self.thread_id = thread_id
        self.sink = sink
        self.fetch_offset = offset
        self.consumed_offset = offset
        self.fetch_bytes = fetch_bytes
        self.held = False
        self.revoked = False
        self.high_watermark = NO_OFFSET
        self.failure: KafkaError | None = None
        self.failing_since = inf

    @property
    def may_be_fetched(self) -> bool:
        return not self.revoked and not self.held and self.sink.has_room

    def fail(self, failure: KafkaError, now: float) -> bool:
        """It cannot be fetched now; False if that is no news."""
        is_new = self.failure is None
        if is_new:
            self.failing_since = now
        self.failure = failure
        return is_new

    def recover(self) -> None:
        """It was fetched."""
        self.failure = None
        self.failing_since = inf

    def start_at(self, offset: int) -> None:
        """Take a position that auto.offset.reset chose. What was fetched before it is still read
        first; only if nothing was, the committed position moves at once."""
        if self.consumed_offset in {NO_OFFSET, self.fetch_offset}:
            self.consumed_offset = offset
        self.fetch_offset = offset

    def fetch_again(self) -> None:
        """Fetch once more from the first offset that is not finished."""
        self.fetch_offset = self.consumed_offset
        self.held = False

    def __str__(self) -> str:
        return (
            f"{self.topic_partition}: fetched offset = {self.fetch_offset}, "
            f"consumed offset = {self.consumed_offset}"
        )


class Chunk(NamedTuple):
    """A fetched message set on its way to the reader, or the error that stands in its place.

    next_offset   the offset after its last message; reading the chunk to its end finishes it
    verified      the CRCs of its entries were checked and none is compressed
    hold          nothing is to be fetched behind it until the reader has met what is wrong
    """

    partition: OwnedPartition
    data: Buffer
    from_offset: int
    next_offset: int
    verified: bool = False
    error: KafkaError | None = None
    hold: bool = False
