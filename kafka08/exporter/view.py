"""ClusterView: partitions and groups of a cluster at about one time. Plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kafka08.structs import Broker, TopicPartition


class Committed(NamedTuple):
    """version   rises with each commit, also of the same offset; -1 where the store has none"""

    offset: int
    version: int = -1


@dataclass(frozen=True, slots=True)
class PartitionView:
    """leader       broker id; -1 without one
    start, end   of its log; None: not known
    """

    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    start: int | None = None
    end: int | None = None

    def first_from(self, offset: int) -> int:
        """`offset`, or the start of the log if that is larger: the messages between are gone."""
        return offset if self.start is None else max(offset, self.start)


@dataclass(frozen=True, slots=True)
class GroupView:
    """members            how many there are, of both kinds
    zookeeper, kafka   what is committed in either store
    """

    members: int
    zookeeper: Mapping[TopicPartition, Committed] = field(default_factory=dict)
    kafka: Mapping[TopicPartition, Committed] = field(default_factory=dict)

    def newest(self) -> dict[TopicPartition, Committed]:
        """Of each partition the larger offset: where a member that reads both stores goes on."""
        found = dict(self.zookeeper)
        for tp, committed in self.kafka.items():
            if tp not in found or committed.offset > found[tp].offset:
                found[tp] = committed
        return found


@dataclass(frozen=True, slots=True)
class ClusterView:
    """now_ms       when it was read
    seconds      how long that took
    unanswered   what could not be asked, and why
    times        (partition, offset) → when the first message from there on was written, in ms, by
                 its timestamp; of offsets that groups have yet to read, where it is known
    negotiates   whether all registered brokers tell their API versions: those of 0.9 and later
    """

    now_ms: int
    brokers: Mapping[int, Broker] = field(default_factory=dict)
    controller: int | None = None
    partitions: Mapping[TopicPartition, PartitionView] = field(default_factory=dict)
    groups: Mapping[str, GroupView] = field(default_factory=dict)
    seconds: float = 0.0
    unanswered: tuple[str, ...] = ()
    times: Mapping[tuple[TopicPartition, int], int] = field(default_factory=dict)
    negotiates: bool = False
