"""The lag of a group: one meaning in every view. Pure.

    committed in the log         messages from there to the log's end
    committed below its start    the same, as Kafka's tools count; some of them are deleted
    committed beyond its end     unknown, and bad: the topic was created again, or its log truncated
    never committed, or -1       the whole log, a lower bound: older messages may be deleted
    no log end (no leader, no response, no such partition)  unknown

Where the two stores have different offsets the larger one counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from kafka08.structs import TopicPartition

if TYPE_CHECKING:
    from kafka08.observe.group import PartitionFacts


class Lag(NamedTuple):
    """messages        None: unknown
    is_exact        False: `messages` is a lower bound, or unknown
    is_beyond_end   unknown because the offset lies beyond the log's end
    """

    messages: int | None
    is_exact: bool = True
    is_beyond_end: bool = False

    def __str__(self) -> str:
        """`24`, `at least 24`, or `unknown`."""
        return "unknown" if self.messages is None else number_of(self.messages, self.is_exact)


UNKNOWN: Final = Lag(None, False)
BEYOND_END: Final = Lag(None, False, True)


def lag_between(committed: int | None, start: int | None, end: int | None) -> Lag:
    """The lag of a group that committed this offset (None: none) in a log of this range (None:
    unknown)."""
    if end is None or end < 0:
        return UNKNOWN
    if committed is not None and committed >= 0:
        return BEYOND_END if committed > end else Lag(end - committed)
    # A log that never had a message has a lag of exactly 0.
    return UNKNOWN if start is None or start < 0 else Lag(max(0, end - start), end == 0)


@dataclass(frozen=True, slots=True)
class TopicLag:
    """A group's lag in one topic, in messages.

    partitions        the number of partitions whose lag is known, at least as a lower bound
    largest           the lag of the partition that is furthest behind
    lag               the sum over these partitions; a lower bound unless `is_exact`
    never_committed   partitions with messages, but without an offset in either store; their lag
                      counts from the log's start
    beyond_end        partitions whose offset lies beyond the log's end: the topic was created
                      again, or its log was truncated. Their lag is unknown
    """

    topic: str
    partitions: int
    largest: int
    lag: int
    never_committed: tuple[TopicPartition, ...] = ()
    beyond_end: tuple[TopicPartition, ...] = ()

    @property
    def is_exact(self) -> bool:
        return not self.never_committed and not self.beyond_end

    @property
    def lag_text(self) -> str:
        """`24`, `at least 24`, or `unknown` if it is so of all partitions."""
        if not self.partitions:
            return "unknown"
        return number_of(self.lag, self.is_exact)


def lag_by_topic(partitions: Iterable[PartitionFacts]) -> list[TopicLag]:
    """One row for each topic, in the order of `partitions`. A partition whose log has no known
    range (it has no leader, or does not exist) is left out."""
    by_topic: dict[str, list[tuple[TopicPartition, Lag]]] = {}
    for partition in partitions:
        lag = partition.lag_between
        if lag != UNKNOWN:
            tp = partition.topic_partition
            by_topic.setdefault(tp.topic, []).append((tp, lag))
    return [_lag_of(topic, of_topic) for topic, of_topic in by_topic.items()]


def _lag_of(topic: str, partitions: list[tuple[TopicPartition, Lag]]) -> TopicLag:
    known = [lag.messages for _, lag in partitions if lag.messages is not None]
    return TopicLag(
        topic,
        len(known),
        max(known, default=0),
        sum(known),
        tuple(tp for tp, lag in partitions if not lag.is_exact and not lag.is_beyond_end),
        tuple(tp for tp, lag in partitions if lag.is_beyond_end),
    )


def number_of(messages: int, is_exact: bool) -> str:
    return f"{messages}" if is_exact else f"at least {messages}"
