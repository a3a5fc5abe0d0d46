"""Retention: which segments to delete. Pure functions of facts about segments.

Only the *oldest* segments go; a log has no gaps between segments. Source:
kafka.log.LogManager.cleanupExpiredSegments and cleanupSegmentsToMaintainSize 0.8.2.2,
kafka.log.Log.deleteOldSegments 0.10.2.2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kafka08.config import LONG_MAX
from kafka08.structs import TopicPartition


class SegmentFacts(NamedTuple):
    """base offset, bytes of messages, and the start of its age (ms since 1970): the last write, or
    from 0.10.2 on the largest timestamp, if there is one."""

    base_offset: int
    size: int
    newest_ms: int


Committed = Callable[[TopicPartition], int]
"""The offset below which a partition will never be truncated: its high watermark."""


def everything(_topic_partition: TopicPartition) -> int:
    """Used where there are no other replicas, or where they are unknown."""
    return LONG_MAX


@dataclass(frozen=True, slots=True)
class Retention:
    """The messages that a log keeps: first by time, then by size.

    retention_ms      segments that are older go. 0.8: a negative value does not mean "for ever";
                      every segment is older than -1 ms. From 0.9 on it does, see
                      LogConfig.retention_limit_ms
    retention_bytes   segments go while the rest still has as many; negative: never
    """

    retention_ms: int = LONG_MAX
    retention_bytes: int = -1

    def expired(self, segments: Sequence[SegmentFacts], now_ms: int) -> int:
        """The number of segments to delete, from the oldest on: 0 to len(segments). The last of
        `segments` is the active one, which is kept if it is empty; else the log rolls first."""
        count = self._too_old(segments, now_ms)
        count += self._too_many(segments[count:])
        is_empty = segments[-1].size == 0
        return count - 1 if is_empty and count == len(segments) else count

    def _too_old(self, segments: Sequence[SegmentFacts], now_ms: int) -> int:
        for count, segment in enumerate(segments):
            if now_ms - segment.newest_ms <= self.retention_ms:
                return count
        return len(segments)

    def _too_many(self, segments: Sequence[SegmentFacts]) -> int:
        if self.retention_bytes < 0:
            return 0
        excess = sum(segment.size for segment in segments) - self.retention_bytes
        for count, segment in enumerate(segments):
            if excess < segment.size:
                return count
            excess -= segment.size
        return len(segments)
