"""Clusters for a GroupRun: two brokers of ours, or of a release of Apache Kafka's."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from kafka08.admin import AdminClient
from kafka08.admin.connections import Connections
from kafka08.embedded import EmbeddedCluster
from kafka08.embedded.ports import free_ports
from kafka08.embedded.relay import LinkSpec, Relay
from kafka08.structs import TopicPartition
from kafka08.zk.store import ClusterStore
from tests.histories.group_run import GroupRun, Killable, Network, coordinator_of
from tests.interop.jvm import JvmBroker, JvmZooKeeper
from tests.waiting import until

HOST: Final = "127.0.0.1"
BROKERS: Final = 2
PARTITIONS: Final = 4
KEYS: Final = {
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": str(BROKERS),
    "group.min.session.timeout.ms": "500",
    "zookeeper.session.timeout.ms": "3000",
    "controlled.shutdown.enable": "false",
}
LATER_KEYS: Final = {"group.initial.rebalance.delay.ms": "0"}


@dataclass(frozen=True)
class GroupCluster:
    """Where runs are made, one after the other."""

    bootstrap: str
    brokers: Mapping[int, Killable]
    network: Network
    connections: Connections
    admin: AdminClient

    def history(
        self, name: str, directory: Path, rng: random.Random, seconds: float
    ) -> tuple[str, Sequence[str]]:
        """One run with a topic and a group of that name: what it did, and the rules it broke."""
        until(lambda: len(self.connections.store.broker_ids()) == BROKERS, "both brokers")
        self.admin.create_topic(name, PARTITIONS, BROKERS)
        self.admin.await_leaders(name)
        coordinator = partial(
            coordinator_of,
            self.connections.store,
            self.brokers,
            name,
            [TopicPartition(name, number) for number in range(PARTITIONS)],
            int(KEYS["offsets.topic.num.partitions"]),
        )
        directory.mkdir()
        with GroupRun(
            self.bootstrap,
            name,
            PARTITIONS,
            directory,
            rng,
            coordinator,
            self.network,
            list(self.brokers),
        ) as run:
            history = run.run(seconds)
            told = f"{history.count} processed, {history.repetitions} again, "
            return told + f"{len(run.faults)} faults: {' '.join(run.faults)}", run.problems


@dataclass(frozen=True)
class OurNetwork:
    """Of a cluster of ours; to a broker that is held ZooKeeper's responses do not come either."""

    cluster: EmbeddedCluster

    def hold(self, broker: int) -> None:
        self.cluster.cut(broker)

    def release(self) -> None:
        for broker in self.cluster.brokers:
            self.cluster.restore(broker)

    def reset(self, broker: int) -> None:
        self.cluster.reset_connections(broker)


@dataclass(frozen=True)
class RelayedNetwork:
    """Of brokers that advertise the ports of a relay."""

    relay: Relay

    def hold(self, broker: int) -> None:
        self.relay.cut([(str(broker), 0)])

    def release(self) -> None:
        self.relay.cut([])

    def reset(self, broker: int) -> None:
        self.relay.reset([str(broker)])


@dataclass(frozen=True)
class AfterExpiry:
    """A broker of Apache Kafka's, which cannot start as long as its former session lives."""

    broker: JvmBroker
    store: ClusterStore

    def kill(self) -> None:
        self.broker.kill()

    def start(self) -> None:
        until(lambda: self.broker.id not in self.store.broker_ids(), "the end of its session")
        self.broker.start()


@contextmanager
def of_ours(level: str = "0.10.2") -> Iterator[GroupCluster]:
    with EmbeddedCluster(brokers=BROKERS, config=KEYS, level=level, cuttable=True) as cluster:
        brokers = {broker.id: broker for broker in cluster.brokers}
        network = OurNetwork(cluster)
        zookeeper = cluster.zookeeper.connect_string
        with _connected(zookeeper, cluster.bootstrap, brokers, network) as found:
            yield found


@contextmanager
def of_jvm(directory: Path, pom: Path) -> Iterator[GroupCluster]:
    with ExitStack() as stack:
        zookeeper = stack.enter_context(JvmZooKeeper(directory, pom=pom)).connect_string
        ports = free_ports(BROKERS)
        relay = Relay(LinkSpec(str(number), HOST, 0, port) for number, port in enumerate(ports))
        stack.callback(relay.stop)
        keys = [
            {
                **KEYS,
                **LATER_KEYS,
                "port": str(port),
                "listeners": f"PLAINTEXT://{HOST}:{port}",
                "advertised.listeners": f"PLAINTEXT://{HOST}:{relayed}",
            }
            for port, relayed in zip(ports, relay.ports, strict=True)
        ]
        brokers = [
            stack.enter_context(JvmBroker(directory, number, zookeeper, of_one, pom=pom))
            for number, of_one in enumerate(keys)
        ]
        bootstrap = ",".join(f"{HOST}:{port}" for port in relay.ports)
        network = RelayedNetwork(relay)
        found = stack.enter_context(_connected(zookeeper, bootstrap, {}, network))
        store = found.connections.store
        yield replace(found, brokers={one.id: AfterExpiry(one, store) for one in brokers})


@contextmanager
def _connected(
    zookeeper: str, bootstrap: str, brokers: Mapping[int, Killable], network: Network
) -> Iterator[GroupCluster]:
    with Connections(zookeeper, bootstrap) as connections, AdminClient(zookeeper) as admin:
        yield GroupCluster(bootstrap, brokers, network, connections, admin)
