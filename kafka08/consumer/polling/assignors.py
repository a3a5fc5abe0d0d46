"""How the members of a group with a coordinator share partitions. Pure.

The coordinator makes one member the leader, and the leader's client computes the assignment of all
members; the broker never looks inside. Any object with the methods of `Assignor` can be used, also
one of your own: all members of the group must offer one of its name. `range` and `roundrobin` give
exactly what Java's give for the same members, so groups may mix clients. Source:
org.apache.kafka.clients.consumer.RangeAssignor, RoundRobinAssignor 0.10.2.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from typing import Protocol, TypeAlias

from kafka08.client.metadata import ClusterMetadata
from kafka08.protocol.consumer_protocol import Assignment, Subscription
from kafka08.protocol.types import Buffer
from kafka08.structs import TopicPartition

Shares: TypeAlias = dict[str, list[TopicPartition]]
"""member id → what it gets."""


@dataclass(frozen=True, slots=True)
class MemberSubscription:
    """What a member told the group when it joined."""

    topics: tuple[str, ...]
    user_data: bytes | None = None
    """The bytes of its own assignor's `subscription`."""


@dataclass(frozen=True, slots=True)
class MemberAssignment:
    """What a member gets."""

    partitions: list[TopicPartition] = field(default_factory=list)
    user_data: bytes | None = None
    """Bytes for its own assignor's `on_assignment`."""


class Assignor(Protocol):
    """A way to share partitions. A thread of the consumer calls it: `assign` in the leader of the
    group alone. What it raises is raised by `poll`."""

    @property
    def name(self) -> str:
        """The same in all members of the group."""

    def subscription(self, topics: Sequence[str]) -> MemberSubscription:
        """What this member tells the leader: its topics, and bytes of the assignor's own."""

    def assign(
        self, cluster: ClusterMetadata, subscriptions: Mapping[str, MemberSubscription]
    ) -> Mapping[str, MemberAssignment]:
        """The assignment of each member by its id. A member that is left out gets nothing."""

    def on_assignment(self, assignment: MemberAssignment) -> None:
        """What this member has got, in each generation."""


class PartitionAssignor:
    """Base of assignors that need only partition counts, and no bytes of their own: override
    `share`."""

    name = ""

    def subscription(self, topics: Sequence[str]) -> MemberSubscription:
        return MemberSubscription(tuple(topics))

    def assign(
        self, cluster: ClusterMetadata, subscriptions: Mapping[str, MemberSubscription]
    ) -> dict[str, MemberAssignment]:
        counts = partition_counts(cluster, subscriptions.values())
        topics = {member: one.topics for member, one in subscriptions.items()}
        return {member: MemberAssignment(got) for member, got in self.share(counts, topics).items()}

    def share(self, counts: Mapping[str, int], topics: Mapping[str, Sequence[str]]) -> Shares:
        """The partitions of each member.

        counts   topic → how many partitions it has, of the topics that exist
        topics   member id → the topics that it wants
        """
        raise NotImplementedError

    def on_assignment(self, assignment: MemberAssignment) -> None:
        """Nothing to remember."""


class RangeAssignor(PartitionAssignor):
    """Each topic by itself: its partitions in runs of equal length, one for each member that wants
    the topic, the first members getting one more where it does not divide."""

    name = "range"

    def share(self, counts: Mapping[str, int], topics: Mapping[str, Sequence[str]]) -> Shares:
        shares: Shares = {member: [] for member in topics}
        wanting: dict[str, list[str]] = {}
        for member, wanted in topics.items():
            for topic in wanted:
                wanting.setdefault(topic, []).append(member)
        for topic, members in wanting.items():
            count = counts.get(topic, 0)
            each, extra = divmod(count, len(members))
            start = 0
            for place, member in enumerate(java_sorted(members)):
                end = start + each + (place < extra)
                shares[member] += [TopicPartition(topic, number) for number in range(start, end)]
                start = end
        return shares


class RoundRobinAssignor(PartitionAssignor):
    """All partitions, by topic and number, dealt in turn to all members; one that does not want the
    topic is passed over."""

    name = "roundrobin"

    def share(self, counts: Mapping[str, int], topics: Mapping[str, Sequence[str]]) -> Shares:
        shares: Shares = {member: [] for member in topics}
        wanted_by = {member: frozenset(wanted) for member, wanted in topics.items()}
        turns = cycle(java_sorted(topics))
        for topic in java_sorted(frozenset().union(*wanted_by.values())):
            for number in range(counts.get(topic, 0)):
                member = next(turn for turn in turns if topic in wanted_by[turn])
                shares[member].append(TopicPartition(topic, number))
        return shares


def partition_counts(
    cluster: ClusterMetadata, subscriptions: Iterable[MemberSubscription]
) -> dict[str, int]:
    """topic → partitions, of the topics subscribed to that exist."""
    wanted = {topic for one in subscriptions for topic in one.topics}
    return {
        topic: len(cluster.topics[topic].partitions)
        for topic in sorted(wanted)
        if topic in cluster.topics and cluster.topics[topic].partitions
    }


def java_sorted(texts: Iterable[str]) -> list[str]:
    """In the order of Java's String.compareTo: by UTF-16 code units."""
    return sorted(texts, key=lambda text: text.encode("utf-16-be", "surrogatepass"))


def to_subscription(found: Subscription) -> MemberSubscription:
    """What the wire brought of a member."""
    return MemberSubscription(tuple(found.topics), _as_bytes(found.user_data))


def to_assignment(found: Assignment) -> MemberAssignment:
    partitions = [TopicPartition(one.topic, number) for one in found.topics
                  for number in one.partitions]  # fmt: skip
    return MemberAssignment(partitions, _as_bytes(found.user_data))


def _as_bytes(data: Buffer | None) -> bytes | None:
    return None if data is None else bytes(data)
