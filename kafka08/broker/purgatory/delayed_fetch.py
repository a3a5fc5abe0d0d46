"""DelayedFetch: a fetch that waits until there is enough to read.

It completes when
    A  this broker does not lead some partition any more
    B  this broker does not know some partition any more
    C  the fetch offset and the end are in different segments, so the rest of a segment can be read
    D  the bytes between the fetch offsets and the ends reach min_bytes
    E  the HW lies below the log start (retention passed a stuck follower), so it has no position
The end is the HW for consumers, or the last stable offset, and the LEO for followers; bytes are
counted by file positions inside one segment, without regard to max_bytes. On timeout it reads what
is available. Source: kafka.server.DelayedFetch 0.8.2.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from kafka08.broker.purgatory.purgatory import DelayedOperation
from kafka08.broker.replica.partition import Partition
from kafka08.broker.replica.replica_state import has_news
from kafka08.errors import NotLeaderForPartition, OffsetOutOfRange, UnknownTopicOrPartition
from kafka08.log.slices import LogOffset
from kafka08.structs import TopicPartition


class DelayedFetch(DelayedOperation):
    """Waits for its partitions; `done` reads and responds, in the hub.

    partition   finds a partition, or raises the error of one that is gone
    starts      the start position of each partition; or, if nothing can be read there yet and any
                number of bytes is enough, only its offset
    """

    __slots__ = (
        "_from_follower",
        "_min_bytes",
        "_partition",
        "_readable",
        "_readable_bytes",
        "_stable_only",
        "_starts",
    )

    def __init__(
        self,
        partition: Callable[[TopicPartition], Partition],
        starts: Mapping[TopicPartition, LogOffset | int],
        min_bytes: int,
        done: Callable[[], object],
        *,
        from_follower: bool,
        stable_only: bool = False,
    ) -> None:
        self._partition = partition
        self._stable_only = stable_only
        self._starts = dict(starts)
        self._readable: dict[TopicPartition, int] = {}
        self._readable_bytes = 0
        self._min_bytes = min_bytes
        self.complete = done
        self._from_follower = from_follower

    def is_satisfied(self) -> bool:
        self._readable = {}
        self._readable_bytes = 0
        known = [tp for tp, start in self._starts.items() if not isinstance(start, int)]
        return any(self._check_partition(tp) for tp in known) or self._has_enough

    def is_satisfied_by(self, key: TopicPartition) -> bool:
        return self._check_partition(key) or self._has_enough

    @property
    def _has_enough(self) -> bool:
        return self._readable_bytes >= self._min_bytes  # D

    def _check_partition(self, topic_partition: TopicPartition) -> bool:
        """Record the readable bytes; returns whether the partition alone completes the fetch."""
        try:
            readable = self._readable_of(topic_partition)
        except (NotLeaderForPartition, UnknownTopicOrPartition, OffsetOutOfRange):
            return True  # A, B, E
        if readable is None:
            return True  # C
        self._readable_bytes += readable - self._readable.get(topic_partition, 0)
        self._readable[topic_partition] = readable
        return False

    def _readable_of(self, topic_partition: TopicPartition) -> int | None:
        """Bytes from the start to the end; None if they are in different segments, or if any number
        of bytes is enough."""
        start = self._starts[topic_partition]
        partition = self._partition(topic_partition)
        log = partition.leader_log()
        if isinstance(start, int):
            log_end_offset = log.active_segment.end_offset
            reached = log_end_offset if self._from_follower else self._end_of(partition)
            # Any number of bytes is enough, so no position is looked up.
            if start < reached:
                return None  # the read reports it if retention has deleted `start`
            if start == reached and log.log_start_offset <= start:
                return 0
            start = self._starts[topic_partition] = log.position_of(start)
        end = log.log_end
        readable = end.offset if self._from_follower else self._end_of(partition)
        if readable < end.offset:
            end = log.position_of(readable)
        if end.segment_base_offset != start.segment_base_offset:
            return None
        return max(0, end.position - start.position)

    def _end_of(self, partition: Partition) -> int:
        """Where consumers of this kind must stop."""
        return partition.last_stable_offset if self._stable_only else partition.high_watermark


class DelayedFollowerFetch(DelayedOperation):
    """The fetch of a follower that has everything and waits for any number of bytes.

    find                  a partition by name; None if it is gone
    follower              its broker id
    partitions, offsets   of the request, in its order; a partition that was deleted leads no more
    complete              responds, in the hub
    has_news              whether some of them may be read already
    """

    __slots__ = ("_find", "_follower", "_has_news", "_names", "_offsets", "_partitions")

    def __init__(
        self,
        find: Callable[[TopicPartition], Partition | None],
        follower: int,
        partitions: list[Partition],
        offsets: list[int],
        complete: Callable[[], None],
        *,
        has_news: bool,
    ) -> None:
        self._find = find
        self._follower = follower
        self._partitions = partitions
        self._offsets = offsets
        self.complete = complete
        self._has_news = has_news
        self._names: set[TopicPartition] | None = None

    def watches(self, key: TopicPartition) -> bool:
        if self._names is None:
            self._names = {partition.topic_partition for partition in self._partitions}
        return key in self._names

    def is_satisfied(self) -> bool:
        return self._has_news or has_news(self._partitions, self._offsets)  # A to D

    def is_satisfied_by_any(self, keys: Iterable[TopicPartition]) -> bool:
        for key in keys:
            partition = self._find(key)
            # Without watch lists: partitions of other followers do not cost a comparison of all.
            if partition is None or self._follower in partition.followers:
                return self.is_satisfied()
        return self._has_news
