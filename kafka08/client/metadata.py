"""A client's metadata: brokers, topics, leaders. Immutable; a response makes a new one.

Source: kafka.producer.BrokerPartitionInfo 0.8.2.2.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final

from kafka08.errors import (
    ApiError,
    InvalidTopic,
    LeaderNotAvailable,
    UnknownTopicOrPartition,
    error_for,
)
from kafka08.listing import counted
from kafka08.nearest import did_you_mean
from kafka08.protocol.metadata import MetadataResponse, PartitionMetadata, TopicMetadata
from kafka08.structs import NO_LEADER, NO_LEADER_EPOCH, Broker, TopicPartition

TOPIC_EXPIRY_S: Final = 300.0
"""A topic that got no record for so long is forgotten by producers: to name it in a metadata
request would have brokers create it if it was deleted. Source: Metadata.TOPIC_EXPIRY_MS
0.10.2.2."""


@dataclass(frozen=True, slots=True)
class PartitionInfo:
    """One partition, from a broker's response.

    leader     broker id, or NO_LEADER
    replicas   of live brokers only, up to 4 of them in assignment order
    isr        of live brokers only
    epoch      of the leader; NO_LEADER_EPOCH unless the client asks for epochs
    """

    partition: int
    leader: int
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()
    epoch: int = NO_LEADER_EPOCH


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """A topic's partitions by ascending number, or the error in their place.

    Never both: a topic in error has no partitions here.
    """

    topic: str
    error: type[ApiError] | None = None
    partitions: tuple[PartitionInfo, ...] = ()


@dataclass(frozen=True, slots=True)
class ClusterMetadata:
    """`brokers` by id, and `topics` by name, as far as they were requested."""

    brokers: Mapping[int, Broker] = field(default_factory=dict)
    topics: Mapping[str, TopicInfo] = field(default_factory=dict)

    def updated(self, response: MetadataResponse, *, all_topics: bool = False) -> ClusterMetadata:
        """This metadata with that of `response`. `all_topics`: others no longer exist.

        A response without brokers (from a broker that is just starting, or that met an error)
        leaves the brokers as they were; a topic in a passing error keeps its partitions.
        """
        brokers = {b.broker_id: Broker(b.broker_id, b.host, b.port) for b in response.brokers}
        topics = {} if all_topics else dict(self.topics)
        for topic in response.topics:
            topics[topic.topic] = _topic_info(topic, self.topics.get(topic.topic))
        return ClusterMetadata(brokers or self.brokers, topics)

    def limited_to(self, topics: Collection[str]) -> ClusterMetadata:
        """This metadata without other topics than these."""
        kept = {topic: info for topic, info in self.topics.items() if topic in topics}
        return ClusterMetadata(self.brokers, kept)

    def knows(self, topic: str) -> bool:
        """Whether the partitions of `topic` are known."""
        info = self.topics.get(topic)
        return info is not None and info.error is None

    def partitions(self, topic: str) -> tuple[PartitionInfo, ...]:
        """All partitions, leaderless ones too; raises the topic's error, and
        UnknownTopicOrPartition if no response had the topic."""
        info = self.topics.get(topic)
        if info is None:
            raise UnknownTopicOrPartition(f"no broker lists topic {topic}")
        if info.error is not None:
            raise info.error(f"topic {topic}")
        return info.partitions

    def leader(self, tp: TopicPartition) -> Broker:
        """The broker that leads `tp`. Raises UnknownTopicOrPartition, LeaderNotAvailable."""
        info = self._partition(tp)
        if info.leader == NO_LEADER:
            raise LeaderNotAvailable(f"{tp} has no leader")
        if info.leader not in self.brokers:
            raise LeaderNotAvailable(f"{tp}: its leader, broker {info.leader}, is not alive")
        return self.brokers[info.leader]

    def leader_epoch(self, tp: TopicPartition) -> int:
        """The epoch of the leader of `tp`. Raises UnknownTopicOrPartition."""
        return self._partition(tp).epoch

    def _partition(self, tp: TopicPartition) -> PartitionInfo:
        partitions = self.partitions(tp.topic)
        place = bisect_left(partitions, tp.partition, key=attrgetter("partition"))
        if place == len(partitions) or partitions[place].partition != tp.partition:
            raise UnknownTopicOrPartition(
                f"{tp}: the topic has {counted(len(partitions), 'partition')}"
            )
        return partitions[place]


def chosen_partitions(
    metadata: ClusterMetadata, topic: str, numbers: Iterable[int] | None = None
) -> list[TopicPartition]:
    """The partitions of `topic` with these numbers (None: all, ascending). UnknownTopicOrPartition
    for a missing one, and for a missing topic with the nearest name; the error of a topic. For
    metadata of all topics: a request for one by its name may create it."""
    if topic not in metadata.topics:
        near = did_you_mean(topic, metadata.topics)
        raise UnknownTopicOrPartition(f"topic {topic} does not exist{near}")
    existing = sorted(info.partition for info in metadata.partitions(topic))
    wanted = existing if numbers is None else list(numbers)
    known = frozenset(existing)
    for number in wanted:
        if number not in known:
            raise UnknownTopicOrPartition(
                f"{TopicPartition(topic, number)}: the topic has "
                f"{counted(len(existing), 'partition')}"
            )
    return [TopicPartition(topic, number) for number in wanted]


def _topic_info(topic: TopicMetadata, known: TopicInfo | None) -> TopicInfo:
    error = error_for(topic.error_code)
    if error is None:
        partitions = map(_partition_info, topic.partitions)
        return TopicInfo(topic.topic, None, tuple(sorted(partitions, key=lambda p: p.partition)))
    if error in {UnknownTopicOrPartition, InvalidTopic} or known is None:
        return TopicInfo(topic.topic, error)
    return known


def _partition_info(found: PartitionMetadata) -> PartitionInfo:
    replicas, isr = found.replicas, found.isr
    if found.offline:  # which version 0 leaves out
        replicas, isr = ([r for r in some if r not in found.offline] for some in (replicas, isr))
    return PartitionInfo(
        found.partition, found.leader, tuple(replicas), tuple(isr), found.leader_epoch
    )
