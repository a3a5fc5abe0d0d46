"""Requested offsets that the log no longer has (or not yet), and the errors about them. Pure."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kafka08.arrow.ranges import OffsetRange
from kafka08.consumer.fetching.truncation import LogTruncated
from kafka08.errors import ClientError
from kafka08.structs import TopicPartition

logger = logging.getLogger(__name__)


class Advised(ClientError):
    """An error with `facts` and advice. Callers replace the advice by one for their own users."""

    def __init__(self, facts: str, advice: str = "") -> None:
        super().__init__(f"{facts}. {advice}" if advice else facts)
        self.facts = facts


class DataLost(Advised):
    """Some of the requested offsets no longer exist; `facts` lists every missing range."""


@dataclass(frozen=True, slots=True)
class Loss:
    """The log lacks offsets of `wanted`: the leader has [earliest, latest); both None: the
    partition no longer exists."""

    wanted: OffsetRange
    earliest: int | None
    latest: int | None

    @property
    def missing(self) -> int:
        """How many of the requested offsets are missing."""
        return self.wanted.size - self.kept().size

    def kept(self) -> OffsetRange:
        """The part of the range that exists; may be empty."""
        if self.earliest is None or self.latest is None:
            return self.wanted._replace(until_offset=self.wanted.from_offset)
        start = max(self.wanted.from_offset, min(self.earliest, self.wanted.until_offset))
        until = max(start, min(self.wanted.until_offset, self.latest))
        return self.wanted._replace(from_offset=start, until_offset=until)

    @property
    def accepted(self) -> str:
        """The log line if the loss is not an error."""
        return f"{self.missing} offsets are missing and passed over: {self}"

    def __str__(self) -> str:
        if self.earliest is None:
            return f"{self.wanted}: the partition is gone"
        return f"{self.wanted}: only [{self.earliest}, {self.latest}) is there"


@dataclass(frozen=True, slots=True)
class Truncation:
    """The log of a new leader lacks messages that were read. `left`: what is still to be read."""

    left: OffsetRange
    cause: LogTruncated

    def __str__(self) -> str:
        return self.cause.detail

    @property
    def accepted(self) -> str:
        return f"{self}; reading continues at offset {self.left.from_offset}"


@dataclass(frozen=True, slots=True)
class RecreatedTopic:
    """A partition whose topic was deleted and recreated, or whose log looks like that.

    position    position of the stream in the old log
    old_end     last known end of the old log; None: unknown to this process
    earliest, latest   the offsets of the new log
    is_known    ZooKeeper confirms it; else an unclean election may have truncated the log
    is_start    nothing was read before `position`: it may also be an option that is wrong
    """

    topic_partition: TopicPartition
    position: int
    old_end: int | None
    earliest: int
    latest: int
    is_known: bool
    is_start: bool = False

    def __str__(self) -> str:
        if self.is_start and not self.is_known:
            return (
                f"{self.topic_partition}: the query starts at {self.position}, but the log has "
                f"[{self.earliest}, {self.latest}): startingOffsets is too high, or the topic was "
                "deleted and recreated"
            )
        ended = "" if self.old_end is None else f" and ended at {max(self.old_end, self.position)}"
        cause = "" if self.is_known else ", or cut by an unclean election"
        return (
            f"{self.topic_partition}: the topic was deleted and recreated{cause}: the old log was "
            f"read up to {self.position}{ended}, the new one has [{self.earliest}, {self.latest})"
        )

    @property
    def accepted(self) -> str:
        return f"{self}; it is read from {self.earliest} on"


@dataclass(frozen=True, slots=True)
class MissingPartition:
    """A partition that a stream has read up to `position`, and cannot go on with: it `exists` no
    longer, or does and the query does not read it any more."""

    topic_partition: TopicPartition
    position: int
    exists: bool

    def __str__(self) -> str:
        why = (
            "the query does not read it, the checkpoint does"
            if self.exists
            else "the partition is gone"
        )
        return f"{self.topic_partition} read up to {self.position}: {why}"

    @property
    def accepted(self) -> str:
        return f"{self}; the query continues without it"


def clamp(
    wanted: Iterable[OffsetRange],
    earliest: Mapping[TopicPartition, int],
    latest: Mapping[TopicPartition, int],
) -> tuple[list[OffsetRange], list[Loss]]:
    """The existing parts of the ranges, in order, and the losses. An empty range loses nothing,
    wherever it is."""
    kept, losses = [], []
    for of_partition in wanted:
        tp = of_partition.topic_partition
        loss = Loss(of_partition, earliest.get(tp), latest.get(tp))
        if loss.missing:
            losses.append(loss)
        kept.append(loss.kept() if loss.missing else of_partition)
    return kept, losses


def report(
    losses: Iterable[Loss | Truncation | RecreatedTopic | MissingPartition], *, fail: bool
) -> None:
    """Raise DataLost with all of `losses`, or log each; nothing if there are none."""
    listed = list(losses)
    if not listed:
        return
    if fail:
        advice = "To read what is there, set failOnDataLoss to false"
        if all(isinstance(loss, MissingPartition) and loss.exists for loss in listed):
            advice = "Give each query a checkpointLocation of its own, or subscribe to these again"
        raise DataLost("offsets are missing: " + "; ".join(map(str, listed)), advice)
    for loss in listed:
        logger.warning("%s", loss.accepted)
