"""Reads what a migration needs to know about groups from ZooKeeper and the brokers.

Reads are made for many groups at once: each kind of read goes to ZooKeeper as one pipeline, to each
leader as one request, to each coordinator as one pipeline with a request per group.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from kafka08.client.log_offsets import log_ends, log_starts
from kafka08.errors import KafkaError
from kafka08.migration.connections import Connections
from kafka08.migration.members import read_members_of
from kafka08.migration.plan import GroupFacts, PartitionFacts
from kafka08.migration.results import present
from kafka08.structs import NO_OFFSET, TopicPartition
from kafka08.zk import nodes, paths
from kafka08.zk.operations import Children, Get


def read_facts(group: str, connections: Connections) -> GroupFacts:
    """Everything about `group` now. Partitions are those with an offset in either store.

    Kafka is asked for every partition of the cluster, since it cannot list what a group committed.
    A coordinator that does not answer is noted, not raised. Raises ZooKeeperError, and ApiError or
    ClientError when a log's range cannot be read.
    """
    [facts] = read_many([group], connections, everywhere=True)
    return facts


def read_many(
    groups: Sequence[str], connections: Connections, *, everywhere: bool = False
) -> list[GroupFacts]:
    """The same for many groups, in their order.

    everywhere   ask Kafka about all partitions of the cluster; otherwise about those of the topics
                 in which the group has offsets or owners in ZooKeeper
    """
    topics = connections.store.assignments()
    members = read_members_of(connections.zk, groups)
    owners = _read_tree(groups, "owners", connections)
    zookeeper = {
        group: {tp: nodes.decode_offset(text) for tp, text in committed.items()}
        for group, committed in _read_tree(groups, "offsets", connections).items()
    }
    existing = {TopicPartition(topic, n) for topic, numbers in topics.items() for n in numbers}
    asked = dict.fromkeys(groups, existing)
    if not everywhere:
        for group in groups:
            named = {tp.topic for tp in owners[group].keys() | zookeeper[group].keys()}
            asked[group] = {TopicPartition(t, n) for t in named for n in topics.get(t, ())}
    kafka = kafka_offsets(asked, connections)
    concerned = {g: sorted(zookeeper[g].keys() | kafka[g].offsets.keys()) for g in groups}
    readable = sorted({tp for of in concerned.values() for tp in of} & existing)
    starts = log_starts(connections.cluster, readable)
    ends = log_ends(connections.cluster, readable)
    return [
        GroupFacts(
            group,
            members[group],
            tuple(
                PartitionFacts(
                    tp,
                    zookeeper[group].get(tp),
                    kafka[group].offsets.get(tp),
                    starts.get(tp),
                    ends.get(tp),
                    owners[group].get(tp),
                )
                for tp in concerned[group]
            ),
            kafka[group].unavailable,
        )
        for group in groups
    ]


def with_movement(
    groups: Sequence[GroupFacts], connections: Connections, pause_s: float
) -> list[GroupFacts]:
    """The same with what a second look shows, a pause after the first: what moves in ZooKeeper
    although nobody owns it, and which of the doubtful offsets in Kafka are `fresh`."""
    idle = {
        g.group: [p.topic_partition for p in g.partitions if p.owner is None and p.exists]
        for g in groups
    }
    doubtful = {g.group: [p.topic_partition for p in g.doubtful] for g in groups if g.doubtful}
    if pause_s and (doubtful or any(idle.values())):
        connections.clock.sleep(pause_s)
    looked = {group: [*tps, *doubtful.get(group, ())] for group, tps in idle.items()}
    in_zookeeper = zookeeper_offsets_of(looked, connections)
    in_kafka = kafka_offsets(doubtful, connections)

    def moves(group: str, p: PartitionFacts) -> bool:
        found = in_zookeeper[group].get(p.topic_partition)
        return found is not None and found[0] != p.zookeeper

    def is_fresh(group: str, p: PartitionFacts) -> bool:
        """Kafka goes on, or ZooKeeper has come after it."""
        assert p.kafka is not None, "a doubtful partition has both offsets"
        reached, _ = in_zookeeper[group].get(p.topic_partition, (NO_OFFSET, 0))
        now = in_kafka[group].offsets.get(p.topic_partition, NO_OFFSET)
        return reached >= p.kafka or now > p.kafka

    return [
        replace(
            g,
            moving=tuple(
                p.topic_partition
                for p in g.partitions
                if p.owner is None and p.exists and moves(g.group, p)
            ),
            fresh=tuple(p.topic_partition for p in g.doubtful if is_fresh(g.group, p)),
        )
        for g in groups
    ]


def _read_tree(
    groups: Sequence[str], kind: str, connections: Connections
) -> dict[str, dict[TopicPartition, str]]:
    """group → partition → text of /consumers/<group>/<kind>/<topic>/<partition>."""
    zk = connections.zk
    roots = {group: f"{paths.group(group)}/{kind}" for group in groups}
    listed = zk.pipeline([Children(root) for root in roots.values()])
    topics = [
        (group, topic)
        for group, names in zip(groups, listed, strict=True)
        for topic in present(names) or ()
    ]
    numbers = zk.pipeline([Children(f"{roots[group]}/{topic}") for group, topic in topics])
    leaves = [
        (group, TopicPartition(topic, int(number)))
        for (group, topic), names in zip(topics, numbers, strict=True)
        for number in present(names) or ()
    ]
    read = zk.pipeline([Get(f"{roots[group]}/{tp.topic}/{tp.partition}") for group, tp in leaves])
    found: dict[str, dict[TopicPartition, str]] = {group: {} for group in groups}
    for (group, tp), node in zip(leaves, read, strict=True):
        if (there := present(node)) is not None:
            found[group][tp] = there.data or ""
    return found


class InKafka(NamedTuple):
    """What a group's coordinator said: offsets where there are some, or why it did not answer."""

    offsets: dict[TopicPartition, int]
    unavailable: str | None = None


def kafka_offsets(
    wanted: Mapping[str, Collection[TopicPartition]], connections: Connections
) -> dict[str, InKafka]:
    """group → what Kafka has of the partitions wanted, which must exist."""
    return {
        group: InKafka({}, str(offsets))
        if isinstance(offsets, KafkaError)
        else InKafka({tp: offset for tp, offset in offsets.items() if offset != NO_OFFSET})
        for group, offsets in connections.coordinators.fetch(wanted).items()
    }


def zookeeper_offsets(
    group: str, partitions: Sequence[TopicPartition], connections: Connections
) -> dict[TopicPartition, tuple[int, int]]:
    """partition → (offset, version of its znode), of those that are there."""
    return zookeeper_offsets_of({group: partitions}, connections)[group]


def zookeeper_offsets_of(
    wanted: Mapping[str, Collection[TopicPartition]], connections: Connections
) -> dict[str, dict[TopicPartition, tuple[int, int]]]:
    """The same of many groups."""
    listed = [(group, tp) for group, partitions in wanted.items() for tp in partitions]
    read = connections.zk.pipeline([Get(paths.offset(group, *tp)) for group, tp in listed])
    offsets: dict[str, dict[TopicPartition, tuple[int, int]]] = {group: {} for group in wanted}
    for (group, tp), node in zip(listed, read, strict=True):
        if (there := present(node)) is not None:
            offsets[group][tp] = (nodes.decode_offset(there.data), there.version)
    return offsets
