"""The fetch and read positions of an owned partition, and the sets on their way to a stream."""

from __future__ import annotations

from math import inf
from typing import Final, NamedTuple, Protocol

from kafka08.consumer.fetching.outage import Outage
from kafka08.errors import (
    KafkaError,
    OffsetOutOfRange,
    UnsupportedForMessageFormat,
    UnsupportedVersion,
)
from kafka08.protocol.fetch import NO_REPLICA
from kafka08.protocol.types import Buffer
from kafka08.structs import NO_LEADER_EPOCH, NO_OFFSET, TopicPartition

WITHHELD: Final = {
    UnsupportedVersion.code: (
        "the broker does not convert messages for the requests of this client",
        "Set log.message.downconversion.enable=true",
    ),
    76: (
        "the broker sends messages that are compressed with zstd only to later clients",
        "Let producers compress with gzip, snappy or lz4",
    ),
}
"""Error code of a later broker for a partition → what it means, and what to do. They do not pass by
themselves. Source: kafka.server.KafkaApis.handleFetchRequest 2.8.2."""


class Sink(Protocol):
    """A stream, as the fetcher that fills it sees it."""

    @property
    def has_room(self) -> bool: ...

    @property
    def is_waited_for(self) -> bool: ...

    def offer(self, chunk: Chunk) -> bool: ...

    def reset(
        self,
        partition: OwnedPartition,
        from_offset: int,
        to_offset: int,
        epoch: int = NO_LEADER_EPOCH,
    ) -> bool: ...

    def confirm(self, partition: OwnedPartition, offset: int) -> None: ...


class Position(NamedTuple):
    """Where reading continues, and which log had the messages before.

    epoch          of the leader that appended the message before `offset`, or of a later one that
                   had it; NO_LEADER_EPOCH: not known
    checked_epoch  of the last leader that confirmed it
    """

    offset: int
    epoch: int = NO_LEADER_EPOCH
    checked_epoch: int = NO_LEADER_EPOCH


class OwnedPartition:
    """A partition while this member owns it; each claim creates a new one.

    thread_id        the stream that reads it, as in the owner znode
    sink             that stream
    fetch_offset     the offset of the next fetch; NO_OFFSET: auto.offset.reset decides
    consumed_offset  the first offset that the reader has not finished, <= fetch_offset; NO_OFFSET
                     until a position is known. A commit stores this one.
    fetch_epoch      see Position.epoch, for fetch_offset
    consumed_epoch   the same for consumed_offset
    leader_epoch     of its leader; NO_LEADER_EPOCH: not known
    checked_epoch    see Position
    unchecked        another leader has to confirm the position first: see kafka08.consumer.fetching
                     .truncation
    stale_since      since when metadata name an earlier leader (monotonic seconds); inf: they don't
    fetch_bytes      the size to request: fetch.message.max.bytes, more for an oversize message
    frame_position   its place in the request
    may_have_more    whether the last response had messages of it
    held             no fetches until the stream has raised the error of the last one
    revoked          no longer owned: sets still on their way are dropped
    high_watermark   the first offset that consumers must not see yet, at the last fetch; NO_OFFSET
                     before it
    outage           why it cannot be fetched, and since when
    replica          the follower that its leader has named as the nearest; NO_REPLICA: the leader
    replica_until    when the leader is asked again (monotonic seconds); inf: it is the leader

    Offsets, epochs and flags change under the stream's lock; `fetch_bytes`, `frame_position` and
    `may_have_more` belong to the fetcher.
    """

    __slots__ = (
        "checked_epoch",
        "consumed_epoch",
        "consumed_offset",
        "fetch_bytes",
        "fetch_epoch",
        "fetch_offset",
        "frame_position",
        "held",
        "high_watermark",
        "leader_epoch",
        "may_have_more",
        "outage",
        "replica",
        "replica_until",
        "revoked",
        "sink",
        "stale_since",
        "thread_id",
        "topic_partition",
        "unchecked",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        *,
        thread_id: str,
        sink: Sink,
        offset: int,
        fetch_bytes: int,
        epoch: int = NO_LEADER_EPOCH,
        checked_epoch: int = NO_LEADER_EPOCH,
    ) -> None:
        self.topic_partition = topic_partition
        self.thread_id = thread_id
        self.sink = sink
        self.fetch_offset = offset
        self.consumed_offset = offset
        self.fetch_epoch = self.consumed_epoch = epoch
        self.checked_epoch = checked_epoch
        self.leader_epoch = NO_LEADER_EPOCH
        self.unchecked = False
        self.stale_since = inf
        self.fetch_bytes = fetch_bytes
        self.frame_position = 0
        self.may_have_more = False
        self.held = False
        self.revoked = False
        self.high_watermark = NO_OFFSET
        self.outage = Outage()
        self.fetch_from_leader()

    def fetch_from_leader(self) -> None:
        """No follower is near, or it has failed."""
        self.fetch_from(NO_REPLICA, inf)

    def fetch_from(self, replica: int, until: float) -> None:
        self.replica = replica
        self.replica_until = until

    def led_in(self, epoch: int) -> None:
        """Take the epoch of its leader, which may not be the one that had the position."""
        self.leader_epoch = epoch
        self.unchecked = NO_LEADER_EPOCH not in {epoch, self.fetch_epoch} and (
            epoch not in {self.fetch_epoch, self.checked_epoch}
        )

    def confirm(self) -> None:
        """The leader has what was fetched."""
        self.checked_epoch = self.leader_epoch
        self.unchecked = False

    def start_at(self, offset: int, epoch: int = NO_LEADER_EPOCH) -> None:
        """Take a position that auto.offset.reset chose. Messages fetched before are read first; the
        committed position moves at once only if there are none."""
        if self.consumed_offset in {NO_OFFSET, self.fetch_offset}:
            self.consumed_offset, self.consumed_epoch = offset, epoch
        self.fetch_offset, self.fetch_epoch = offset, epoch
        self.unchecked = False

    def fetch_again(self) -> None:
        """Fetch again from the first unfinished offset."""
        self.fetch_offset, self.fetch_epoch = self.consumed_offset, self.consumed_epoch
        self.led_in(self.leader_epoch)
        self.held = False

    def __str__(self) -> str:
        return (
            f"{self.topic_partition}: fetched offset = {self.fetch_offset}, "
            f"consumed offset = {self.consumed_offset}"
        )


class Chunk(NamedTuple):
    """A fetched message set on its way to the reader, or an error in its place.

    next_offset   the offset after its last message; reading the chunk to its end finishes it
    epoch         of the leader that appended its last message; NO_LEADER_EPOCH: not known
    verified      all its CRCs were checked, also those inside of compressed sets
    hold          nothing is fetched after it until the reader has raised its error
    """

    partition: OwnedPartition
    data: Buffer
    from_offset: int
    next_offset: int
    epoch: int = NO_LEADER_EPOCH
    verified: bool = False
    error: KafkaError | None = None
    hold: bool = False


def out_of_range_chunk(partition: OwnedPartition, offset: int) -> Chunk:
    """The error for a reader with auto.offset.reset=none."""
    error = OffsetOutOfRange(
        f"{partition.topic_partition} has no offset {offset}, and auto.offset.reset is none. Seek "
        "to an offset in the log"
    )
    return Chunk(partition, b"", offset, offset, error=error, hold=True)


def withheld_chunk(partition: OwnedPartition, offset: int, code: int) -> Chunk:
    """Raises in the reader why this broker does not send the messages at `offset`."""
    cause, cure = WITHHELD[code]
    error = UnsupportedForMessageFormat(
        f"{partition.topic_partition}, offset {offset}: {cause} (error code {code}). {cure}, or "
        "skip these messages with seek"
    )
    return Chunk(partition, b"", offset, offset, error=error, hold=True)
