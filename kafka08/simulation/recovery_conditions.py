"""Conditions that become true after the faults of a run: the brokers have recovered.

The conditions read ZooKeeper and the memory of the brokers directly, not over the network.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafka08.broker.replica.partition import Partition
from kafka08.simulation.cluster import SimBroker
from kafka08.simulation.zookeeper import SimZooKeeper
from kafka08.structs import NO_LEADER, LeaderAndIsr, TopicPartition
from kafka08.zk import nodes, paths


def are_registered(zookeeper: SimZooKeeper, brokers: Sequence[SimBroker]) -> bool:
    """Whether all brokers are registered."""
    ids = zookeeper.server.find(paths.BROKER_IDS)
    return ids is not None and len(ids.children) == len(brokers)


def are_in_sync(zookeeper: SimZooKeeper, topic: str) -> bool:
    """Whether each partition has a leader, and all of its replicas are in its ISR."""
    for number, replicas in assignment_of(zookeeper, topic).items():
        state = zookeeper.leader_and_isr(TopicPartition(topic, number))
        if state is None or state.leader == NO_LEADER or set(state.isr) != set(replicas):
            return False
    return True


def know_leaders(
    zookeeper: SimZooKeeper, brokers: Sequence[SimBroker], partitions: Sequence[TopicPartition]
) -> bool:
    """Whether all brokers have the leaders and leader epochs that are in ZooKeeper, and each
    leader has its ISR and the version of its znode."""
    for tp in partitions:
        state = zookeeper.leader_and_isr(tp)
        if state is None:
            return False
        for broker in brokers:
            known, here = broker.known_state(tp), broker.partition(tp)
            if known is None or (here is None and broker.id == state.leader):
                return False
            if (known.leader, known.leader_epoch) != (state.leader, state.leader_epoch):
                return False
            if here is not None and here.is_leader and not _knows(here, state):
                return False
    return True


def _knows(leader: Partition, state: LeaderAndIsr) -> bool:
    """Whether a leader has the state of its partition's znode."""
    return (leader.broker_id, leader.leader_epoch, leader.zk_version, {*leader.isr}) == (
        state.leader,
        state.leader_epoch,
        state.zk_version,
        {*state.isr},
    )


def assignment_of(zookeeper: SimZooKeeper, topic: str) -> Mapping[int, tuple[int, ...]]:
    """partition → assigned replicas, of an existing topic."""
    znode = zookeeper.server.find(paths.topic(topic))
    assert znode is not None
    assert znode.data is not None
    return nodes.decode_assignment(znode.data.decode())
