"""The state of a topic, and kafka-topics' text for it. Source: kafka.admin.TopicCommand 0.8.2.2."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class PartitionDescription:
    """One partition according to ZooKeeper or a broker.

    leader is None while the controller has not initialised the partition, and -1 (NO_LEADER) if
    every replica that could lead is down; isr is empty in the first case. lists_all is False if
    replicas and isr may lack dead brokers, as in the metadata of brokers before 0.10.1.
    """

    partition: int
    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    lists_all: bool = True

    @property
    def under_replicated(self) -> bool:
        return len(self.isr) < len(self.replicas) or not self.lists_all

    def as_dict(self) -> dict[str, Any]:
        """The description for JSON."""
        fields = asdict(self)
        del fields["lists_all"]
        return fields


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """One topic: partitions ascending, overrides in the order of their znode."""

    name: str
    partitions: tuple[PartitionDescription, ...]
    config: Mapping[str, str]
    marked_for_deletion: bool = False

    @property
    def replication_factor(self) -> int:
        """The replication factor of the first partition, which all partitions share; 0 for a topic
        without partitions."""
        return len(self.partitions[0].replicas) if self.partitions else 0

    def as_dict(self) -> dict[str, Any]:
        """The description for JSON."""
        partitions = [partition.as_dict() for partition in self.partitions]
        return asdict(self) | {"partitions": partitions, "config": dict(self.config)}


def select(
    topics: Iterable[TopicDescription],
    *,
    under_replicated: bool = False,
    unavailable: bool = False,
    with_overrides: bool = False,
    live_brokers: Collection[int] = (),
) -> list[TopicDescription]:
    """The topics and partitions that pass the three filters of `kafka-topics --describe`.

    under_replicated   partitions with fewer replicas in sync than assigned
    unavailable        partitions without a leader among `live_brokers`; with both filters the
                       partitions of either
    with_overrides     topics that have overrides, with all their partitions

    A topic without such a partition is left out. Source: TopicCommand.describeTopic 0.8.2.2.
    """

    def is_selected(partition: PartitionDescription) -> bool:
        return (under_replicated and partition.under_replicated) or (
            unavailable and partition.leader not in live_brokers
        )

    chosen = [topic for topic in topics if topic.config or not with_overrides]
    if not (under_replicated or unavailable):
        return chosen
    filtered = (replace(t, partitions=tuple(filter(is_selected, t.partitions))) for t in chosen)
    return [topic for topic in filtered if topic.partitions]


def describe_lines(
    topics: Iterable[TopicDescription],
    *,
    under_replicated: bool = False,
    unavailable: bool = False,
    with_overrides: bool = False,
    live_brokers: Collection[int] = (),
) -> Iterator[str]:
    """The lines of `kafka-topics --describe` for the result of `select`: no header lines with a
    filter of partitions, and only header lines with `with_overrides`.

    Overrides are in the order of their znode. For a topic created by the JVM's tools these print
    the same order, since both come from the same hash table.
    """
    for topic in select(
        topics,
        under_replicated=under_replicated,
        unavailable=unavailable,
        with_overrides=with_overrides,
        live_brokers=live_brokers,
    ):
        if not (under_replicated or unavailable):
            yield _header(topic)
        if not with_overrides:
            for partition in topic.partitions:
                yield _line(topic.name, partition)


def _header(topic: TopicDescription) -> str:
    config = ",".join(f"{key}={value}" for key, value in topic.config.items())
    return (
        f"Topic:{topic.name}\tPartitionCount:{len(topic.partitions)}\t"
        f"ReplicationFactor:{topic.replication_factor}\tConfigs:{config}"
    )


def _line(topic: str, partition: PartitionDescription) -> str:
    leader = "none" if partition.leader is None else partition.leader
    return (
        f"\tTopic: {topic}\tPartition: {partition.partition}\tLeader: {leader}"
        f"\tReplicas: {','.join(map(str, partition.replicas))}"
        f"\tIsr: {','.join(map(str, partition.isr))}"
    )
