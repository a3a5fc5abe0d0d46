"""RecordDeletions: deletes the first records of partitions that this broker leads.

The leader's log starts higher at once; its followers learn that with the response to a Fetch, and
the leader from their next one that theirs do too. On each replica that is on disk before it is
told: 0.11.0.3 writes the file once a minute, so what was deleted may be read again after a kill.
Source: kafka.server.ReplicaManager.deleteRecords 0.11.0.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from kafka08.broker.cluster.metadata_cache import MetadataCache
from kafka08.broker.purgatory.delayed_deletion import DelayedDeletion, Deletion, Deletions
from kafka08.broker.purgatory.purgatory import WhenClosed
from kafka08.broker.replication.replica_manager import ReplicaManager
from kafka08.errors import (
    ApiError,
    InvalidTopic,
    OffsetOutOfRange,
    PolicyViolation,
    RequestTimedOut,
    UnknownTopicOrPartition,
)
from kafka08.protocol.delete_records import HIGH_WATERMARK, NO_LOW_WATERMARK
from kafka08.runtime import BrokerRuntime
from kafka08.runtime.yielding import yielding
from kafka08.structs import INTERNAL_TOPICS, TopicPartition


class RecordDeletions:
    """`checkpoint` writes where the logs of this broker start. Switches."""

    def __init__(
        self,
        runtime: BrokerRuntime,
        replica_manager: ReplicaManager,
        metadata_cache: MetadataCache,
        checkpoint: Callable[[], object],
    ) -> None:
        self._runtime = runtime
        self._replica_manager = replica_manager
        self._metadata_cache = metadata_cache
        self.checkpoint = checkpoint

    def delete(
        self,
        before: Mapping[TopicPartition, int],
        timeout_ms: int,
        when_closed: WhenClosed,
        done: Callable[[Deletions], object],
    ) -> None:
        """Delete the records before these offsets, or before the HW (HIGH_WATERMARK), and call
        `done` in the hub, maybe before this returns: once they are deleted on all live replicas, or
        after `timeout_ms`. Not if the client is gone before. Switches."""
        results: Deletions = {}
        pending: dict[TopicPartition, int] = {}
        fetches = self._replica_manager.purgatories.follower_fetches
        for tp, offset in yielding(before.items(), self._runtime):
            try:
                offset_to_reach, has_risen = self._raise(tp, offset)
                results[tp] = Deletion(self.low_watermark(tp), RequestTimedOut.code)
            except ApiError as error:
                results[tp] = Deletion(NO_LOW_WATERMARK, error.code)
                continue
            pending[tp] = offset_to_reach
            if has_risen:
                fetches.expire(tp)  # its followers would hear of it half a second later
        if pending:
            self.checkpoint()

        def complete() -> None:
            done(results | wait.results)

        waits = self._replica_manager.purgatories.deletions
        wait = DelayedDeletion(self.low_watermark, pending, complete)
        if wait.is_satisfied() or timeout_ms <= 0:
            complete()
        else:
            waits.watch(wait, list(pending), timeout_ms)
            when_closed(partial(waits.abandon, wait))

    def _raise(self, tp: TopicPartition, offset: int) -> tuple[int, bool]:
        """Raise the log start of a partition; returns the offset to reach, and whether it was
        lower. UnknownTopicOrPartition, InvalidTopic, NotLeaderForPartition, OffsetOutOfRange,
        PolicyViolation."""
        if tp.topic not in self._metadata_cache:
            raise UnknownTopicOrPartition(f"topic {tp.topic} is not known here")
        if tp.topic in INTERNAL_TOPICS:
            raise InvalidTopic(f"records of internal topic {tp.topic} cannot be deleted")
        partition = self._replica_manager.partition(tp)
        if offset == HIGH_WATERMARK:
            partition.leader_log()  # raises
            offset = partition.high_watermark
        if offset < 0:
            raise OffsetOutOfRange(f"{offset} is no offset of {tp}")
        log = partition.leader_log()
        if offset > partition.high_watermark:
            raise OffsetOutOfRange(
                f"{offset} is above the high watermark of {tp}, {partition.high_watermark}"
            )
        if not log.config.deletes:
            # 0.11.0.3 has raised the log start when it notices.
            raise PolicyViolation(f"{tp} has a cleanup.policy without delete")
        return offset, log.raise_log_start(offset)

    def low_watermark(self, tp: TopicPartition) -> int:
        """The lowest log start of the live replicas, -1 if one is unknown.
        UnknownTopicOrPartition, NotLeaderForPartition."""
        partition = self._replica_manager.partition(tp)
        starts = [partition.leader_log().log_start_offset]
        starts += [
            partition.followers[broker_id].log_start_offset
            for broker_id in partition.replicas
            if broker_id in partition.followers and self._metadata_cache.is_alive(broker_id)
        ]
        return min(starts)
