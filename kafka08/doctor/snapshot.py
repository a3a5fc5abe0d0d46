"""Snapshot: the state of a cluster from ZooKeeper, brokers, groups and local files. Plain data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from typing import Final

from kafka08.groups import (
    CoordinatedFacts,
    Finding,
    GroupFacts,
    explain,
    explain_coordinated,
)
from kafka08.observe.commit_times import KafkaCommit
from kafka08.observe.place import ClusterPlace
from kafka08.observe.snapshot import ClusterView, PartitionState
from kafka08.observe.transactions import WaitingPartition
from kafka08.structs import TopicPartition
from kafka08.zk.nodes import BrokerRegistration

HERE: Final = ClusterPlace("localhost:2181")


@dataclass(frozen=True, slots=True)
class BrokerFacts:
    """A broker in /brokers/ids; without ZooKeeper one that brokers tell clients of.

    registration   None if its text cannot be read: then `fault` says why
    created_ms     creation time of the znode, by ZooKeeper's clock; 0: unknown
    unreachable    why it did not respond to a Metadata request at its address; None: it did
    seconds        how long it took to respond
    known_brokers  broker ids in its Metadata response
    leaders        partition → leader in its Metadata response
    protocol       its inter.broker.protocol.version, as brokers from 0.11 on describe it; "": of
                   0.10; None: unknown
    """

    broker_id: int
    registration: BrokerRegistration | None
    fault: str = ""
    created_ms: int = 0
    unreachable: str | None = None
    seconds: float = 0.0
    known_brokers: frozenset[int] = frozenset()
    leaders: Mapping[TopicPartition, int] = field(default_factory=dict)
    protocol: str | None = None


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """fault         why the assignment cannot be read; then there are no partitions
    config        overrides; None: unknown, or they cannot be read, for the reason `config_fault`
    created_ms    creation time of the topic's znode; 0: unknown
    """

    partitions: Mapping[int, PartitionState]
    config: Mapping[str, str] | None = field(default_factory=dict)
    config_fault: str = ""
    fault: str = ""
    created_ms: int = 0


@dataclass(frozen=True, slots=True)
class Request:
    """A pending request to the controller in ZooKeeper.

    since_ms   when it was written
    targets    partition → its new replicas, for a reassignment
    fault      why it cannot be read
    """

    since_ms: int
    targets: Mapping[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    fault: str = ""


@dataclass(frozen=True, slots=True)
class LogOnDisk:
    """A partition's directory.

    size           bytes of all segments; `dirty`: bytes that the cleaner has not passed
    sealed         number of segments before the active one
    """

    size: int
    dirty: int
    sealed: int


@dataclass(frozen=True, slots=True)
class LogDirectoryFacts:
    """A local log directory.

    fault       why it cannot be read
    device      number of its file system
    total, free bytes of that file system
    logs        partition → its directory
    was_clean   it has a clean-shutdown marker
    in_use      a running broker holds its lock
    """

    path: str
    fault: str = ""
    device: int = 0
    total: int = 1
    free: int = 1
    logs: Mapping[TopicPartition, LogOnDisk] = field(default_factory=dict)
    was_clean: bool = True
    in_use: bool = True


@dataclass(frozen=True, slots=True)
class FileFacts:
    """A properties file.

    kind             broker, consumer or producer
    values           key → text as written
    fault            why it is not a valid configuration
    unknown          keys that do not exist
    without_effect   keys without effect in kafka08
    """

    path: str
    kind: str
    values: Mapping[str, str] = field(default_factory=dict)
    fault: str = ""
    unknown: tuple[str, ...] = ()
    without_effect: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The whole state, read within a few seconds: parts may disagree if it changes meanwhile.

    view               the cluster and its groups, as all tools see them
    now_ms             local wall time before it was read
    clock_read_ms      local wall time after topics, brokers and controller were read; None: now_ms
    place              where the cluster is; without ZooKeeper what only ZooKeeper has is empty
    zookeeper_seconds  how long a single read took
    controller_epoch   None before the first controller
    controller_clocks  time of its election, in ms: by its own clock, and by ZooKeeper's; None:
                       unknown
    deletions          topic → when its deletion was requested
    leftover_configs   topics with a configuration and nothing else
    isr_notifications  children of /isr_change_notification, which controllers of 0.9 remove
    elsewhere          clusters of the same ZooKeeper, if no broker is registered in this one
    groups             groups in ZooKeeper, by name; `coordinated`: those that brokers coordinate;
                       `groups_left_out`: not examined, since there were too many
    commits            (group, partition) → its newest commit to Kafka, where known
    waiting            partitions in which readers of committed messages wait for a transaction
    group_findings     the findings of `explain` for each group of either kind; `known_findings`:
                       the same, if they have been worked out
    """

    view: ClusterView
    now_ms: int
    clock_read_ms: int | None = None
    place: ClusterPlace = HERE
    brokers: Mapping[int, BrokerFacts] = field(default_factory=dict)
    controller_epoch: int | None = None
    controller_clocks: tuple[int, int] | None = None
    topics: Mapping[str, TopicFacts] = field(default_factory=dict)
    reassignment: Request | None = None
    election: Request | None = None
    deletions: Mapping[str, int] = field(default_factory=dict)
    leftover_configs: tuple[str, ...] = ()
    config_changes: int = 0
    isr_notifications: int = 0
    zookeeper_seconds: float = 0.0
    elsewhere: tuple[str, ...] = ()
    groups: Mapping[str, GroupFacts] = field(default_factory=dict)
    coordinated: Mapping[str, CoordinatedFacts] = field(default_factory=dict)
    commits: Mapping[tuple[str, TopicPartition], KafkaCommit] = field(default_factory=dict)
    groups_left_out: int = 0
    waiting: tuple[WaitingPartition, ...] = ()
    log_directories: tuple[LogDirectoryFacts, ...] = ()
    files: tuple[FileFacts, ...] = ()
    group_findings: Mapping[str, Sequence[Finding]] = field(init=False)
    known_findings: InitVar[Mapping[str, Sequence[Finding]] | None] = None

    def __post_init__(self, known_findings: Mapping[str, Sequence[Finding]] | None) -> None:
        if known_findings is None:
            known_findings = group_findings_of(self.groups, self.coordinated)
        object.__setattr__(self, "group_findings", known_findings)

    def partitions(self) -> Iterator[tuple[TopicPartition, PartitionState]]:
        """The partitions of topics that are not being deleted, in order."""
        for topic, facts in self.topics.items():
            if topic not in self.deletions:
                for number, partition in facts.partitions.items():
                    yield TopicPartition(topic, number), partition

    @property
    def live(self) -> frozenset[int]:
        """Ids of the brokers with a readable registration."""
        return frozenset(broker.broker_id for broker, _ in self.registered())

    def registered(self) -> Iterator[tuple[BrokerFacts, BrokerRegistration]]:
        """The brokers with a readable registration."""
        for broker in self.brokers.values():
            if broker.registration is not None:
                yield broker, broker.registration


def group_findings_of(
    groups: Mapping[str, GroupFacts], coordinated: Mapping[str, CoordinatedFacts]
) -> dict[str, list[Finding]]:
    """The findings of `explain` for each group of either kind. Pure."""
    findings = {name: explain(facts) for name, facts in groups.items()}
    for name, facts in coordinated.items():
        findings[name] = [*findings.get(name, []), *explain_coordinated(facts)]
    return findings
