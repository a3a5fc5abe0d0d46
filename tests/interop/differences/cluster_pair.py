"""Two brokers of the JVM and two of ours, in clusters with equal keys and topics.

Broker 1 is the controller. Replicas on broker 7, which does not exist, are played by the sequences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from kafka08.embedded.broker import EmbeddedBroker
from kafka08.embedded.ports import free_ports
from kafka08.hashing import group_partition
from kafka08.levels import Level
from kafka08.network.connection import Connection
from kafka08.protocol.metadata import MetadataRequest, MetadataResponse, PartitionMetadata
from kafka08.structs import NO_LEADER
from kafka08.zk.client import ZkClient
from kafka08.zk.store import ClusterStore
from tests.interop.differences.frames import commit, committed, coordinator
from tests.interop.differences.pair import (
    KEYS,
    KEYS_OF_GROUPS,
    KEYS_SINCE_0_11,
    POMS,
    Transcripts,
)
from tests.interop.differences.sequence import Sequence, Stage
from tests.interop.differences.talk import Talk, Talks
from tests.interop.jvm import JvmBroker, guard, new_zookeeper
from tests.waiting import until

T = TypeVar("T")
Replicas = dict[int, tuple[int, ...]]
"""partition → the brokers that have it."""
IDS: Final = (1, 2)
OFFSETS: Final = "__consumer_offsets"
STRICT: Final = {"min.insync.replicas": "2"}
LAG_MS: Final = 4000
TOPICS: Final[dict[str, tuple[Replicas, dict[str, str]]]] = {
    "both": ({0: (1, 2), 1: (2, 1)}, {}),
    "strict": ({0: (1, 2), 1: (2, 1)}, STRICT),
    "one": ({0: (1,)}, {}),
    "two": ({0: (2,)}, {}),
    "played": ({0: (1, 7), 1: (7, 1), 2: (1, 7)}, {}),
    "played-strict": ({0: (1, 7), 1: (1, 7)}, STRICT),
    "three": ({0: (1, 2, 7), 1: (7, 2, 1)}, {}),
    "dead": ({0: (7,)}, {}),
    OFFSETS: (
        {0: (1, 2), 1: (2, 1), 2: (7,), 3: (1, 7)},
        {"cleanup.policy": "compact", **STRICT},
    ),
}
CLUSTER_KEYS: Final = {
    **KEYS,
    "offsets.topic.num.partitions": "4",
    "auto.create.topics.enable": "false",
    "replica.lag.time.max.ms": str(LAG_MS),
    "replica.fetch.wait.max.ms": "100",
}


class Cluster:
    """Both brokers of one kind, and their ZooKeeper session."""

    def __init__(
        self, connect: str, brokers: dict[int, JvmBroker] | dict[int, EmbeddedBroker]
    ) -> None:
        self.brokers = brokers
        self.ports = {broker_id: broker.port for broker_id, broker in brokers.items()}
        self._zk = ZkClient(connect, connection_timeout_ms=30_000)
        self.store = ClusterStore(self._zk)

    def start(self) -> None:
        """Start the brokers one after the other, and make the topics."""
        first, second = self.brokers.values()
        first.start()
        if isinstance(first, EmbeddedBroker):
            until(first.accepts_connections, "our broker")
        self._zk.start()
        until(self.store.controller, "a controller")
        second.start()
        until(lambda: [*IDS] == sorted(self.store.broker_ids()), "both brokers")
        for topic, (replicas, config) in TOPICS.items():
            self.store.create_topic(topic, replicas, config)
        self.await_partitions(self._is_in_sync)

    @staticmethod
    def _is_in_sync(partition: PartitionMetadata, replicas: tuple[int, ...]) -> bool:
        alive = [broker for broker in replicas if broker in IDS]
        return [partition.leader, *partition.isr] == [alive[0], *alive]

    @staticmethod
    def _is_left_to_one(partition: PartitionMetadata, replicas: tuple[int, ...]) -> bool:
        if 2 not in replicas:
            return True
        return partition.leader == (1 if 1 in replicas else NO_LEADER) and 2 not in partition.isr

    def await_partitions(
        self, is_so: Callable[[PartitionMetadata, tuple[int, ...]], bool], *ids: int
    ) -> None:
        """Until all brokers, or these, show every partition that had a leader as it should be."""
        for broker_id in ids or IDS:
            with Connection("127.0.0.1", self.ports[broker_id]) as connection:

                def all_are(connection: Connection = connection) -> bool:
                    found = connection.send(MetadataRequest([*TOPICS]))
                    assert isinstance(found, MetadataResponse)
                    partitions = {
                        (topic.topic, partition.partition): partition
                        for topic in found.topics
                        for partition in topic.partitions
                    }
                    return all(
                        (topic, number) in partitions and is_so(partitions[topic, number], brokers)
                        for topic, (replicas, _) in TOPICS.items()
                        for number, brokers in replicas.items()
                        if {*IDS} & {*brokers}
                    )

                until(all_are, f"the partitions at broker {broker_id}")

    def kill_second(self) -> None:
        self.brokers[2].kill()
        until(lambda: [1] == self.store.broker_ids(), "the end of a session")
        self.await_partitions(self._is_left_to_one, 1)

    def stop(self) -> None:
        for broker in self.brokers.values():
            broker.kill()
        self._zk.close()


class ClusterPair:
    """Both clusters of one level."""

    def __init__(self, directory: Path, level: Level, connect: str) -> None:
        keys = CLUSTER_KEYS | (KEYS_OF_GROUPS if level >= Level.V0_9_0 else {})
        if level >= Level.V0_11_0:
            keys = keys | KEYS_SINCE_0_11
        self.level = level
        self._stage = Stage.BOTH_LEAD
        jvm, ours = f"{connect}/jvm", f"{connect}/ours"
        self._jvm = Cluster(
            jvm, {n: JvmBroker(directory, n, jvm, keys, pom=POMS[level]) for n in IDS}
        )
        self._ours = Cluster(
            ours,
            {
                n: EmbeddedBroker(
                    n,
                    port,
                    host="127.0.0.1",
                    directory=directory / f"ours-{n}",
                    zookeeper_connect=ours,
                    config={**keys, "api.level": str(level)},
                    guard=guard(),
                )
                for n, port in zip(IDS, free_ports(2), strict=True)
            },
        )

    def start(self) -> None:
        self._both(Cluster.start)
        self._both(self._start_coordinators)

    def _start_coordinators(self, cluster: Cluster) -> None:
        for broker_id in IDS:
            group = group_on(broker_id - 1)
            one = commit(1, group, ("both", [committed(1, 0)]))
            with Talk(cluster.ports[broker_id], self.level, {}) as talk:
                until(partial(self._coordinates, talk, group, one), "the coordinator")

    @staticmethod
    def _coordinates(talk: Talk, group: str, one: bytes) -> bool:
        return bool(talk.ask(coordinator(group))) and talk.ask(one)[-2:] == b"\0\0"

    def run(self, sequence: Sequence[Talks]) -> Transcripts:
        """What each of them answers to the same requests."""
        if self._stage < Stage.ONE_LEADS <= sequence.stage:
            self._both(Cluster.kill_second)
        self._stage = max(self._stage, sequence.stage)
        return Transcripts(*self._both(lambda cluster: self._run(sequence, cluster)))

    def _run(self, sequence: Sequence[Talks], cluster: Cluster) -> list[str]:
        masks = {}
        if self.level >= Level.V0_10_2:
            masks[cluster.store.cluster_id(lambda: "none").encode()] = b"cluster id"
        with Talks(cluster.ports, self.level, masks) as talks:
            sequence.script(talks)
        return talks.lines

    def _both(self, act: Callable[[Cluster], T]) -> list[T]:
        """Do this with both clusters at once."""
        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(act, (self._jvm, self._ours)))

    def stop(self) -> None:
        for cluster in (self._jvm, self._ours):
            cluster.stop()


def group_on(partition: int) -> str:
    """A group whose offsets are in this partition: 2 has no leader, 3 never two in sync."""
    names = (f"group-{number}" for number in range(100))
    return next(name for name in names if group_partition(name, 4) == partition)


@contextmanager
def cluster_pair_of(directory: Path, level: Level) -> Iterator[ClusterPair]:
    with ExitStack() as stack:
        zookeeper = new_zookeeper(directory)
        stack.callback(zookeeper.stop)
        zookeeper.start()
        pair = ClusterPair(directory, level, zookeeper.connect_string)
        stack.callback(pair.stop)
        pair.start()
        yield pair
