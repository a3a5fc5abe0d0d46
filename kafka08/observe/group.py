"""One group as a snapshot has it, partition by partition. Plain data, and how it is made. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from kafka08.observe.coordinated import CoordinatedGroup
from kafka08.observe.lag import UNKNOWN, Lag, lag_between
from kafka08.observe.members import Member
from kafka08.observe.snapshot import ZOOKEEPER, ClusterView, GroupState, Owner, PartitionState
from kafka08.structs import NO_LEADER, TopicPartition
from kafka08.zk import paths


@dataclass(frozen=True, slots=True)
class GroupSummary:
    """One line of a list: a group, its live members, and the topics with committed offsets."""

    name: str
    members: int
    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PartitionFacts:
    """How far a group has read one partition, and who reads it. An offset is the next one to read.

    zookeeper, kafka       the committed offset in either store, None if there is none
    log_start, log_end     the log's range, None if there is no such partition, or it is unknown
    exists                 whether the topic has such a partition
    leader                 broker id; None without a live leader
    owner                  its owner znode; None: there is none, or the group has a coordinator
    coordinator_responded  False: it did not, so Kafka may have an offset
    zookeeper_fault        why the offset's znode cannot be read, with its path; None if it can be
    unreadable             why the log's range is unknown
    committed_ms           when Kafka's offset was committed; None: not asked, or not known
    newest                 the larger of the two offsets: a member that reads both stores continues
                           there. None if neither store has an offset, or if the one in ZooKeeper
                           cannot be read
    """

    topic_partition: TopicPartition
    zookeeper: int | None
    kafka: int | None
    log_start: int | None
    log_end: int | None
    exists: bool = True
    leader: int | None = None
    owner: Owner | None = None
    coordinator_responded: bool = field(default=True, kw_only=True)
    zookeeper_fault: str | None = field(default=None, kw_only=True)
    unreadable: str | None = field(default=None, kw_only=True)
    committed_ms: int | None = field(default=None, kw_only=True)
    newest: int | None = field(init=False, repr=False, compare=False)
    lag_between: Lag = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Here, because each check of a group asks for them, of each partition.
        newest = None
        if self.zookeeper_fault is None:
            offsets = [o for o in (self.zookeeper, self.kafka) if o is not None]
            newest = max(offsets, default=None)
        object.__setattr__(self, "newest", newest)
        is_unknown = newest is None and not self.never_committed
        lag = UNKNOWN if is_unknown else lag_between(newest, self.log_start, self.log_end)
        object.__setattr__(self, "lag_between", lag)

    @property
    def never_committed(self) -> bool:
        """Neither store has an offset, so auto.offset.reset decides where a member starts."""
        return self.newest is None and self.coordinator_responded and self.zookeeper_fault is None

    @property
    def lag(self) -> int | None:
        """Messages from the newest offset to the log's end. Without a committed offset: from the
        log's start, which is a lower bound (`is_lag_exact`). None if the offset or the log's range
        is unknown, or the offset lies beyond the log's end."""
        return self.lag_between.messages

    @property
    def is_lag_exact(self) -> bool:
        """False where `lag` is unknown or a lower bound, because unread older messages may be
        deleted."""
        return self.lag_between.is_exact

    @property
    def lag_text(self) -> str | None:
        """`24`, or `at least 24`; None if the lag is unknown."""
        lag = self.lag_between
        return None if lag.messages is None else str(lag)

    @property
    def thread_id(self) -> str | None:
        """The thread id of its owner."""
        return None if self.owner is None else self.owner.thread_id

    @property
    def is_idle(self) -> bool:
        """Whether it has no owner that commits again, so that Kafka will forget its offset."""
        return self.owner is None and self.kafka is not None

    def seconds_left(self, now_ms: int, retention_ms: int) -> int | None:
        """Seconds until Kafka may forget an idle partition's offset, not below 0; None if it is not
        idle or the time of its commit is not known."""
        if not self.is_idle or self.committed_ms is None:
            return None
        return max(0, (self.committed_ms + retention_ms - now_ms) // 1000)

    @property
    def log_problem(self) -> str | None:
        """Why no offset can be compared with the log; None if one can."""
        if self.unreadable is None:
            return None
        return (
            f"{self.topic_partition}: the start and end of its log are unknown: "
            f"{self.unreadable}; see kafka08 topic describe"
        )

    @property
    def is_apart(self) -> bool:
        """Both stores have an offset, and not the same."""
        return None not in {self.zookeeper, self.kafka} and self.zookeeper != self.kafka

    @property
    def is_ahead_in_kafka(self) -> bool:
        """Both stores have an offset, and Kafka's is the larger one."""
        return self.zookeeper is not None and self.kafka is not None and self.kafka > self.zookeeper

    @property
    def is_behind_in_kafka(self) -> bool:
        """ZooKeeper has an offset, and Kafka a smaller one or none."""
        return self.zookeeper is not None and (self.kafka is None or self.kafka < self.zookeeper)

    @property
    def disagreement(self) -> str:
        """The offsets of both stores, as text."""
        have = ("nothing" if o is None else str(o) for o in (self.zookeeper, self.kafka))
        return "{}: ZooKeeper has {}, Kafka {}".format(self.topic_partition, *have)

    @property
    def newest_safe(self) -> int | None:
        """The largest offset of the two stores that lies in the log; None if neither does."""
        safe = [o for o in (self.zookeeper, self.kafka) if o is not None and self.holds(o)]
        return max(safe, default=None)

    def holds(self, offset: int) -> bool:
        """Whether a member that starts at `offset` starts exactly there; at log_end it waits."""
        if self.log_start is None or self.log_end is None:
            return False
        return self.log_start <= offset <= self.log_end

    def range_problem(self, offset: int, store: str) -> str | None:
        """Why `offset` cannot be used; None if it can."""
        if self.holds(offset):
            return None
        if self.log_problem is not None:
            return self.log_problem
        return (
            f"{self.topic_partition}: the offset {offset} in {store} is out of the range "
            f"{self.log_start} to {self.log_end} of the log"
        )


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


@dataclass(frozen=True, slots=True)
class CoordinatedFacts:
    """One group as the brokers describe it, read at about one time.

    partitions       sorted: all partitions of each topic that a member subscribes to or that has a
                     committed offset, and committed partitions that no longer exist. Their owners
                     are in `group`
    topics           topic → its partitions, for every topic of the cluster
    failed_requests  what is unknown because a request failed, each with its reason
    """

    group: CoordinatedGroup
    partitions: tuple[PartitionFacts, ...]
    topics: Mapping[str, Collection[int]] = field(repr=False, default_factory=dict)
    failed_requests: tuple[str, ...] = ()


def group_facts(snapshot: ClusterView, name: str) -> GroupFacts:
    """The group with members in ZooKeeper; a group without any znode of its own may have committed
    to Kafka alone."""
    group = snapshot.groups[name]
    return GroupFacts(
        name,
        tuple(snapshot.brokers),
        snapshot.topics,
        group.registered,
        partition_facts(snapshot, replace(group, coordinated=None)),
        snapshot.failed_requests,
        group.strays,
        in_zookeeper=group.in_zookeeper,
    )


def coordinated_facts(snapshot: ClusterView, name: str) -> CoordinatedFacts | None:
    """The group that has a coordinator; None if no coordinator knows it. Raises the KafkaError of
    one that did not respond."""
    group = snapshot.groups[name]
    if group.unknown_group is not None:
        raise group.unknown_group
    if group.coordinated is None:
        return None
    of_kafka = GroupState(
        kafka=group.kafka, coordinated=group.coordinated, unknown_offsets=group.unknown_offsets
    )
    return CoordinatedFacts(
        group.coordinated,
        partition_facts(snapshot, of_kafka),
        snapshot.topics,
        snapshot.failed_requests,
    )


def facts_of(snapshot: ClusterView, name: str, kind: str) -> GroupFacts | CoordinatedFacts:
    """The group of one of its kinds (`GroupState.kinds`)."""
    if kind == ZOOKEEPER:
        return group_facts(snapshot, name)
    found = coordinated_facts(snapshot, name)
    assert found is not None, f"group {name} is of the kind {kind}"
    return found


NO_STATE = PartitionState(NO_LEADER, (), ())


def partition_facts(
    snapshot: ClusterView,
    group: GroupState,
    also: Collection[TopicPartition] = (),
    *,
    of: Collection[TopicPartition] | None = None,
) -> tuple[PartitionFacts, ...]:
    """One for each partition that concerns the group, or `of` these, in order. Where it has neither
    an owner nor an offset it shares them with the other groups of the snapshot."""
    known = group.known_partitions()
    responded = group.unknown_offsets is None
    shared = snapshot.shared_facts.setdefault(responded, {})
    found = []
    for tp in sorted(group.concerned(snapshot.topics, also) if of is None else of):
        if tp in known:
            found.append(_facts_of(snapshot, group, tp))
        else:
            if tp not in shared:
                shared[tp] = _facts_of(snapshot, group, tp)
            found.append(shared[tp])
    return tuple(found)


def _facts_of(snapshot: ClusterView, group: GroupState, tp: TopicPartition) -> PartitionFacts:
    zookeeper, kafka = group.zookeeper.get(tp), group.kafka.get(tp)
    partition = snapshot.partitions.get(tp, NO_STATE)
    return PartitionFacts(
        tp,
        None if zookeeper is None else zookeeper.offset,
        None if kafka is None else kafka.offset,
        partition.start,
        partition.end,
        snapshot.has_partition(tp),
        None if partition.leader == NO_LEADER else partition.leader,
        group.owners.get(tp),
        coordinator_responded=group.unknown_offsets is None,
        zookeeper_fault=group.unreadable.get(tp),
        unreadable=partition.unreadable,
    )
