"""Retention policies: which segments to delete. Pure functions of facts about segments.

A policy returns how many of the *oldest* segments to delete; a log has no gaps between segments.
Kafka's two policies are here and are applied one after the other; any object with `expired` works.
Source: kafka.log.LogManager.cleanupExpiredSegments and cleanupSegmentsToMaintainSize 0.8.2.2,
kafka.log.Log.deleteOldSegments 0.10.2.2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from kafka08.config import LONG_MAX
from kafka08.log.config import LogConfig
from kafka08.structs import TopicPartition


class SegmentFacts(NamedTuple):
    """base offset, bytes of messages, and the start of its age (ms since 1970): the last write, or
    from 0.10.2 on the largest timestamp, if there is one."""

    base_offset: int
    size: int
    newest_ms: int


class RetentionPolicy(Protocol):
    """Decides which segments a log no longer needs."""

    def expired(self, segments: Sequence[SegmentFacts], now_ms: int) -> int:
        """The number of segments to delete, from the oldest on: 0 to len(segments).

        The last of `segments` is the active one. It may be included (the log rolls first), but an
        empty active segment is kept in any case.
        """


PolicyFor = Callable[[LogConfig], RetentionPolicy]
Committed = Callable[[TopicPartition], int]
"""The offset below which a partition will never be truncated: its high watermark."""


def everything(_topic_partition: TopicPartition) -> int:
    """Used where there are no other replicas, or where they are unknown."""
    return LONG_MAX


@dataclass(frozen=True, slots=True)
class TimeRetention:
    """Delete while the oldest segment is older than `retention_ms`.

    0.8: a negative value does not mean "for ever"; every segment is older than -1 ms. From 0.9 on
    it does, see LogConfig.retention_limit_ms.
    """

    retention_ms: int

    def expired(self, segments: Sequence[SegmentFacts], now_ms: int) -> int:
        count = 0
        for segment in segments:
            if now_ms - segment.newest_ms <= self.retention_ms:
                break
            count += 1
        return count


@dataclass(frozen=True, slots=True)
class SizeRetention:
    """Delete while the rest still has at least `retention_bytes`; negative: never."""

    retention_bytes: int

    def expired(self, segments: Sequence[SegmentFacts], now_ms: int) -> int:
        if self.retention_bytes < 0:
            return 0
        excess = sum(segment.size for segment in segments) - self.retention_bytes
        if excess < 0:
            return 0
        count = 0
        for segment in segments:
            if excess < segment.size:
                break
            excess -= segment.size
            count += 1
        return count


@dataclass(frozen=True, slots=True)
class PolicyChain:
    """Several policies in order, each applied to the rest of the ones before."""

    policies: tuple[RetentionPolicy, ...]

    def expired(self, segments: Sequence[SegmentFacts], now_ms: int) -> int:
        count = 0
        for policy in self.policies:
            count += policy.expired(segments[count:], now_ms)
        return count


def kafka_retention(config: LogConfig) -> RetentionPolicy:
    """Kafka's own policy: by time, then by size."""
    by_time = TimeRetention(config.retention_limit_ms)
    return PolicyChain((by_time, SizeRetention(config.retention_bytes)))


def deletable(policy: RetentionPolicy, segments: Sequence[SegmentFacts], now_ms: int) -> int:
    """`policy.expired`, limited: an empty active segment stays."""
    count = policy.expired(segments, now_ms)
    assert 0 <= count <= len(segments), f"{policy} expired {count} of {len(segments)} segments"
    if count == len(segments) and segments[-1].size == 0:
        return count - 1
    return count
