"""Truncation: whether a new leader has the messages that were read before.

After an unclean election the log of the new leader may lack messages that consumers have read, and
others take their offsets: a reader that goes on at its offset misses those. The leader's epoch, a
number that rises with each election, is in each batch. So a partition keeps that of the last batch
read. When its leader or the leader's epoch changes, a fetcher first asks the new leader where that
epoch ends in its log:

    at the position or after it   the log has what was read; fetching goes on
    before it                     the log was truncated there, and has other messages behind
    nowhere                       it has no messages of that epoch or an earlier one: it was
                                  emptied, or the topic is another one of the same name

With auto.offset.reset reading continues where the logs diverge, or at the start or end where that
is not known; with "none" the reader gets LogTruncated. Positions without an epoch are not checked:
those of a seek until a batch is read, messages of earlier formats, and brokers before 2.4.

Source: org.apache.kafka.clients.consumer.internals.SubscriptionState (maybeCompleteValidation)
3.9.1.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from kafka08 import kernel
from kafka08.config import INT_MAX
from kafka08.consumer.fetching.fetch_settings import NO_RESET
from kafka08.consumer.fetching.owned_partition import Chunk, OwnedPartition
from kafka08.errors import ApiError, KafkaError, OffsetOutOfRange, ProtocolError, error_of
from kafka08.format import batch_at
from kafka08.kernel import SetSummary
from kafka08.kernel.types import MESSAGE_MAGICS
from kafka08.network.connection import Connection
from kafka08.protocol.grouping import by_partition, by_topic
from kafka08.protocol.offset_for_leader_epoch import (
    CONSUMER_VERSION,
    EpochEndOffset,
    OffsetForLeaderEpochPartition,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderEpochTopic,
)
from kafka08.protocol.types import Buffer
from kafka08.structs import NO_LEADER_EPOCH, NO_OFFSET, TopicPartition

logger = logging.getLogger(__name__)


class LogTruncated(OffsetOutOfRange):
    """Messages before the position are no longer in the log.

    diverges_at  the first offset whose message is another one now, or none; None: not known
    """

    def __init__(
        self, text: str, topic_partition: TopicPartition, position: int, diverges_at: int | None
    ) -> None:
        super().__init__(text)
        self.topic_partition = topic_partition
        self.position = position
        self.diverges_at = diverges_at


@dataclass(slots=True)
class Checked:
    """The partitions of a check that need more than that.

    lost      not answered by the leader → why; they stay unchecked
    astray    to be reset, at a position that auto.offset.reset decides
    """

    lost: dict[OwnedPartition, KafkaError] = field(default_factory=dict)
    astray: list[OwnedPartition] = field(default_factory=list)


def check_positions(
    connection: Connection, partitions: Collection[OwnedPartition], reset: str
) -> Checked:
    """Ask their leader for the ends of their epochs. Confirms the positions that it has, and moves
    those that it has not as `reset`, auto.offset.reset, says. Raises what the connection raises."""
    checked = Checked()
    asked = {p: (p.fetch_offset, p.fetch_epoch) for p in partitions}
    if not _can_tell(connection):
        for partition, (offset, _) in asked.items():
            partition.sink.confirm(partition, offset)
        return checked
    ends = _ask(
        connection, {p.topic_partition: (p.fetch_epoch, p.leader_epoch) for p in partitions}
    )
    for partition, (offset, epoch) in asked.items():
        tp = partition.topic_partition
        end = ends.get(tp)
        if end is None:
            checked.lost[partition] = ProtocolError(f"{connection} left out {tp} in its response")
        elif (error := error_of(end.error_code, f"{tp} at {connection}")) is not None:
            checked.lost[partition] = error
        elif end.end_offset >= offset:
            partition.sink.confirm(partition, offset)
        else:
            leader = f"{connection}, epoch {partition.leader_epoch}"
            loss = truncated(tp, offset, epoch, end, leader)
            if reset == NO_RESET:
                partition.sink.offer(Chunk(partition, b"", offset, offset, error=loss, hold=True))
                continue
            logger.warning("%s", loss.detail)
            if loss.diverges_at is None:
                checked.astray.append(partition)
            else:
                partition.sink.reset(partition, offset, loss.diverges_at, end.leader_epoch)
    return checked


def check_position(connection: Connection, tp: TopicPartition, offset: int, epoch: int) -> None:
    """Ask a leader of `tp` for the end of the epoch of what was read before `offset`. LogTruncated,
    or the leader's error. Nothing without an epoch, or from a broker that cannot tell."""
    if epoch == NO_LEADER_EPOCH:
        return
    error = find_truncated(connection, {tp: (offset, epoch)})[tp]
    if error is not None:
        raise error


def find_truncated(
    connection: Connection, positions: Mapping[TopicPartition, tuple[int, int]]
) -> dict[TopicPartition, ApiError | None]:
    """partition → the error that `check_position` raises for its offset and epoch, or None.
    ProtocolError."""
    if not _can_tell(connection):
        return dict.fromkeys(positions)
    asked = {tp: (epoch, NO_LEADER_EPOCH) for tp, (_, epoch) in positions.items()}
    ends, found = _ask(connection, asked), dict[TopicPartition, ApiError | None]()
    for tp, (offset, epoch) in positions.items():
        end = ends.get(tp)
        if end is None:
            raise ProtocolError(f"{connection} left out {tp} in its response")
        found[tp] = error_of(end.error_code, f"{tp} at {connection}")
        if found[tp] is None and end.end_offset < offset:
            found[tp] = truncated(tp, offset, epoch, end, str(connection))
    return found


def _can_tell(connection: Connection) -> bool:
    return connection.versions.serves_beyond(OffsetForLeaderEpochRequest, CONSUMER_VERSION - 1)


def truncated(
    tp: TopicPartition, position: int, epoch: int, end: EpochEndOffset, leader: str
) -> LogTruncated:
    """The error that says what happened to the log."""
    if end.end_offset == NO_OFFSET:
        text = (
            f"{tp}: the messages before offset {position} were lost: the log of its leader "
            f"({leader}) has none that was written up to leader epoch {epoch}, as after an unclean "
            "election, or if the topic was deleted and created again"
        )
        return LogTruncated(text, tp, position, None)
    at = end.end_offset
    text = (
        f"{tp}: the messages from offset {at} to {position - 1} were lost: in the log of its "
        f"leader ({leader}) what was written up to leader epoch {epoch} ends at {at}, as after an "
        "unclean election"
    )
    return LogTruncated(text, tp, position, at)


def last_epoch(data: Buffer, summary: SetSummary) -> int:
    """The leader epoch of the last entry of a set that was checked; NO_LEADER_EPOCH if its format
    has none."""
    if summary.magics <= MESSAGE_MAGICS:
        return NO_LEADER_EPOCH
    found = kernel.find_offset(data, summary.last_offset)
    last = batch_at(memoryview(data), found[0]) if found is not None else None
    return NO_LEADER_EPOCH if last is None else last.leader_epoch


def epoch_of(data: Buffer) -> int:
    """`last_epoch` of a set that was not checked; NO_LEADER_EPOCH of an empty or damaged one."""
    try:
        return last_epoch(data, kernel.validate(data, INT_MAX, verify_crc=False))
    except (kernel.CorruptMessage, kernel.UnknownCodec):
        return NO_LEADER_EPOCH


def _ask(
    connection: Connection, wanted: Mapping[TopicPartition, tuple[int, int]]
) -> dict[TopicPartition, EpochEndOffset]:
    """`wanted`: partition → (the epoch whose end is asked for, that of its leader)."""
    request = OffsetForLeaderEpochRequest(
        [
            OffsetForLeaderEpochTopic(
                topic, [OffsetForLeaderEpochPartition(number, *epochs) for number, epochs in items]
            )
            for topic, items in by_topic(wanted).items()
        ],
        version=CONSUMER_VERSION,
    )
    response = connection.send(request)
    assert isinstance(response, OffsetForLeaderEpochResponse)
    return by_partition(response.topics)
