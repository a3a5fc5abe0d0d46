"""Asks brokers which partitions exist, and leaders where their logs start and end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set

from kafka08.arrow.connections import refreshed
from kafka08.arrow.options import Assignment, Subscription, TopicPattern
from kafka08.arrow.settings import ReadSettings
from kafka08.client import log_offsets
from kafka08.client.cluster import ClusterClient
from kafka08.client.metadata import ClusterMetadata
from kafka08.client.retry import is_retriable_at_leader, retry
from kafka08.consumer.fetching.truncation import LogTruncated, find_truncated
from kafka08.errors import (
    KafkaError,
    LeaderNotAvailable,
    UnknownTopicOrPartition,
    UnsupportedForMessageFormat,
)
from kafka08.listing import counted
from kafka08.nearest import did_you_mean
from kafka08.structs import INTERNAL_TOPICS, TopicPartition


class LogOffsets:
    """Requests to a cluster. Each raises the first partition's error after the last retry: the
    cluster client's own, and that of `settings` for topics that are being created."""

    def __init__(self, cluster: ClusterClient, settings: ReadSettings) -> None:
        self._cluster = cluster
        self._policy = settings.retry_policy
        self._looks = settings.looks
        self._isolation = settings.isolation

    def subscribed(
        self, subscription: Subscription, *, must_exist: bool = True
    ) -> tuple[TopicPartition, ...]:
        """The existing partitions, sorted. Missing topics and partitions are left out, or
        UnknownTopicOrPartition names them. A pattern may match no topic, and never matches internal
        topics."""
        return retry(
            lambda: self._subscribed(subscription, must_exist),
            self._policy,
            self._cluster.clock,
            what="looking for the partitions",
            passes=lambda error: isinstance(error, LeaderNotAvailable),
        )

    def _subscribed(
        self, subscription: Subscription, must_exist: bool
    ) -> tuple[TopicPartition, ...]:
        metadata = self._listed()
        if must_exist:
            _check_topics(_topics(subscription, metadata), metadata)
        found = sorted(
            TopicPartition(topic, info.partition)
            for topic in _topics(subscription, metadata)
            if must_exist or topic in metadata.topics
            for info in metadata.partitions(topic)
        )
        if not isinstance(subscription, Assignment):
            return tuple(found)
        missing = set(subscription.partitions).difference(found)
        if missing and must_exist:
            counts = {tp: len(metadata.partitions(tp.topic)) for tp in sorted(missing)}
            raise UnknownTopicOrPartition(
                "; ".join(
                    f"{tp}: the topic has {counted(count, 'partition')}"
                    for tp, count in counts.items()
                )
            )
        return tuple(tp for tp in subscription.partitions if tp not in missing)

    def existing(self, partitions: Iterable[TopicPartition]) -> set[TopicPartition]:
        """Those of `partitions` that exist. If one is missing, the cluster is asked once more: a
        broker may know only some of them yet."""
        wanted = set(partitions)
        there = _there(wanted, self._listed()) if wanted else wanted
        if there != wanted:
            self._cluster.clock.sleep(self._policy.backoff_ms / 1000)
            there = _there(wanted, self._listed())
        return there

    def _listed(self) -> ClusterMetadata:
        """Metadata of all topics. A response without brokers is requested again, as the brokers
        may be starting. After the last look it counts as true: a cluster that never had a topic
        sends it, too."""
        metadata = self._refreshed()
        for _ in range(self._looks):
            if metadata.brokers:
                break
            self._cluster.clock.sleep(self._policy.backoff_ms / 1000)
            metadata = self._refreshed()
        return metadata

    def _refreshed(self) -> ClusterMetadata:
        return refreshed(self._cluster, self._policy, what="listing the topics")

    def earliest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return log_offsets.log_starts(self._cluster, partitions)

    def latest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The first offset that this reader must not read yet: the high watermark, or of committed
        messages the last stable offset."""
        return log_offsets.log_ends(self._cluster, partitions, self._isolation)

    def latest_with_epochs(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, tuple[int, int]]:
        """`latest`, each with the epoch of a leader that has the messages before it, where brokers
        say it."""
        return log_offsets.log_ends_with_epochs(self._cluster, partitions, self._isolation)

    def truncations(
        self, positions: Mapping[TopicPartition, tuple[int, int]]
    ) -> dict[TopicPartition, LogTruncated]:
        """partition → what happened to its log, where that lacks messages before an offset which a
        leader of an earlier epoch had. `positions`: partition → offset and epoch."""
        if not positions:
            return {}
        found = self._cluster.ask_each_leader(
            positions, find_truncated, passes=is_retriable_at_leader
        )
        lost = {tp: one for tp, one in found.items() if isinstance(one, LogTruncated)}
        for tp, error in found.items():
            if isinstance(error, KafkaError) and tp not in lost:
                raise error
        return lost

    def latest_up_to(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """`latest`; where that is below the wanted offset, the leader's log end, but not above the
        wanted offset. A leader that was just elected has a high watermark below messages that its
        log has, and a transaction may be open: they are not lost, and a fetch waits for them."""
        found = self.latest(sorted(wanted))
        behind = [tp for tp, end in sorted(found.items()) if end < wanted[tp]]
        written = self.written(behind)
        return found | {tp: min(wanted[tp], max(found[tp], written[tp])) for tp in behind}

    def written(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The leader's log end offset, which may be above the high watermark."""
        return log_offsets.leader_log_ends(self._cluster, partitions)

    def segments(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, list[int]]:
        """First offsets of all segments, ascending, then the log end."""
        return log_offsets.segment_starts(self._cluster, partitions)

    def last_segment_before(
        self, times: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int | None]:
        """First offset of the last segment that was last written at or before the time in ms; None
        without one. The log end if the whole log was written by then."""
        return log_offsets.offsets_before_each(self._cluster, times)

    def first_since(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """Offset of the first message whose timestamp is at or after the time in ms; None without
        one. UnsupportedVersion from brokers before 0.10.1, UnsupportedForMessageFormat for topics
        whose messages have no timestamps, and where the broker might not have searched all."""
        found = log_offsets.messages_at(self._cluster, times, self._isolation)
        self._check_searched({tp: times[tp] for tp, message in found.items() if message is None})
        return {tp: None if message is None else message[0] for tp, message in found.items()}

    def _check_searched(self, times: Mapping[TopicPartition, int]) -> None:
        """UnsupportedForMessageFormat if there may be a message of its time or later in one of
        these partitions, although the broker found none: a JVM broker does not search behind a
        segment without timestamps that was written at the time or later. An upgraded log begins
        with such segments. They hide nothing if even the last segment was written before the time.
        Source: Log.fetchOffsetsByTimestamp 0.10.2.2."""
        of_any_time = log_offsets.messages_at(
            self._cluster, dict.fromkeys(times, 0), self._isolation
        )
        untimed = [tp for tp, message in of_any_time.items() if message is None]
        before = self.last_segment_before({tp: max(0, times[tp] - 1) for tp in untimed})
        segments = self.segments(untimed)
        hidden = [
            tp for tp in untimed if len(segments[tp]) > 1 and before[tp] not in segments[tp][-2:]
        ]
        if hidden:
            raise UnsupportedForMessageFormat(
                f"{', '.join(map(str, hidden))}: the log begins with messages without timestamps, "
                "behind which brokers do not search if they were written at that time or later"
            )


def _check_topics(names: Iterable[str], metadata: ClusterMetadata) -> None:
    """UnknownTopicOrPartition names those that no broker knows."""
    missing = [name for name in names if name not in metadata.topics]
    if missing:
        raise UnknownTopicOrPartition(
            "; ".join(
                f"topic {name} does not exist{did_you_mean(name, metadata.topics)}"
                for name in missing
            )
        )


def _there(wanted: Set[TopicPartition], metadata: ClusterMetadata) -> set[TopicPartition]:
    """Those of `wanted` that `metadata` has."""
    topics = {tp.topic for tp in wanted}
    return {
        tp
        for topic in topics
        if metadata.knows(topic)
        for p in metadata.partitions(topic)
        if (tp := TopicPartition(topic, p.partition)) in wanted
    }


def _topics(subscription: Subscription, metadata: ClusterMetadata) -> list[str]:
    """The topics that a subscription names, even if they do not exist; for a pattern, the topics
    that match."""
    if isinstance(subscription, Assignment):
        return sorted({tp.topic for tp in subscription.partitions})
    if isinstance(subscription, TopicPattern):
        matches = subscription.compiled().fullmatch
        return [t for t in metadata.topics if matches(t) and t not in INTERNAL_TOPICS]
    return list(subscription.names)
