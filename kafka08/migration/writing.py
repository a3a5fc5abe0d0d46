"""Writes of offsets that may be repeated, and that lower nothing unless they are told to."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kafka08.client.retry import retry
from kafka08.consumer.offset_store import Offsets
from kafka08.errors import BadVersion, MigrationError, NodeExists, ZooKeeperError
from kafka08.migration.connections import RETRIES, Connections
from kafka08.migration.facts import zookeeper_offsets
from kafka08.structs import NO_OFFSET, TopicPartition
from kafka08.zk import nodes, paths
from kafka08.zk.operations import Create, Operation, Set


def commit_to_kafka(
    connections: Connections, group: str, offsets: Mapping[TopicPartition, int]
) -> None:
    """Commit, and read back that they are there; MigrationError if something else is."""
    kafka = connections.kafka(group)

    def commit() -> None:
        for error in kafka.commit_each(offsets).values():
            raise error

    retry(commit, RETRIES, connections.clock, what=f"committing the offsets of {group}")
    found = kafka.fetch(list(offsets))
    wrong = [f"{tp}: committed {o}, read {found[tp]}" for tp, o in offsets.items() if found[tp] < o]
    if wrong:
        raise MigrationError(f"commit to Kafka for group {group} failed: {'; '.join(wrong)}")


def raise_in_kafka(
    connections: Connections, group: str, partitions: Collection[TopicPartition]
) -> Offsets:
    """Bring Kafka up to ZooKeeper where ZooKeeper is ahead; what was committed.

    Kafka cannot compare before it writes. So this is for partitions whose owner, if they have one,
    commits to ZooKeeper alone: nobody else commits to Kafka between the look and the commit.
    """
    in_zookeeper = zookeeper_offsets(group, sorted(partitions), connections)
    in_kafka = connections.kafka(group).fetch(list(in_zookeeper))
    ahead = {tp: o for tp, (o, _) in in_zookeeper.items() if o > in_kafka.get(tp, NO_OFFSET)}
    if ahead:
        commit_to_kafka(connections, group, ahead)
    return ahead


def raise_in_zookeeper(
    connections: Connections, group: str, wanted: Mapping[TopicPartition, int]
) -> Offsets:
    """Bring ZooKeeper up to `wanted`, each write conditional on the version that was seen to be
    smaller: an owner that commits meanwhile is not overwritten. What was written."""
    written: Offsets = {}
    left = dict(wanted)
    while left:
        found = zookeeper_offsets(group, sorted(left), connections)
        left = {tp: o for tp, o in left.items() if tp not in found or found[tp][0] < o}
        writes: list[Operation] = [
            Set(paths.offset(group, *tp), nodes.encode_offset(o), found[tp][1])
            if tp in found
            else Create(paths.offset(group, *tp), nodes.encode_offset(o))
            for tp, o in left.items()
        ]
        results = connections.zk.pipeline(writes)
        raced = {}
        for (tp, offset), result in zip(left.items(), results, strict=True):
            if isinstance(result, (BadVersion, NodeExists)):
                raced[tp] = offset
            elif isinstance(result, ZooKeeperError):
                raise result
            else:
                written[tp] = offset
        left = raced
    return written
