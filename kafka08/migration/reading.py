"""Reads what a migration needs to know about groups from ZooKeeper and the brokers.

Reads are made for many groups at once: each kind of read goes to ZooKeeper as one pipeline, to each
leader as one request, to each coordinator as one pipeline with a request per group.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from kafka08.admin.connections import Connections
from kafka08.admin.group_facts import GroupFacts, overwrite
from kafka08.errors import KafkaError, ZooKeeperError
from kafka08.migration.facts import seen_again, with_faults
from kafka08.structs import TopicPartition
from kafka08.zk import nodes, paths
from kafka08.zk.errors import unless_gone
from kafka08.zk.operations import Get


def with_movement(
    groups: Sequence[GroupFacts], connections: Connections, pause_s: float
) -> list[GroupFacts]:
    """The same, `seen_again` a pause after the first look."""
    unowned = {g.group: [p.topic_partition for p in g.unowned] for g in groups}
    doubtful = {g.group: [p.topic_partition for p in g.doubtful] for g in groups if g.doubtful}
    if pause_s and (doubtful or any(unowned.values())):
        connections.runtime.sleep(pause_s)
    looked = {group: [*tps, *doubtful.get(group, ())] for group, tps in unowned.items()}
    in_zookeeper = zookeeper_offsets_of(looked, connections)
    in_kafka = connections.coordinators.fetch(doubtful)
    return [
        seen_again(
            with_faults(g, in_zookeeper[g.group].faults.values()),
            {tp: offset for tp, (offset, _) in in_zookeeper[g.group].offsets.items()},
            {} if isinstance(now := in_kafka.get(g.group, {}), KafkaError) else now,
        )
        for g in groups
    ]


class InZooKeeper(NamedTuple):
    """The offsets of one group in ZooKeeper.

    offsets   partition → (offset, version of its znode), of the partitions that have one
    faults    partition → why its znode cannot be read, and what to do
    """

    offsets: dict[TopicPartition, tuple[int, int]]
    faults: dict[TopicPartition, str]

    def checked(self) -> dict[TopicPartition, tuple[int, int]]:
        """`offsets`; ZooKeeperError if one cannot be read."""
        if self.faults:
            raise ZooKeeperError("; ".join(self.faults.values()))
        return self.offsets


def zookeeper_offsets(
    group: str, partitions: Sequence[TopicPartition], connections: Connections
) -> dict[TopicPartition, tuple[int, int]]:
    """partition → (offset, version of its znode), of those that are there. Raises ZooKeeperError if
    one cannot be read."""
    return zookeeper_offsets_of({group: partitions}, connections)[group].checked()


def zookeeper_offsets_of(
    wanted: Mapping[str, Collection[TopicPartition]], connections: Connections
) -> dict[str, InZooKeeper]:
    """The same of many groups. A znode that cannot be read concerns its own group alone."""
    listed = [(group, tp) for group, partitions in wanted.items() for tp in partitions]
    read = connections.zk.pipeline([Get(paths.offset(group, *tp)) for group, tp in listed])
    offsets: dict[str, dict[TopicPartition, tuple[int, int]]] = {group: {} for group in wanted}
    faults: dict[str, dict[TopicPartition, str]] = {group: {} for group in wanted}
    for (group, tp), node in zip(listed, read, strict=True):
        if (there := unless_gone(node, None)) is None:
            continue
        try:
            offsets[group][tp] = (nodes.decode_offset(there.data), there.version)
        except ZooKeeperError as error:
            path = paths.offset(group, *tp)
            faults[group][tp] = f"{path}: {error}; {overwrite(group, tp)}"
    return {group: InZooKeeper(offsets[group], faults[group]) for group in wanted}
