"""Idempotent writes of offsets, which lower no offset except on request.

Kafka cannot compare before it writes. So every commit to it takes a gate (Connections.gate), which
the caller asks for before it reads what it decides on: a tool that was suspended commits nothing
once another one may have taken its place.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kafka08.admin.committing import commit_to_kafka_of
from kafka08.admin.connections import Connections
from kafka08.client.coordinators import Check
from kafka08.consumer.zookeeper.offset_store import Offsets
from kafka08.errors import BadVersion, KafkaError, NodeExists, ZooKeeperError
from kafka08.migration.reading import zookeeper_offsets, zookeeper_offsets_of
from kafka08.migration.results import raised
from kafka08.structs import TopicPartition
from kafka08.zk import nodes, paths
from kafka08.zk.operations import Create, Operation, Set


def raise_in_kafka(
    connections: Connections, group: str, partitions: Collection[TopicPartition], gate: Check
) -> Offsets:
    """Bring Kafka up to ZooKeeper where ZooKeeper is ahead; what was committed. The partitions must
    exist.

    Kafka cannot compare before it writes. So this is for partitions whose owner, if they have one,
    commits to ZooKeeper alone: no other client commits to Kafka between the read and the commit.
    """
    return raised(raise_in_kafka_of(connections, {group: partitions}, gate)[group])


def raise_in_kafka_of(
    connections: Connections,
    wanted: Mapping[str, Collection[TopicPartition]],
    gate: Check,
) -> dict[str, Offsets | KafkaError]:
    """The same of many groups: group → what was committed, or its error."""
    in_zookeeper = {}
    unreadable: dict[str, KafkaError] = {}
    for group, found in zookeeper_offsets_of(wanted, connections).items():
        try:
            in_zookeeper[group] = found.checked()
        except ZooKeeperError as error:
            unreadable[group] = error
    results = connections.coordinators.fetch(in_zookeeper)
    ahead: dict[str, Offsets] = {}
    for group, in_kafka in results.items():
        if not isinstance(in_kafka, KafkaError):
            ahead[group] = {
                tp: offset
                for tp, (offset, _) in in_zookeeper[group].items()
                if offset > in_kafka[tp]
            }
    committed = commit_to_kafka_of(
        connections, {g: offsets for g, offsets in ahead.items() if offsets}, gate
    )
    return {**unreadable, **results, **ahead, **committed}


def raise_in_zookeeper(
    connections: Connections,
    group: str,
    wanted: Mapping[TopicPartition, int],
    lowered: Mapping[TopicPartition, int] = {},
) -> Offsets:
    """Raise ZooKeeper to `wanted`, and lower the offsets of `lowered`. Each write is
    conditional on the version read; a concurrent commit is read first, and wins unless it must be
    overwritten too. Returns the written offsets."""

    def may_overwrite(tp: TopicPartition, offset: int) -> bool:
        return offset < wanted[tp] or offset == lowered.get(tp)

    written: Offsets = {}
    left = dict(wanted)
    while left:
        found = zookeeper_offsets(group, sorted(left), connections)
        left = {
            tp: o for tp, o in left.items() if tp not in found or may_overwrite(tp, found[tp][0])
        }
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
