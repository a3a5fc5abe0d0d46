"""Assignors: distribute partitions over the members of a group that a broker coordinates. Pure.

The coordinator chooses one member as the leader. The leader's client computes the assignment of all
members, and the broker never parses it. Any object with the methods of `Assignor` works, your own
included; all members of the group must offer an assignor of the same name. `range` and `roundrobin`
return exactly what Java's return for the same members, so groups may mix clients. Source:
org.apache.kafka.clients.consumer.RangeAssignor, RoundRobinAssignor 0.10.2.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from typing import Protocol, TypeAlias, runtime_checkable

from kafka08.client.metadata import ClusterMetadata
from kafka08.structs import TopicPartition

Shares: TypeAlias = dict[str, list[TopicPartition]]
"""member id → its assignment."""


@dataclass(frozen=True, slots=True)
class MemberSubscription:
    """The subscription that a member sent when it joined."""

    topics: tuple[str, ...]
    user_data: bytes | None = None
    """User data: the bytes that its assignor's `subscription` returned."""
    owned: tuple[TopicPartition, ...] = ()
    """The partitions that the member keeps while it joins (cooperative), since `generation`."""
    generation: int = -1


@dataclass(frozen=True, slots=True)
class MemberAssignment:
    """The partitions of one member."""

    partitions: list[TopicPartition] = field(default_factory=list)
    user_data: bytes | None = None
    """User data: bytes for `on_assignment` of the member's assignor."""


class Assignor(Protocol):
    """Distributes partitions. A thread of the consumer calls it; `assign` runs only in the group's
    leader. `poll` raises ConsumerRebalanceFailed with what a method raises. It may also be a
    KeepsAssignment.

    With an attribute `is_cooperative = True` it gives no partition to a member while another one
    owns it. Where all assignors of a consumer are so, it keeps its partitions during a rebalance.
    """

    @property
    def name(self) -> str:
        """The same in all members of the group."""

    def subscription(self, topics: Sequence[str]) -> MemberSubscription:
        """Returns the subscription that this member sends to the leader: its topics, and user data
        of the assignor."""

    def assign(
        self, cluster: ClusterMetadata, subscriptions: Mapping[str, MemberSubscription]
    ) -> Mapping[str, MemberAssignment]:
        """member id → assignment. A member that is missing gets no partitions."""


@runtime_checkable
class KeepsAssignment(Protocol):
    """An assignor that learns what its member was assigned."""

    def on_assignment(self, assignment: MemberAssignment) -> None:
        """Called in each generation with this member's assignment, in the thread that polls."""


class PartitionAssignor:
    """Base class of assignors that need only partition counts and no user data: override
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


class RangeAssignor(PartitionAssignor):
    """Divides each topic by itself into consecutive runs of equal length, one for each member that
    subscribes to it. If the division leaves a remainder, the first members get one more each."""

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
    """Deals all partitions, sorted by topic and number, to the members in turn; skips members that
    do not subscribe to the topic."""

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
    """topic → number of partitions, for the subscribed topics that exist."""
    wanted = {topic for one in subscriptions for topic in one.topics}
    return {
        topic: len(cluster.topics[topic].partitions)
        for topic in sorted(wanted)
        if topic in cluster.topics and cluster.topics[topic].partitions
    }


def java_sorted(texts: Iterable[str]) -> list[str]:
    """Sorts in the order of Java's String.compareTo: by UTF-16 code units."""
    return sorted(texts, key=lambda text: text.encode("utf-16-be", "surrogatepass"))
