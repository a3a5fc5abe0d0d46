"""ClusterView: the partitions and groups of a cluster at about the same time. Plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kafka08.deprecation import renamed_attribute
from kafka08.structs import Broker, TopicPartition


class Committed(NamedTuple):
    """version   increases with each commit, even of the same offset; -1 if the store has none"""

    offset: int
    version: int = -1


@dataclass(frozen=True, slots=True)
class PartitionView:
    """leader       broker id; -1 without one
    start, end   offsets of its log; None: unknown
    """

    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    start: int | None = None
    end: int | None = None

    def first_from(self, offset: int) -> int:
        """`offset`, or the log start if that is larger: the messages between were deleted."""
        return offset if self.start is None else max(offset, self.start)


@dataclass(frozen=True, slots=True)
class GroupView:
    """members            number of members, of both kinds
    zookeeper, kafka   the offsets committed in each store; those in Kafka by the coordinator's
                       last response
    """

    members: int
    zookeeper: Mapping[TopicPartition, Committed] = field(default_factory=dict)
    kafka: Mapping[TopicPartition, Committed] = field(default_factory=dict)

    def newest(self) -> Mapping[TopicPartition, Committed]:
        """The larger offset of each partition: where a member that reads both stores continues."""
        if not self.kafka or not self.zookeeper:
            return self.kafka or self.zookeeper
        found = dict(self.zookeeper)
        for tp, committed in self.kafka.items():
            if tp not in found or committed.offset > found[tp].offset:
                found[tp] = committed
        return found


@dataclass(frozen=True, slots=True)
class ClusterView:
    """now_ms           time of the view
    seconds          how long reading it took
    failed_requests  what is unknown because a request failed, each with its reason
    times            (partition, offset) → timestamp in ms of the first message from there on, for
                     the offsets of groups with lag, where it is known
    negotiates       whether all registered brokers report their API versions: from 0.9 on
    """

    now_ms: int
    brokers: Mapping[int, Broker] = field(default_factory=dict)
    controller: int | None = None
    partitions: Mapping[TopicPartition, PartitionView] = field(default_factory=dict)
    groups: Mapping[str, GroupView] = field(default_factory=dict)
    seconds: float = 0.0
    failed_requests: tuple[str, ...] = ()
    times: Mapping[tuple[TopicPartition, int], int] = field(default_factory=dict)
    negotiates: bool = False

    unanswered = renamed_attribute("unanswered", "failed_requests")
