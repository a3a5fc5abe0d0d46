"""What ZooKeeper and the brokers say about one group at about one time. Plain data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from kafka08.groups.members import Member
from kafka08.structs import TopicPartition
from kafka08.zk import paths


@dataclass(frozen=True, slots=True)
class GroupSummary:
    """One line of a list: a group's name, its live members, and the topics it has committed."""

    name: str
    members: int
    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Owner:
    """An owner znode: the thread it names and the session it lives with (0: persistent)."""

    thread_id: str
    session: int


@dataclass(frozen=True, slots=True)
class PartitionOffsets:
    """How far a group got in one partition. An offset is the next one to read.

    zookeeper, kafka    the committed offset in either store, None if there is none
    log_start, log_end  the log's range, None if it is not known
    """

    topic_partition: TopicPartition
    zookeeper: int | None
    kafka: int | None
    log_start: int | None
    log_end: int | None

    @property
    def newest(self) -> int | None:
        """The larger of both stores: where a member that reads both goes on."""
        return max((o for o in (self.zookeeper, self.kafka) if o is not None), default=None)

    @property
    def lag(self) -> int | None:
        """Messages from the newest offset to the log's end; None if either is not known. Below 0:
        beyond the end."""
        if self.newest is None or self.log_end is None:
            return None
        return self.log_end - self.newest


@dataclass(frozen=True, slots=True)
class PartitionFacts(PartitionOffsets):
    """One partition that the group reads, owns or has an offset of.

    exists   whether the topic has such a partition
    leader   broker id; None if there is none that is alive
    """

    exists: bool
    leader: int | None
    owner: Owner | None


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """A group. `members` and `partitions` are sorted; `topics` are all that exist, with their
    partitions; `unanswered` says what could not be asked, and why; `strays` are znodes beside those
    of owners that name no partition."""

    group: str
    brokers: tuple[int, ...]
    topics: Mapping[str, tuple[int, ...]]
    members: tuple[Member, ...]
    partitions: tuple[PartitionFacts, ...]
    unanswered: tuple[str, ...] = ()
    strays: tuple[str, ...] = ()
    in_zookeeper: bool = field(default=True)

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
