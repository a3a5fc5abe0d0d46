"""Conditions that become true after the faults of a run: the brokers have recovered. Each is a
sentence about what is missing, or "".

The conditions read ZooKeeper and the memory of the brokers directly, not over the network.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafka08.broker.replica.partition import Partition
from kafka08.simulation.cluster import SimBroker
from kafka08.simulation.zookeeper import SimZooKeeper
from kafka08.structs import NO_LEADER, LeaderAndIsr, TopicPartition
from kafka08.zk import nodes, paths


def unregistered(zookeeper: SimZooKeeper, brokers: Sequence[SimBroker]) -> str:
    """A sentence about a broker that is not registered, with its last error; "" if all are."""
    for broker in brokers:
        if zookeeper.server.find(paths.broker(broker.id)) is None:
            name = broker.host if broker.process is None else broker.process.name
            state = "runs, but is not registered" if broker.is_running else "does not run"
            error = f"; last error: {broker.last_error}" if broker.last_error else ""
            return f"{name} {state}{error}"
    return ""


def out_of_sync(zookeeper: SimZooKeeper, topic: str) -> str:
    """A sentence about a partition without a leader, or with a replica that is not in the ISR; ""
    if there is none."""
    for number, replicas in assignment_of(zookeeper, topic).items():
        tp = TopicPartition(topic, number)
        state = zookeeper.leader_and_isr(tp)
        if state is None or state.leader == NO_LEADER or set(state.isr) != set(replicas):
            return f"{tp}, assigned to {list(replicas)}, has {state}"
    return ""


def without_leader(
    zookeeper: SimZooKeeper, brokers: Sequence[SimBroker], partitions: Sequence[TopicPartition]
) -> str:
    """A sentence about a broker that has not the leader and the leader epoch of a partition that
    are in ZooKeeper, or about a leader that has not its ISR and the version of its znode; ""."""
    for tp in partitions:
        state = zookeeper.leader_and_isr(tp)
        if state is None:
            return f"{tp} has no state in ZooKeeper"
        for broker in brokers:
            known, here = broker.known_state(tp), broker.partition(tp)
            if known is None or (here is None and broker.id == state.leader):
                return f"{broker.host} does not know {tp}, which has {state}"
            if (known.leader, known.leader_epoch) != (state.leader, state.leader_epoch):
                return (
                    f"{broker.host} knows leader {known.leader} of epoch {known.leader_epoch} of "
                    f"{tp}, which has {state}"
                )
            if here is not None and here.is_leader and not _knows(here, state):
                return (
                    f"{broker.host} leads {tp} in epoch {here.leader_epoch} with ISR "
                    f"{list(here.isr)} and znode version {here.zk_version}; ZooKeeper has {state}, "
                    f"version {state.zk_version}"
                )
    return ""


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
