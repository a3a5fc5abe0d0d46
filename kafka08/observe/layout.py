"""Layout: the brokers of a cluster, and which partitions it has, by ZooKeeper or by metadata."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from kafka08.client.metadata import ClusterMetadata
from kafka08.errors import ZooKeeperError
from kafka08.observe.changing_znodes import ChangingZnodes
from kafka08.runtime import ClientRuntime
from kafka08.structs import NO_LEADER, TRANSACTIONS_TOPIC, Broker, LeaderAndIsr, TopicPartition
from kafka08.zk import paths
from kafka08.zk.client import ZkClient
from kafka08.zk.nodes import BrokerRegistration, decode_controller
from kafka08.zk.store import ClusterStore, Faults, reachable
from kafka08.zk.typed_reads import read_all

FIRST_COORDINATING: Final = 2
"""The version of a 0.9.0 broker's registration. Earlier brokers do not coordinate members."""

Assignments = Mapping[str, Mapping[int, tuple[int, ...]]]
States = Mapping[TopicPartition, LeaderAndIsr]


class Layout(NamedTuple):
    """Brokers, and who is assigned what.

    registrations   of brokers; without ZooKeeper of version 0, with an address alone
    brokers         those with an address for us
    assigned        topic → partition → replicas
    states          of all partitions, from metadata; None: ZooKeeper has them
    faults          path of a znode → why it cannot be read
    """

    registrations: Mapping[int, BrokerRegistration]
    brokers: Mapping[int, Broker]
    controller: int | None
    assigned: Assignments
    faults: Faults
    states: States | None = None

    @property
    def alive(self) -> Collection[int]:
        """Ids of the brokers that may lead: also those without an address for us."""
        return self.registrations

    @property
    def may_coordinate(self) -> bool:
        """Whether a broker may know members. One of 0.8 logs an error for each unknown request."""
        if self.states is not None:
            return True
        versions = (one.version for one in self.registrations.values())
        return max(versions, default=0) >= FIRST_COORDINATING

    @property
    def negotiates(self) -> bool:
        """Whether all brokers are known to report their API versions."""
        versions = [self.registrations[i].version for i in self.brokers]
        return bool(versions) and min(versions) >= FIRST_COORDINATING

    @property
    def has_transactions(self) -> bool:
        """Whether producers have had transactions, and brokers can be asked about them."""
        is_asked = self.states is not None or self.negotiates
        return is_asked and TRANSACTIONS_TOPIC in self.assigned

    @property
    def partitions(self) -> dict[TopicPartition, tuple[int, ...]]:
        return {
            TopicPartition(topic, number): replicas
            for topic, numbers in self.assigned.items()
            for number, replicas in numbers.items()
        }

    @property
    def numbers(self) -> dict[str, tuple[int, ...]]:
        """topic → its partitions."""
        return {topic: tuple(numbers) for topic, numbers in self.assigned.items()}

    def led(self, states: States) -> list[TopicPartition]:
        """The partitions whose leader can be asked."""
        return [tp for tp, state in states.items() if state.leader in self.brokers]

    def leader_of(self, state: LeaderAndIsr) -> int:
        """As brokers tell clients. ZooKeeper may name a broker that failed: a JVM controller that
        is elected after that leaves the state of a partition without a live replica as it is."""
        return state.leader if state.leader in self.alive else NO_LEADER


def layout_in_zookeeper(store: ClusterStore, *, strict: bool) -> Layout:
    """`strict`: an assignment that cannot be read is an error, and not left out. ZooKeeperError."""
    faults: Faults = {}
    registrations = store.registrations(faults=faults)
    return Layout(
        registrations,
        reachable(registrations),
        read_controller(store, faults),
        store.assignments() if strict else store.readable_assignments(faults=faults),
        faults,
    )


def read_controller(store: ClusterStore, faults: Faults) -> int | None:
    """The controller's broker id; None without one. ZooKeeperError."""
    node = store.zk.get_or_none(paths.CONTROLLER)
    if node is None:
        return None
    try:
        return decode_controller(node.data).broker_id
    except ZooKeeperError as error:
        faults[paths.CONTROLLER] = str(error)
        return None


def layout_of(metadata: ClusterMetadata) -> Layout:
    """The layout in a broker's metadata. Its controller is unknown: in a cluster without ZooKeeper
    brokers name any of them. Pure."""
    infos = {name: info.partitions for name, info in metadata.topics.items()}
    return Layout(
        {broker.id: registration_of(broker) for broker in metadata.brokers.values()},
        metadata.brokers,
        None,
        {topic: {p.partition: p.replicas for p in infos[topic]} for topic in infos},
        {},
        {
            TopicPartition(topic, p.partition): LeaderAndIsr(p.leader, 0, p.isr, 0, 0)
            for topic in infos
            for p in infos[topic]
        },
    )


def registration_of(broker: Broker) -> BrokerRegistration:
    """As much of a registration as brokers tell clients."""
    return BrokerRegistration(broker.host, broker.port, version=0)


def read_states(
    store: ClusterStore | None,
    layout: Layout,
    partitions: Collection[TopicPartition],
    nodes: ChangingZnodes | None = None,
) -> dict[TopicPartition, LeaderAndIsr]:
    """partition → leader and ISR, where there is one. `nodes` remembers them. ZooKeeperError."""
    if store is None:
        assert layout.states is not None, "there is no ZooKeeper, so they are those of metadata"
        return {tp: layout.states[tp] for tp in partitions if tp in layout.states}
    wanted = {tp: paths.partition_state(*tp) for tp in partitions}
    if nodes is None:
        return store.decode_states(read_all(store.zk, wanted), layout.faults)
    found = nodes.refresh(wanted.values())
    there = {tp: found[path] for tp, path in wanted.items() if path in found}
    return store.decode_states(there, layout.faults)


class Nodes:
    """The znodes of a session that are read again and again. There may be a hundred thousand of
    each kind, and a read costs a tenth of a millisecond."""

    def __init__(self, zk: ZkClient, runtime: ClientRuntime) -> None:
        self.session = zk.session_id
        self.states = ChangingZnodes(zk, runtime)
        self.commits = ChangingZnodes(zk, runtime)
