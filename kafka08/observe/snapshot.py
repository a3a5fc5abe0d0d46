"""ClusterView, the snapshot: brokers, partitions and groups of a cluster at about one time. Plain
data.

What could not be read is in it as unknown: None, or a reason in `failed_requests`; never 0, and
never left out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, NamedTuple

from kafka08.errors import KafkaError
from kafka08.observe.coordinated import CoordinatedGroup
from kafka08.observe.group_lags import GroupLags, Uncommitted
from kafka08.observe.lag import UNKNOWN, Lag, lag_between
from kafka08.observe.members import Member, topics_read
from kafka08.structs import Broker, LeaderAndIsr, TopicPartition

ZOOKEEPER: Final = "zookeeper"
COORDINATOR: Final = "coordinator"
"""The kinds of groups: where members register."""


class Committed(NamedTuple):
    """version   increases with each commit, even of the same offset; -1 if the store has none"""

    offset: int
    version: int = -1


class Owner(NamedTuple):
    """An owner znode: its text, a thread id, and its session (0: persistent)."""

    thread_id: str
    session: int


@dataclass(frozen=True, slots=True)
class PartitionState:
    """leader       broker id, as brokers tell clients: -1 without one that is registered
    start, end   offsets of its log; None: unknown
    unreadable   why they are unknown
    state        what its znode says; None: there is none, it was not read, or it cannot be, for the
                 reason `fault`
    stable       last stable offset: readers of committed messages wait there for the end of an open
                 transaction, unless it is `end`; None: unknown, or the cluster had no transaction
    """

    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    start: int | None = None
    end: int | None = None
    unreadable: str | None = None
    state: LeaderAndIsr | None = None
    fault: str = ""
    stable: int | None = None

    def first_from(self, offset: int) -> int:
        """`offset`, or the log start if that is larger: the messages between were deleted."""
        return offset if self.start is None else max(offset, self.start)


@dataclass(frozen=True, slots=True)
class GroupState:
    """A group in ZooKeeper, at a coordinator, or both: members, and committed offsets.

    members            number of members, of both kinds; None: unknown
    zookeeper, kafka   the offsets committed in each store; those in Kafka by the coordinator's
                       last response
    in_zookeeper       it has a znode
    registered         its members in ZooKeeper, by id
    owners, strays     owner znodes; znodes among owners and offsets that name no partition
    unreadable         partition → why its offset's znode cannot be read, with its path
    topics             those that it has znodes of
    coordinated        the group as its coordinator knows it; None: unknown to it, or not asked
    unknown_group      why its coordinator did not describe it; None: it did, or was not asked
    unknown_offsets    why its coordinator did not respond with offsets; None: it did
    """

    members: int | None = 0
    zookeeper: Mapping[TopicPartition, Committed] = field(default_factory=dict)
    kafka: Mapping[TopicPartition, Committed] = field(default_factory=dict)
    in_zookeeper: bool = False
    registered: tuple[Member, ...] = ()
    owners: Mapping[TopicPartition, Owner] = field(default_factory=dict)
    strays: tuple[str, ...] = ()
    unreadable: Mapping[TopicPartition, str] = field(default_factory=dict)
    topics: Collection[str] = ()
    coordinated: CoordinatedGroup | None = None
    unknown_group: KafkaError | None = None
    unknown_offsets: KafkaError | None = None

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of groups that have this name, as far as is known. The first one is meant where
        only one can be: the one with members; if both or none have some, that in ZooKeeper.

        A coordinator knows a ZooKeeper group that commits to Kafka as one that only commits. No
        list of 0.8 has a group with offsets in Kafka alone.
        """
        if self.coordinated is None:
            return (ZOOKEEPER,) if self.in_zookeeper or self.kafka else ()
        if not self.in_zookeeper:
            return (COORDINATOR,)
        if self.coordinated.is_simple:
            return (ZOOKEEPER,)
        if self.coordinated.members and not self.registered:
            return (COORDINATOR, ZOOKEEPER)
        return (ZOOKEEPER, COORDINATOR)

    def newest(self) -> Mapping[TopicPartition, Committed]:
        """The larger offset of each partition: where a member that reads both stores continues."""
        if not self.kafka or not self.zookeeper:
            return self.kafka or self.zookeeper
        found = dict(self.zookeeper)
        for tp, committed in self.kafka.items():
            if tp not in found or committed.offset > found[tp].offset:
                found[tp] = committed
        return found

    def concerned(
        self, assigned: Mapping[str, Collection[int]], also: Collection[TopicPartition] = ()
    ) -> set[TopicPartition]:
        """`partitions_of` the group: `also`, those of its topics, and of which it has an owner or
        an offset. `assigned`: topic → its partitions, of the whole cluster."""
        known = self.known_partitions() | {*also}
        return partitions_of(assigned, self.topics_concerned(assigned, known), known)

    def known_partitions(self) -> set[TopicPartition]:
        """Those of which it has an owner or an offset."""
        known = {*self.zookeeper, *self.kafka, *self.owners, *self.unreadable}
        if self.coordinated is not None:
            for member in self.coordinated.members:
                known.update(member.owns)
        return known

    def topics_concerned(
        self, assigned: Mapping[str, Collection[int]], known: Collection[TopicPartition]
    ) -> set[str]:
        """The topics that it reads or has znodes of, and those of the `known` partitions."""
        topics = {*self.topics, *(tp.topic for tp in known)}
        if self.registered:
            topics |= topics_read(self.registered, assigned)
        if self.coordinated is not None:
            for member in self.coordinated.members:
                topics.update(member.topics)
        return topics


def partitions_of(
    assigned: Mapping[str, Collection[int]],
    topics: Collection[str],
    known: Collection[TopicPartition],
) -> set[TopicPartition]:
    """All partitions that concern a group: the `known` ones (some may be deleted), and every
    partition of their topics and of `topics`, committed or not.

    assigned   topic → partition numbers, for every topic of the cluster
    topics     topics that the group reads or has znodes of
    known      partitions with an owner or an offset
    """
    found = set(known)
    for topic in {*topics, *(tp.topic for tp in found)}:
        found.update(named(topic, tuple(assigned.get(topic, ()))))
    return found


@lru_cache(maxsize=1024)
def named(topic: str, numbers: tuple[int, ...]) -> tuple[TopicPartition, ...]:
    """The partitions of a topic, which many groups read."""
    return tuple(TopicPartition(topic, number) for number in numbers)


@dataclass(frozen=True, slots=True)
class ClusterView:
    """now_ms           time of the snapshot
    brokers          id → address, of those that are registered
    partitions       all, or those that concern the `groups` that were asked for
    seconds          how long reading it took
    failed_requests  what is unknown because a request failed, each with its reason
    unlisted         those of them because of which a group that brokers coordinate may be missing
    times            (partition, offset) → timestamp in ms of the first message from there on, for
                     the offsets of groups with lag, where it is known
    negotiates       whether all registered brokers report their API versions: from 0.9 on
    topics           topic → its partitions, of the whole cluster
    faults           path of a znode → why it cannot be read
    has_zookeeper    it was read, which alone knows the controller
    lags             group → partition → its lag, for all partitions that concern the group
    """

    now_ms: int
    brokers: Mapping[int, Broker] = field(default_factory=dict)
    controller: int | None = None
    partitions: Mapping[TopicPartition, PartitionState] = field(default_factory=dict)
    groups: Mapping[str, GroupState] = field(default_factory=dict)
    seconds: float = 0.0
    failed_requests: tuple[str, ...] = ()
    unlisted: tuple[str, ...] = ()
    times: Mapping[tuple[TopicPartition, int], int] = field(default_factory=dict)
    negotiates: bool = False
    topics: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    faults: Mapping[str, str] = field(default_factory=dict)
    has_zookeeper: bool = True
    lags: Lags = field(init=False, repr=False, compare=False)
    shared_facts: dict[bool, dict[TopicPartition, Any]] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )
    """Of `partition_facts`: the facts where a group has nothing, by whether its coordinator
    responded."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "lags", Lags(self))

    def has_partition(self, tp: TopicPartition) -> bool:
        """Whether its topic has such a partition."""
        return tp in self.lags.uncommitted(tp.topic, True).lags

    def lags_of(self, group: GroupState) -> GroupLags:
        known = group.known_partitions()
        is_known = not group.unknown_offsets
        concerned = group.topics_concerned(self.topics, known)
        shared = {topic: self.lags.uncommitted(topic, is_known) for topic in concerned}
        newest = group.newest()
        own: dict[TopicPartition, Lag] = {}
        for tp in known:
            at, partition = newest.get(tp), self.partitions.get(tp)
            if at is not None and partition is not None and tp not in group.unreadable:
                own[tp] = lag_between(at.offset, partition.start, partition.end)
            elif at is not None or tp in group.unreadable or tp not in shared[tp.topic].lags:
                own[tp] = UNKNOWN
        return GroupLags(own, shared)


class Lags(Mapping[str, GroupLags]):
    """The lags of a view's groups, each worked out when it is first asked for: an export of offsets
    needs none."""

    def __init__(self, view: ClusterView) -> None:
        self._view = view
        self._known: dict[str, GroupLags] = {}
        self._uncommitted: dict[tuple[str, bool], Uncommitted] = {}

    def __getitem__(self, name: str) -> GroupLags:
        found = self._known.get(name)
        if found is None:
            found = self._known[name] = self._view.lags_of(self._view.groups[name])
        return found

    def uncommitted(self, topic: str, is_known: bool) -> Uncommitted:
        """The lags of each group that has committed nothing in a topic. `is_known`: its coordinator
        said so."""
        found = self._uncommitted.get((topic, is_known))
        if found is None:
            partitions = self._view.partitions
            lags = {
                tp: lag_between(None, at.start, at.end)
                if is_known and (at := partitions.get(tp)) is not None
                else UNKNOWN
                for tp in named(topic, self._view.topics.get(topic, ()))
            }
            found = self._uncommitted[topic, is_known] = Uncommitted(lags)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._view.groups)

    def __len__(self) -> int:
        return len(self._view.groups)
