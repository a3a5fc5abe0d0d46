"""The state of one group in ZooKeeper and on the brokers, read at about one time. Plain data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from kafka08.deprecation import renamed_attribute
from kafka08.groups.members import Member
from kafka08.structs import TopicPartition
from kafka08.zk import paths


@dataclass(frozen=True, slots=True)
class GroupSummary:
    """One line of a list: a group, its live members, and the topics with committed offsets."""

    name: str
    members: int
    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Owner:
    """An owner znode: its text, a thread id, and its session (0: persistent)."""

    thread_id: str
    session: int


@dataclass(frozen=True, slots=True)
class PartitionOffsets:
    """How far a group has read one partition. An offset is the next one to read.

    zookeeper, kafka       the committed offset in either store, None if there is none
    log_start, log_end     the log's range; None if it is unknown
    coordinator_responded  False: it did not, so Kafka may have an offset
    zookeeper_fault        why the offset's znode cannot be read, with its path; None if it can be
    """

    topic_partition: TopicPartition
    zookeeper: int | None
    kafka: int | None
    log_start: int | None
    log_end: int | None
    coordinator_responded: bool = field(default=True, kw_only=True)
    zookeeper_fault: str | None = field(default=None, kw_only=True)

    kafka_answered = renamed_attribute("kafka_answered", "coordinator_responded")

    @property
    def newest(self) -> int | None:
        """The larger of the two offsets: a member that reads both stores continues there. None if
        neither store has an offset, or if the one in ZooKeeper cannot be read."""
        if self.zookeeper_fault is not None:
            return None
        return max((o for o in (self.zookeeper, self.kafka) if o is not None), default=None)

    @property
    def never_committed(self) -> bool:
        """Neither store has an offset, so auto.offset.reset decides where a member starts."""
        return self.newest is None and self.coordinator_responded and self.zookeeper_fault is None

    @property
    def lag(self) -> int | None:
        """Messages from the newest offset to the log's end. Without a committed offset: from the
        log's start, which is a lower bound (`is_lag_exact`). None if the offset or the log's range
        is unknown. Negative if the offset lies beyond the log's end."""
        start = self.log_start if self.never_committed else self.newest
        return None if start is None or self.log_end is None else self.log_end - start

    @property
    def is_lag_exact(self) -> bool:
        """False where `lag` is a lower bound, because unread older messages may be deleted. A log
        that never had a message (its end is 0) has a lag of exactly 0."""
        return not self.never_committed or self.log_end == 0

    @property
    def lag_text(self) -> str | None:
        """`24`, or `at least 24`; None if the lag is unknown."""
        if self.lag is None:
            return None
        return f"{self.lag}" if self.is_lag_exact else f"at least {self.lag}"


@dataclass(frozen=True, slots=True)
class PartitionFacts(PartitionOffsets):
    """One partition of a topic that the group reads, owns or has an offset of; or a deleted
    partition that still has an owner or an offset.

    exists   whether the topic has such a partition
    leader   broker id; None without a live leader
    """

    exists: bool
    leader: int | None
    owner: Owner | None


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """A group. `members` and `partitions` are sorted.

    topics           every topic of the cluster with its partitions
    failed_requests  what is unknown because a request failed, each with its reason
    strays           znodes among the owners or offsets whose names are not partition numbers
    """

    group: str
    brokers: tuple[int, ...]
    topics: Mapping[str, tuple[int, ...]] = field(repr=False)
    members: tuple[Member, ...]
    partitions: tuple[PartitionFacts, ...]
    failed_requests: tuple[str, ...] = ()
    strays: tuple[str, ...] = ()
    in_zookeeper: bool = field(default=True)

    unanswered = renamed_attribute("unanswered", "failed_requests")

    @property
    def exists(self) -> bool:
        """Whether either store knows the group."""
        return self.in_zookeeper or bool(self.partitions)

    def subscriptions(self) -> Iterator[tuple[Member, str, int]]:
        """(member, topic, streams) for every topic that a member reads."""
        for member in self.members:
            if member.subscription is not None:
                for topic, streams in member.subscription.topics(self.topics).items():
                    yield member, topic, streams

    def owner_path(self, partition: TopicPartition) -> str:
        return paths.owner(self.group, *partition)


def partitions_of(
    assigned: Mapping[str, Iterable[int]],
    topics: Iterable[str],
    known: Iterable[TopicPartition],
) -> list[TopicPartition]:
    """All partitions that concern a group, sorted: the `known` ones (some may be deleted), and
    every partition of their topics and of `topics`, committed or not.

    assigned   topic → partition numbers, for every topic of the cluster
    topics     topics that the group reads or has znodes of
    known      partitions with an owner or an offset
    """
    found = set(known)
    for topic in {*topics, *(tp.topic for tp in found)}:
        found.update(TopicPartition(topic, number) for number in assigned.get(topic, ()))
    return sorted(found)
