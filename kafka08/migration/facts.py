"""Reads what a migration needs to know about groups from ZooKeeper and the brokers.

Reads are made for many groups at once: each kind of read goes to ZooKeeper as one pipeline, to each
leader as one request, to each coordinator as one request per group.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from kafka08.client.log_offsets import log_ends, log_starts
from kafka08.errors import KafkaError, NoNode, ZooKeeperError
from kafka08.migration.connections import Connections
from kafka08.migration.members import Member, member_of
from kafka08.migration.plan import GroupFacts, PartitionFacts
from kafka08.structs import NO_OFFSET, TopicPartition
from kafka08.zk import nodes, paths
from kafka08.zk.operations import Children, Get, Node
from kafka08.zk.orders import decode_order


@dataclass(slots=True)
class _Group:
    """What has been read of one group so far."""

    name: str
    members: tuple[Member, ...] = ()
    zookeeper: dict[TopicPartition, int] | None = None
    owners: dict[TopicPartition, str] | None = None
    kafka: dict[TopicPartition, int] | None = None
    unavailable: str | None = None

    @property
    def concerned(self) -> list[TopicPartition]:
        return sorted((self.zookeeper or {}).keys() | (self.kafka or {}).keys())


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
    assignments = connections.store.assignments()
    existing = {TopicPartition(topic, p) for topic, found in assignments.items() for p in found}
    found = [_Group(name) for name in groups]
    _read_members(found, connections)
    _read_owners_and_offsets(found, connections)
    for group in found:
        _read_kafka(group, existing, connections, everywhere=everywhere)
    readable = sorted({tp for group in found for tp in group.concerned if tp in existing})
    starts = log_starts(connections.cluster, readable)
    ends = log_ends(connections.cluster, readable)
    return [_facts(group, starts, ends) for group in found]


def with_movement(
    groups: Sequence[GroupFacts], connections: Connections, pause_s: float
) -> list[GroupFacts]:
    """The same, with what moves in ZooKeeper although nobody owns it: seen by a second look, a
    pause after the first."""
    idle = [
        (n, p) for n, g in enumerate(groups) for p in g.partitions if p.owner is None and p.exists
    ]
    if idle and pause_s:
        connections.clock.sleep(pause_s)
    gets = [Get(paths.offset(groups[n].group, *p.topic_partition)) for n, p in idle]
    moving: list[tuple[TopicPartition, ...]] = [() for _ in groups]
    for (n, p), result in zip(idle, connections.zk.pipeline(gets), strict=True):
        node = _node(result)
        if node is not None and nodes.decode_offset(node.data) != p.zookeeper:
            moving[n] += (p.topic_partition,)
    return [replace(g, moving=m) if m else g for g, m in zip(groups, moving, strict=True)]


def _facts(
    group: _Group, starts: dict[TopicPartition, int], ends: dict[TopicPartition, int]
) -> GroupFacts:
    zookeeper, kafka, owners = group.zookeeper or {}, group.kafka or {}, group.owners or {}
    partitions = tuple(
        PartitionFacts(
            tp, zookeeper.get(tp), kafka.get(tp), starts.get(tp), ends.get(tp), owners.get(tp)
        )
        for tp in group.concerned
    )
    return GroupFacts(group.name, group.members, partitions, group.unavailable)


def _read_members(groups: list[_Group], connections: Connections) -> None:
    listed = connections.zk.pipeline([Children(paths.consumer_ids(g.name)) for g in groups])
    ids = [(group, i) for group, names in zip(groups, listed, strict=True) for i in _names(names)]
    registered = connections.zk.pipeline([Get(paths.consumer_id(g.name, i)) for g, i in ids])
    answers = connections.zk.pipeline([Get(paths.migration_answer(g.name, i)) for g, i in ids])
    for (group, consumer_id), node, answer in zip(ids, registered, answers, strict=True):
        if (there := _node(node)) is not None:
            registration = nodes.decode_consumer(there.data)
            replied = _node(answer)
            order = None if replied is None else decode_order(replied.data)
            group.members += (member_of(consumer_id, registration, order),)


def _read_owners_and_offsets(groups: list[_Group], connections: Connections) -> None:
    owners = _read_tree(groups, "owners", connections)
    offsets = _read_tree(groups, "offsets", connections)
    for group, owned, committed in zip(groups, owners, offsets, strict=True):
        group.owners = owned
        group.zookeeper = {tp: nodes.decode_offset(text) for tp, text in committed.items()}


def _read_tree(
    groups: list[_Group], kind: str, connections: Connections
) -> list[dict[TopicPartition, str]]:
    """For each group, partition → text of /consumers/<group>/<kind>/<topic>/<partition>."""
    zk = connections.zk
    roots = [f"{paths.group(group.name)}/{kind}" for group in groups]
    listed = zk.pipeline([Children(root) for root in roots])
    topics = [(n, topic) for n, names in enumerate(listed) for topic in _names(names)]
    numbers = zk.pipeline([Children(f"{roots[n]}/{topic}") for n, topic in topics])
    leaves = [
        (n, TopicPartition(topic, int(number)))
        for (n, topic), names in zip(topics, numbers, strict=True)
        for number in _names(names)
    ]
    read = zk.pipeline([Get(f"{roots[n]}/{tp.topic}/{tp.partition}") for n, tp in leaves])
    found: list[dict[TopicPartition, str]] = [{} for _ in groups]
    for (n, tp), node in zip(leaves, read, strict=True):
        if (there := _node(node)) is not None:
            found[n][tp] = there.data or ""
    return found


def _read_kafka(
    group: _Group, existing: set[TopicPartition], connections: Connections, *, everywhere: bool
) -> None:
    """Offsets where there are some, and why there was no answer."""
    known = {*(group.zookeeper or {}), *(group.owners or {})}
    topics = {tp.topic for tp in known}
    asked = known | {tp for tp in existing if everywhere or tp.topic in topics}
    group.kafka, group.unavailable = kafka_offsets(group.name, sorted(asked), connections)


def kafka_offsets(
    group: str, partitions: Iterable[TopicPartition], connections: Connections
) -> tuple[dict[TopicPartition, int], str | None]:
    """Offsets where there are some, and why there was no answer, if there was none."""
    try:
        offsets = connections.kafka(group).fetch(list(partitions))
    except KafkaError as error:
        return {}, str(error)
    return {tp: offset for tp, offset in offsets.items() if offset != NO_OFFSET}, None


def zookeeper_offsets(
    group: str, partitions: Sequence[TopicPartition], connections: Connections
) -> dict[TopicPartition, tuple[int, int]]:
    """partition → (offset, version of its znode), of those that are there."""
    read = connections.zk.pipeline([Get(paths.offset(group, *tp)) for tp in partitions])
    return {
        tp: (nodes.decode_offset(there.data), there.version)
        for tp, node in zip(partitions, read, strict=True)
        if (there := _node(node)) is not None
    }


def _names(result: list[str] | ZooKeeperError) -> list[str]:
    """Children that were listed; none of a znode that is not there."""
    if isinstance(result, NoNode):
        return []
    if isinstance(result, ZooKeeperError):
        raise result
    return result


def _node(result: Node | ZooKeeperError) -> Node | None:
    if isinstance(result, NoNode):
        return None
    if isinstance(result, ZooKeeperError):
        raise result
    return result
