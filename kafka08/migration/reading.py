"""Reads what a migration needs to know about groups from ZooKeeper and the brokers.

Reads are made for many groups at once: each kind of read goes to ZooKeeper as one pipeline, to each
leader as one request, to each coordinator as one pipeline with a request per group.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from kafka08.errors import KafkaError, ZooKeeperError
from kafka08.groups.facts import Owner, partitions_of
from kafka08.groups.members import read_members_of, topics_read
from kafka08.groups.trees import Tree, read_offsets, read_owners
from kafka08.migration.connections import Connections
from kafka08.migration.facts import GroupFacts, PartitionFacts, seen_again, with_faults
from kafka08.migration.partitions import Partitions
from kafka08.structs import NO_OFFSET, TopicPartition
from kafka08.zk import nodes, paths
from kafka08.zk.errors import unless_gone
from kafka08.zk.operations import Get

IN_MEMORY_MAX: Final = 200_000
"""Partitions in the responses of coordinators that are in memory at a time, most without an offset:
each group is asked about every partition of the cluster."""


DESCRIBED_SINGLY: Final = 3
"""Groups of which each coordinator is asked; for more all groups are listed."""


def overwrite(group: str, tp: TopicPartition) -> str:
    """The advice for an offset in ZooKeeper that cannot be read."""
    topic, partition = tp
    return f"overwrite it: kafka08 offsets set {group} {topic}:{partition}=OFFSET"


def read_facts(
    group: str,
    connections: Connections,
    also: Collection[TopicPartition] = (),
) -> GroupFacts:
    """Read the present facts of `group`, with its members of both kinds. Partitions are those with
    an offset in either store, those of `also`, and all others of the topics of these and of those
    that members read or owned.

    Every partition of the cluster is requested from Kafka, since it cannot list a group's commits.
    Unreadable offsets are noted, not raised. Raises ZooKeeperError if ZooKeeper does not respond.
    """
    [facts] = read_many([group], connections, {group: also})
    return facts


def read_many(
    groups: Sequence[str],
    connections: Connections,
    also: Mapping[str, Collection[TopicPartition]] = {},
) -> list[GroupFacts]:
    """The same for many groups, in their order."""
    members = read_members_of(connections.zk, groups)
    owners = read_owners(connections.zk, groups)
    zookeeper = read_offsets(connections.zk, groups)
    all_topics = connections.store.topics() if any(members.values()) else []
    topics = {
        group: topics_read(members[group], all_topics)
        | owners[group].topics
        | zookeeper[group].topics
        | {tp.topic for tp in also.get(group, ())}
        for group in groups
    }
    existing = Partitions(connections, None)
    kafka = kafka_offsets(dict.fromkeys(groups, existing.led), connections)
    concerned = {}
    for group in groups:
        known = {*zookeeper[group].values, *kafka[group].offsets, *also.get(group, ())}
        # Whether one with an unreadable znode was committed is not known; `faults` names it.
        hidden = zookeeper[group].unreadable.keys() - known
        partitions = partitions_of(existing.assigned, topics[group], known)
        concerned[group] = [tp for tp in partitions if tp not in hidden]
    ranges = existing.log_ranges(set().union(*concerned.values()))
    found = [
        GroupFacts(
            group,
            members[group],
            tuple(
                PartitionFacts(
                    tp,
                    offset_or_none(zookeeper[group].values.get(tp, NO_OFFSET)),
                    kafka[group].offsets.get(tp),
                    ranges[tp].log_start,
                    ranges[tp].log_end,
                    _thread(owners[group].values.get(tp)),
                    unreadable=ranges[tp].unreadable,
                    coordinator_responded=kafka[group].unavailable is None,
                )
                for tp in concerned[group]
            ),
            kafka[group].unavailable,
            faults=(*_faults(group, owners[group]), *_faults(group, zookeeper[group])),
        )
        for group in groups
    ]
    return with_all_coordinated(found, connections)


def offset_or_none(offset: int) -> int | None:
    """An offset in ZooKeeper. A member of 0.8.2.2 that has no position commits NO_OFFSET there."""
    return None if offset == NO_OFFSET else offset


def with_coordinated(facts: GroupFacts, connections: Connections) -> GroupFacts:
    """The same, with the group as its coordinator knows it, if that responds."""
    if facts.unavailable is not None:
        return facts
    try:
        return replace(facts, coordinated=connections.coordinated(facts.group))
    except KafkaError as error:
        return replace(facts, unavailable=str(error))


def with_all_coordinated(
    groups: Sequence[GroupFacts], connections: Connections
) -> list[GroupFacts]:
    """The same of many groups: their brokers are asked for lists, which costs less than a request
    for each group."""
    if len(groups) <= DESCRIBED_SINGLY or not connections.may_coordinate():
        return [with_coordinated(facts, connections) for facts in groups]
    try:
        listed = connections.groups.groups()
    except KafkaError as error:
        return [replace(g, unavailable=g.unavailable or str(error)) for g in groups]
    known = {one.name: one for one in listed.groups}
    return [
        with_coordinated(g, connections)
        if listed.failed_requests and g.group not in known
        else replace(g, coordinated=known.get(g.group))
        for g in groups
    ]


def _thread(owner: Owner | None) -> str | None:
    return None if owner is None else owner.thread_id


def _faults(group: str, tree: Tree[Owner] | Tree[int]) -> Iterator[str]:
    """Sentences about unreadable znodes: the fault, and what to do."""
    for path in tree.strays:
        yield f"{path} is not named after a partition; delete this znode"
    for tp, fault in tree.unreadable.items():
        yield f"{fault}; {overwrite(group, tp)}"


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
    in_kafka = kafka_offsets(doubtful, connections)
    return [
        seen_again(
            with_faults(g, in_zookeeper[g.group].faults.values()),
            {tp: offset for tp, (offset, _) in in_zookeeper[g.group].offsets.items()},
            in_kafka[g.group].offsets if g.group in in_kafka else {},
        )
        for g in groups
    ]


class InKafka(NamedTuple):
    """The response of a group's coordinator: committed offsets, or why it did not respond."""

    offsets: dict[TopicPartition, int]
    unavailable: str | None = None


def kafka_offsets(
    wanted: Mapping[str, Collection[TopicPartition]], connections: Connections
) -> dict[str, InKafka]:
    """group → what Kafka has of the partitions wanted, which must exist. Creates no offsets
    topic."""
    if not connections.has_offsets_topic():
        return {group: InKafka({}) for group in wanted}
    found: dict[str, InKafka] = {}
    for some in _portions(wanted):
        for group, offsets in connections.coordinators.fetch(some).items():
            found[group] = (
                InKafka({}, str(offsets))
                if isinstance(offsets, KafkaError)
                else InKafka({tp: offset for tp, offset in offsets.items() if offset != NO_OFFSET})
            )
    return found


def _portions(
    wanted: Mapping[str, Collection[TopicPartition]],
) -> Iterator[dict[str, Collection[TopicPartition]]]:
    """Groups whose responses have up to IN_MEMORY_MAX partitions together, or one group."""
    some: dict[str, Collection[TopicPartition]] = {}
    size = 0
    for group, partitions in wanted.items():
        if some and size + len(partitions) > IN_MEMORY_MAX:
            yield some
            some, size = {}, 0
        some[group] = partitions
        size += len(partitions)
    if some:
        yield some


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
