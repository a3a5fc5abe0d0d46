"""Whether all topics are whole or gone once a cluster has recovered.

A topic is whole if each partition has its leader and its full ISR, every broker has exactly these
partitions in its metadata, and each replica's log is on its broker's disk. A topic that was deleted
is gone: no znode, no metadata, no log.

The clients' topic is left out of the check of logs: a broker that was down while a partition was
moved away keeps that log, in Kafka too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kafka08.log.names import (
    is_deleted_directory,
    parse_partition_directory,
    partition_directory,
)
from kafka08.simulation.cluster import LOG_DIRECTORY, SimBroker
from kafka08.simulation.memory_disk import NAME_MAX
from kafka08.simulation.strangers import GHOST, STRANGE_TOPICS
from kafka08.simulation.workload import TOPIC
from kafka08.simulation.zookeeper import SimZooKeeper
from kafka08.structs import NO_LEADER, TopicPartition
from kafka08.zk import nodes, paths

Assignments = Mapping[TopicPartition, Sequence[int]]


def unsettled(zookeeper: SimZooKeeper, brokers: Sequence[SimBroker]) -> str:
    """A sentence about a topic that is neither whole nor gone, or ""."""
    return next(_problems(zookeeper, brokers), "")


def _problems(zookeeper: SimZooKeeper, brokers: Sequence[SimBroker]) -> Iterator[str]:
    if deleting := _children(zookeeper, paths.DELETE_TOPICS):
        yield f"topic {deleting[0]} has not been deleted"
    assignments = _assignments(zookeeper)
    topics = {tp.topic for tp in assignments}
    for topic in _children(zookeeper, paths.TOPIC_CONFIGS):
        if topic not in topics and topic != GHOST:
            yield f"topic {topic} is gone, but has a configuration in ZooKeeper"
    for tp, replicas in assignments.items():
        if not _can_have_log(tp):
            continue
        state = zookeeper.leader_and_isr(tp)
        if state is None or state.leader == NO_LEADER or {*state.isr} != {*replicas}:
            yield f"{tp}, assigned to {replicas}, is not whole: {state}"
    for broker in brokers:
        yield from _problems_of(broker, assignments)


def _problems_of(broker: SimBroker, assignments: Assignments) -> Iterator[str]:
    cache = broker.metadata_cache()
    known = (
        set()
        if cache is None
        else {
            TopicPartition(topic, partition.partition)
            for topic in cache.topics
            for partition in cache.topic_metadata(topic).partitions
        }
    )
    if difference := known ^ assignments.keys():
        tp = min(difference)
        yield (
            f"{broker.host} has {tp} in its metadata, though the topic is gone"
            if tp in known
            else f"{broker.host} does not have {tp} in its metadata"
        )
    stored = {
        tp
        for directory in broker.disk.directories_in(LOG_DIRECTORY)
        if not is_deleted_directory(directory)
        and (tp := parse_partition_directory(directory)).topic != TOPIC
    }
    assigned = {
        tp
        for tp, replicas in assignments.items()
        if broker.id in replicas and tp.topic != TOPIC and _can_have_log(tp)
    }
    if difference := stored ^ assigned:
        tp = min(difference)
        verb = "keeps" if tp in stored else "lacks"
        yield f"{broker.host} {verb} the log of {tp}"


def _can_have_log(tp: TopicPartition) -> bool:
    """Whether the name of its directory is not too long for a disk."""
    return len(partition_directory(tp)) <= NAME_MAX


def _assignments(zookeeper: SimZooKeeper) -> Assignments:
    """The assigned replicas of all partitions."""
    found = {}
    for topic in _children(zookeeper, paths.BROKER_TOPICS):
        if topic in STRANGE_TOPICS:
            continue
        znode = zookeeper.server.find(paths.topic(topic))
        assert znode is not None
        assert znode.data is not None
        for number, replicas in nodes.decode_assignment(znode.data.decode()).items():
            found[TopicPartition(topic, number)] = replicas
    return found


def _children(zookeeper: SimZooKeeper, path: str) -> Sequence[str]:
    znode = zookeeper.server.find(path)
    return [] if znode is None else sorted(znode.children)
