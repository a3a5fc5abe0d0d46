"""A group's lag by topic. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kafka08.groups.facts import PartitionOffsets
from kafka08.structs import TopicPartition


@dataclass(frozen=True, slots=True)
class TopicLag:
    """A group's lag in one topic, in messages.

    partitions        the number of partitions whose lag is known, at least as a lower bound
    largest           the lag of the partition that is furthest behind
    lag               the sum over all partitions; a lower bound unless `is_exact`
    never_committed   the number of partitions with messages, but without an offset in either store;
                      their lag counts from the log's start
    beyond_end        the number of partitions whose offset lies beyond the log's end: the topic was
                      created again, or its log was truncated. Their whole log counts as unread
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
        """`24`, or `at least 24`."""
        return f"{self.lag}" if self.is_exact else f"at least {self.lag}"


def lag_by_topic(partitions: Iterable[PartitionOffsets]) -> list[TopicLag]:
    """One row for each topic, in the order of `partitions`. A partition of unknown lag (it has no
    leader, or does not exist) is left out."""
    by_topic: dict[str, list[PartitionOffsets]] = {}
    for partition in partitions:
        if partition.lag is not None:
            by_topic.setdefault(partition.topic_partition.topic, []).append(partition)
    return [_lag_of(topic, of_topic) for topic, of_topic in by_topic.items()]


def _lag_of(topic: str, partitions: list[PartitionOffsets]) -> TopicLag:
    lags = [_unread(p) for p in partitions]
    return TopicLag(
        topic,
        len(partitions),
        max(lags),
        sum(lags),
        tuple(p.topic_partition for p in partitions if not p.is_lag_exact),
        tuple(p.topic_partition for p in partitions if _is_beyond_end(p)),
    )


def _is_beyond_end(partition: PartitionOffsets) -> bool:
    return partition.lag is not None and partition.lag < 0


def _unread(partition: PartitionOffsets) -> int:
    """At least 0, so that a partition beyond its end does not reduce the topic's sum."""
    assert partition.lag is not None, "partitions of unknown lag are left out before"
    if not _is_beyond_end(partition) or partition.log_start is None or partition.log_end is None:
        return max(0, partition.lag)
    return partition.log_end - partition.log_start
