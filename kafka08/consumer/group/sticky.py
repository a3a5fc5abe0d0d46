"""The sticky assignor: balances the assignment, and moves few partitions to do so.

Each member sends the leader its previous assignment as user data, as Java's `sticky` does: an array
of topics with their partitions, to which later versions append its generation. So groups may mix
this with Java's StickyAssignor, whichever leads. Source:
org.apache.kafka.clients.consumer.StickyAssignor 0.11.0.3 (the rules; the moves are our own).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from kafka08.client.metadata import ClusterMetadata
from kafka08.consumer.group.assignors import (
    MemberAssignment,
    MemberSubscription,
    Shares,
    java_sorted,
    partition_counts,
)
from kafka08.errors import ProtocolError
from kafka08.protocol.codec import decode_body, encode_body
from kafka08.protocol.consumer_protocol import AssignedTopic, assigned_topics
from kafka08.protocol.types import Int32
from kafka08.structs import TopicPartition

NO_GENERATION: Final = -1


@dataclass(slots=True)
class Previous:
    """User data of version 0: the member's previous assignment."""

    topics: list[AssignedTopic]


@dataclass(slots=True)
class Generation:
    """The field that version 1 appends: the generation of that assignment."""

    generation: Int32


class StickyAssignor:
    """Balanced first, then sticky: members keep their partitions as far as the balance allows.

    Balanced: no partition can be moved to a member that has at least two fewer, not even through
    a chain of moves. The object remembers its member's assignment, so each consumer needs an
    object of its own.
    """

    name = "sticky"

    def __init__(self) -> None:
        self._had: list[TopicPartition] = []

    def subscription(self, topics: Sequence[str]) -> MemberSubscription:
        return MemberSubscription(tuple(topics), encode_previous(self._had))

    def assign(
        self, cluster: ClusterMetadata, subscriptions: Mapping[str, MemberSubscription]
    ) -> dict[str, MemberAssignment]:
        counts = partition_counts(cluster, subscriptions.values())
        topics = {member: one.topics for member, one in subscriptions.items()}
        had = {member: decode_previous(one.user_data) for member, one in subscriptions.items()}
        shares = share_stickily(counts, topics, had)
        return {member: MemberAssignment(got) for member, got in shares.items()}

    def on_assignment(self, assignment: MemberAssignment) -> None:
        self._had = list(assignment.partitions)


class CooperativeStickyAssignor:
    """Sticky, for members that keep their partitions during a rebalance. A partition that moves is
    given to nobody while its owner has it; the owner gives it up and joins again, and the next
    generation has it. Source: org.apache.kafka.clients.consumer.CooperativeStickyAssignor 3.9.1.
    """

    name = "cooperative-sticky"
    is_cooperative = True

    def subscription(self, topics: Sequence[str]) -> MemberSubscription:
        return MemberSubscription(tuple(topics))

    def assign(
        self, cluster: ClusterMetadata, subscriptions: Mapping[str, MemberSubscription]
    ) -> dict[str, MemberAssignment]:
        counts = partition_counts(cluster, subscriptions.values())
        topics = {member: one.topics for member, one in subscriptions.items()}
        since = {member: generation_of(one) for member, one in subscriptions.items()}
        newest = max(since.values(), default=NO_GENERATION)
        claims: dict[TopicPartition, list[str]] = {}
        for member, one in subscriptions.items():
            for tp in one.owned:
                claims.setdefault(tp, []).append(member)
        had: dict[str, list[TopicPartition]] = {member: [] for member in subscriptions}
        for tp, members in claims.items():
            believed = [member for member in members if since[member] == newest]
            if len(believed) == 1:  # of two one is wrong, and nobody knows which
                had[believed[0]].append(tp)
        shares = share_stickily(
            counts, topics, {member: (newest, owned) for member, owned in had.items()}
        )
        return {
            member: MemberAssignment([tp for tp in share if not set(claims.get(tp, ())) - {member}])
            for member, share in shares.items()
        }


def generation_of(subscription: MemberSubscription) -> int:
    """Since when it owns its partitions. Java before 3.2 writes it into its user data."""
    data = subscription.user_data
    if subscription.generation == NO_GENERATION and data is not None and len(data) == 4:
        return int.from_bytes(data, "big", signed=True)
    return subscription.generation


def encode_previous(partitions: Iterable[TopicPartition]) -> bytes:
    return encode_body(Previous(assigned_topics(partitions)))


def decode_previous(data: bytes | None) -> tuple[int, list[TopicPartition]]:
    """(generation, previous assignment); an empty one for a new member, and for bytes of another
    form, such as the user data of the assignor that the group used before."""
    if not data:
        return NO_GENERATION, []
    try:
        previous, end = decode_body(Previous, data)
        generation = NO_GENERATION
        if len(data) > end:
            generation = decode_body(Generation, data, end)[0].generation
    except ProtocolError:
        return NO_GENERATION, []
    had = [TopicPartition(one.topic, n) for one in previous.topics for n in one.partitions]
    return generation, had


def share_stickily(
    counts: Mapping[str, int],
    topics: Mapping[str, Sequence[str]],
    had: Mapping[str, tuple[int, Sequence[TopicPartition]]],
) -> Shares:
    """The partitions of each member.

    counts   topic → how many partitions it has, of the topics that exist
    topics   member id → the topics that it wants
    had      member id → (generation, partitions); if two members claim a partition, the later
             generation wins, or the first member id within one generation
    """
    return _Sharing(counts, topics).share(had)


class _Sharing:
    def __init__(self, counts: Mapping[str, int], topics: Mapping[str, Sequence[str]]) -> None:
        self._counts = counts
        self._members = java_sorted(topics)
        self._wanted = {member: frozenset(wanted) for member, wanted in topics.items()}
        self._wanting: dict[str, list[str]] = {topic: [] for topic in counts}
        for member in self._members:
            for topic in self._wanted[member] & counts.keys():
                self._wanting[topic].append(member)
        self._has: dict[str, dict[str, list[int]]] = {member: {} for member in self._members}
        """member → topic → numbers, the newest last."""
        self._loads = dict.fromkeys(self._members, 0)

    def share(self, had: Mapping[str, tuple[int, Sequence[TopicPartition]]]) -> Shares:
        owners = self._owners(had)
        for tp, member in owners.items():
            self._give(member, tp)
        self._deal(tp for tp in self._partitions() if tp not in owners)
        self._balance()
        return {
            member: [TopicPartition(t, n) for t in java_sorted(of) for n in sorted(of[t])]
            for member, of in self._has.items()
        }

    def _owners(
        self, had: Mapping[str, tuple[int, Sequence[TopicPartition]]]
    ) -> dict[TopicPartition, str]:
        """partition → its previous owner, if that may keep it."""
        owners: dict[TopicPartition, str] = {}
        # A stable sort: within a generation the first member id wins.
        for member in sorted(self._members, key=lambda m: -had[m][0]):
            for tp in had[member][1]:
                exists = 0 <= tp.partition < self._counts.get(tp.topic, 0)
                if exists and tp.topic in self._wanted[member]:
                    owners.setdefault(tp, member)
        return dict(sorted(owners.items()))

    def _partitions(self) -> Iterable[TopicPartition]:
        """All partitions to assign; those with the fewest subscribers first."""
        for topic in sorted(self._wanting, key=lambda topic: (len(self._wanting[topic]), topic)):
            if self._wanting[topic]:
                for number in range(self._counts[topic]):
                    yield TopicPartition(topic, number)

    def _deal(self, partitions: Iterable[TopicPartition]) -> None:
        """Assign each to the subscriber with the fewest partitions."""
        for tp in partitions:
            self._give(min(self._wanting[tp.topic], key=self._loads.__getitem__), tp)

    def _give(self, member: str, tp: TopicPartition) -> None:
        self._has[member].setdefault(tp.topic, []).append(tp.partition)
        self._loads[member] += 1

    def _balance(self) -> None:
        """Move one partition along a path from a member to one with at least two fewer, as long as
        such a path exists. Each move lowers the sum of squares of the counts, so this ends."""
        while path := self._path_down():
            for giver, taker in pairwise(path):
                self._move(giver, taker)

    def _path_down(self) -> list[str]:
        """The shortest path from the member with the most partitions that has one, to the reachable
        member with the fewest, which has at least two fewer; empty without a path. Each member on
        it can give a partition to the next.

        Members that a failed search has reached are skipped as starts: they reach no others, and
        have no more partitions than the start of that search."""
        lowest = min(self._loads.values(), default=0)
        seen: set[str] = set()
        for start in sorted(self._members, key=lambda member: -self._loads[member]):
            if self._loads[start] < lowest + 2:
                break
            if start in seen:
                continue
            came_from = self._reached_from(start, lowest)
            least = min(came_from, key=self._loads.__getitem__)
            if self._loads[least] <= self._loads[start] - 2:
                path = [least]
                while path[-1] != start:
                    path.append(came_from[path[-1]])
                return path[::-1]
            seen.update(came_from)
        return []

    def _reached_from(self, start: str, lowest: int) -> dict[str, str]:
        """member → its predecessor on the shortest path from `start`, which can give it a
        partition. The search ends at a member with at most `lowest` partitions."""
        came_from = {start: start}
        topics: set[str] = set()
        queue = deque([start])
        while queue:
            giver = queue.popleft()
            for topic in sorted(self._has[giver].keys() - topics):
                for taker in self._wanting[topic]:
                    if taker not in came_from:
                        came_from[taker] = giver
                        if self._loads[taker] <= lowest:
                            return came_from
                        queue.append(taker)
            topics |= self._has[giver].keys()
        return came_from

    def _move(self, giver: str, taker: str) -> None:
        """Move one partition, of the topic of which the giver has the most."""
        of = self._has[giver]
        topic = max(sorted(self._wanted[taker] & of.keys()), key=lambda topic: len(of[topic]))
        number = of[topic].pop()
        if not of[topic]:
            del of[topic]
        self._loads[giver] -= 1
        self._give(taker, TopicPartition(topic, number))
