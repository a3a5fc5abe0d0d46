"""What the leaders say about partitions: which there are, and where their logs start and end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from kafka08.client.cluster import ClusterClient
from kafka08.client.metadata import ClusterMetadata
from kafka08.client.requests import offsets_request, offsets_results
from kafka08.client.retry import RetryPolicy, retry
from kafka08.clock import SYSTEM_CLOCK, Clock
from kafka08.errors import (
    ApiError,
    LeaderNotAvailable,
    NoBrokersAvailable,
    UnknownTopicOrPartition,
    error_of,
)
from kafka08.network.connection import Connection
from kafka08.protocol.offsets import OffsetsResponse
from kafka08.spark.options import Assignment, Subscription, TopicPattern
from kafka08.structs import EARLIEST_OFFSET, INTERNAL_TOPICS, LATEST_OFFSET, TopicPartition

SEGMENTS_MAX: Final = 100_000
"""First offsets of segments asked for at once; a log has fewer files."""


class LogOffsets:
    """Questions to a cluster. Each raises the first partition's error once the retries (the cluster
    client's own, and `policy` for topics that are being created) are used up."""

    def __init__(
        self,
        cluster: ClusterClient,
        policy: RetryPolicy = RetryPolicy(),
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._cluster = cluster
        self._policy = policy
        self._clock = clock

    def subscribed(
        self, subscription: Subscription, *, must_exist: bool = True
    ) -> tuple[TopicPartition, ...]:
        """The partitions there are now, sorted. UnknownTopicOrPartition names what is not there
        (or it is left out); a pattern may match nothing, and never matches internal topics.

        Asks for all topics, since a topic asked for by name may be created by that.
        """
        return retry(
            lambda: self._subscribed(subscription, must_exist),
            self._policy,
            self._clock,
            what="looking for the partitions",
            passes=lambda error: isinstance(error, LeaderNotAvailable | NoBrokersAvailable),
        )

    def _subscribed(
        self, subscription: Subscription, must_exist: bool
    ) -> tuple[TopicPartition, ...]:
        metadata = self._cluster.refresh()
        found = sorted(
            TopicPartition(topic, info.partition)
            for topic in _topics(subscription, metadata)
            if must_exist or topic in metadata.topics
            for info in metadata.partitions(topic)
        )
        if not isinstance(subscription, Assignment):
            return tuple(found)
        missing = sorted(set(subscription.partitions) - set(found))
        if missing and must_exist:
            raise UnknownTopicOrPartition(", ".join(map(str, missing)))
        return tuple(tp for tp in subscription.partitions if tp not in missing)

    def existing(self, partitions: Iterable[TopicPartition]) -> set[TopicPartition]:
        """Those of `partitions` that there are now."""
        metadata = self._cluster.refresh()
        return {
            tp
            for tp in partitions
            if metadata.knows(tp.topic)
            and any(p.partition == tp.partition for p in metadata.partitions(tp.topic))
        }

    def earliest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return self._one(dict.fromkeys(partitions, EARLIEST_OFFSET))

    def latest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The first offset that consumers may not read yet."""
        return self._one(dict.fromkeys(partitions, LATEST_OFFSET))

    def segments(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, list[int]]:
        """First offsets of all segments, ascending, then the log end."""
        answers = self._ask(dict.fromkeys(partitions, LATEST_OFFSET), SEGMENTS_MAX)
        return {tp: sorted(set(offsets)) for tp, offsets in answers.items()}

    def last_segment_before(
        self, times: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int | None]:
        """First offset of the last segment that was last written at or before the time in ms, None
        if there is none. The log end if the whole log was."""
        answers = self._ask(times, 1)
        return {tp: offsets[0] if offsets else None for tp, offsets in answers.items()}

    def _one(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        return {tp: offsets[0] for tp, offsets in self._ask(times, 1).items()}

    def _ask(
        self, times: Mapping[TopicPartition, int], max_offsets: int
    ) -> dict[TopicPartition, list[int]]:
        def ask(
            connection: Connection, of_broker: Mapping[TopicPartition, int]
        ) -> dict[TopicPartition, list[int] | ApiError]:
            response = connection.send(offsets_request(of_broker, max_offsets=max_offsets))
            assert isinstance(response, OffsetsResponse)
            answers: dict[TopicPartition, list[int] | ApiError] = {}
            for tp, answer in offsets_results(response).items():
                error = error_of(answer.error_code, f"{tp} at {connection}")
                answers[tp] = list(answer.offsets) if error is None else error
            return answers

        return self._cluster.ask_leaders(times, ask) if times else {}


def _topics(subscription: Subscription, metadata: ClusterMetadata) -> list[str]:
    """The topics that a subscription names, whether they exist or not; for a pattern those that
    match it."""
    if isinstance(subscription, Assignment):
        return sorted({tp.topic for tp in subscription.partitions})
    if isinstance(subscription, TopicPattern):
        matches = subscription.compiled().fullmatch
        return [t for t in metadata.topics if matches(t) and t not in INTERNAL_TOPICS]
    return list(subscription.names)
