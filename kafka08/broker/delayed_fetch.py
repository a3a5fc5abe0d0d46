"""DelayedFetch: a fetch that waits until there is enough to read.

Over when
    A  this broker does not lead some partition any more
    B  this broker does not know some partition any more
    C  the fetch offset and the end lie in different segments, so a whole segment's rest waits
    D  the bytes between the fetch offsets and the ends reach min_bytes
    E  the HW lies below the log start (retention passed a stuck follower), so it has no position
The end is the HW for consumers, the LEO for followers; bytes are counted by file positions inside
one segment, without regard to max_bytes. Out of time, it reads what there is. Source:
kafka.server.DelayedFetch 0.8.2.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from kafka08.broker.purgatory import Wait
from kafka08.errors import NotLeaderForPartition, OffsetOutOfRange, UnknownTopicOrPartition
from kafka08.structs import TopicPartition

if TYPE_CHECKING:
    from kafka08.broker.partition import Partition
    from kafka08.broker.replica_manager import ReplicaManager
    from kafka08.log.slices import LogOffset


class DelayedFetch(Wait):
    """Waits under its partitions; `done` reads and answers, in the hub."""

    __slots__ = ("_done", "_from_follower", "_min_bytes", "_replica_manager", "_starts")

    def __init__(
        self,
        replica_manager: ReplicaManager,
        starts: Mapping[TopicPartition, LogOffset],
        min_bytes: int,
        done: Callable[[], object],
        *,
        from_follower: bool,
    ) -> None:
        self._replica_manager = replica_manager
        self._starts = starts
        self._min_bytes = min_bytes
        self._done = done
        self._from_follower = from_follower

    def is_satisfied(self) -> bool:
        readable = 0
        for topic_partition, start in self._starts.items():
            try:
                partition = self._replica_manager.leader(topic_partition)
                new = self._readable(partition, start)
            except (NotLeaderForPartition, UnknownTopicOrPartition, OffsetOutOfRange):
                return True  # A, B, E
            if new is None:
                return True  # C
            readable += new
        return readable >= self._min_bytes  # D

    def _readable(self, partition: Partition, start: LogOffset) -> int | None:
        """Bytes from the start to the end; None if they lie in different segments."""
        log = partition.leader_log()
        end = log.log_end
        if not self._from_follower and partition.high_watermark < end.offset:
            end = log.position_of(partition.high_watermark)
        if end.segment_base_offset != start.segment_base_offset:
            return None
        return max(0, end.position - start.position)

    def finish(self) -> None:
        self._done()
