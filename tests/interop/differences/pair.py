"""A broker of the JVM and one of ours, each alone in a cluster, with equal keys and topics."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from struct import pack, unpack_from
from typing import Any, NamedTuple, TypeVar

from kafka08.embedded.broker import EmbeddedBroker
from kafka08.embedded.embedded_zookeeper import EmbeddedZooKeeper
from kafka08.embedded.ports import free_ports
from kafka08.levels import Level
from kafka08.network.connection import Connection
from kafka08.protocol.metadata import MetadataRequest
from kafka08.zk.client import ZkClient
from kafka08.zk.store import ClusterStore
from tests.interop.differences.frames import (
    commit,
    committed,
    coordinator,
    entry,
    list_offsets,
    listed,
    message,
    produce,
    produced,
)
from tests.interop.differences.sequence import Sequence
from tests.interop.differences.talk import Talk
from tests.interop.jvm import (
    POM,
    POM_0_9_0,
    POM_0_10_2,
    POM_0_11,
    JvmBroker,
    guard,
    new_zookeeper,
)
from tests.waiting import until

POMS = {
    Level.V0_8_2: POM,
    Level.V0_9_0: POM_0_9_0,
    Level.V0_10_2: POM_0_10_2,
    Level.V0_11_0: POM_0_11,
}
KEYS_SINCE_0_11 = {
    "group.initial.rebalance.delay.ms": "0",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}
KEYS = {
    "host.name": "127.0.0.1",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "zookeeper.session.timeout.ms": "6000",
    "auto.leader.rebalance.enable": "false",
    "controlled.shutdown.enable": "false",
    "delete.topic.enable": "true",
    "log.cleaner.enable": "false",
}
KEYS_OF_GROUPS = {"group.min.session.timeout.ms": "500", "group.max.session.timeout.ms": "30000"}
ONE_REPLICA: dict[int, tuple[int, ...]] = {0: (1,)}
TOPICS: dict[str, dict[str, str]] = {
    "t": {},
    "full": {},
    "compacted": {"cleanup.policy": "compact"},
    "narrow": {"max.message.bytes": "100"},
    "mindful": {"min.insync.replicas": "2"},
}
TOPICS_SINCE: dict[Level, dict[str, dict[str, str]]] = {
    Level.V0_9_0: {
        "gzipped": {"compression.type": "gzip"},
        "plain": {"compression.type": "uncompressed"},
    },
    Level.V0_10_2: {
        "stamped": {"message.timestamp.type": "LogAppendTime"},
        "old": {"message.format.version": "0.9.0"},
        "strict": {"message.timestamp.difference.max.ms": "86400000"},
    },
}
DEAD = "dead"
"""A topic whose one replica is on a broker that does not exist."""


def topics_at(level: Level) -> dict[str, dict[str, str]]:
    found = dict(TOPICS)
    for since, later in TOPICS_SINCE.items():
        if since <= level:
            found |= later
    return found


class Transcripts(NamedTuple):
    jvm: list[str]
    ours: list[str]


class Pair:
    """Both brokers of one level. They have id 1 and its topics, with the same numbers of
    partitions: three of "t", one of each other topic."""

    def __init__(self, directory: Path, level: Level, zookeeper: EmbeddedZooKeeper) -> None:
        keys = KEYS | (KEYS_OF_GROUPS if level >= Level.V0_9_0 else {})
        if level >= Level.V0_11_0:
            keys = keys | KEYS_SINCE_0_11
        connect = zookeeper.connect_string
        self.level = level
        self.jvm = JvmBroker(directory, 1, f"{connect}/jvm", keys, pom=POMS[level])
        self.ours = EmbeddedBroker(
            1,
            free_ports(1)[0],
            host="127.0.0.1",
            directory=directory / "ours",
            zookeeper_connect=f"{connect}/ours",
            config={**keys, "api.level": str(level)},
            guard=guard(),
        )
        self._stores: dict[int, ClusterStore] = {}
        self._clients: list[ZkClient] = []
        for port, chroot in ((self.jvm.port, "/jvm"), (self.ours.port, "/ours")):
            client = ZkClient(f"{connect}{chroot}", connection_timeout_ms=30_000)
            self._clients.append(client)
            self._stores[port] = ClusterStore(client)

    def start(self) -> None:
        self.ours.start()
        self.jvm.start()
        until(self.ours.accepts_connections, "our broker")
        for client in self._clients:
            client.start()
        for port in self._stores:
            self._create_topics(port)

    def _create_topics(self, port: int) -> None:
        store = self._stores[port]
        until(lambda: store.broker_ids() and store.controller(), "a controller")
        for topic, config in topics_at(self.level).items():
            replicas = {0: (1,), 1: (1,), 2: (1,)} if topic == "t" else ONE_REPLICA
            store.create_topic(topic, replicas, config)
        store.create_topic(DEAD, {0: (7,)}, {})
        wanted = {*topics_at(self.level)}
        with Connection("127.0.0.1", port) as connection:
            until(lambda: wanted <= leading(connection), "the topics")
        with Talk(port, self.level, {}) as talk:
            one = commit(1, "g", ("t", [committed(1, 0)]))
            done = b"M" + pack(">i", 1) + b"\0\1t" + pack(">iih", 1, 0, 0)
            until(
                lambda: talk.ask(coordinator("g")) and done == talk.ask(one)[3:],
                "the coordinator",
            )

    def run(self, sequence: Sequence[Talk]) -> Transcripts:
        """What each of them answers to the same requests."""
        ports = (self.jvm.port, self.ours.port)
        found = Transcripts(*(self._run(sequence, port) for port in ports))
        if found.jvm != found.ours:
            self._align()
        return found

    def _align(self) -> None:
        """Append messages until all logs have equal ends: the sequences after one that differs
        are no worse for it."""
        with (
            Talk(self.jvm.port, self.level, {}) as jvm,
            Talk(self.ours.port, self.level, {}) as ours,
        ):
            for topic in topics_at(self.level):
                for partition in range(3 if topic == "t" else 1):
                    asked = list_offsets(0, (topic, [listed(0, partition)]))
                    ends = [unpack_from(">q", talk.ask(asked)[-8:])[0] for talk in (jvm, ours)]
                    pad = produced(partition, padding_of(topic) * abs(ends[0] - ends[1]))
                    version = 2 if self.level >= Level.V0_10_2 else 0
                    (jvm if ends[0] < ends[1] else ours).ask(produce(version, (topic, [pad])))

    def _run(self, sequence: Sequence[Talk], port: int) -> list[str]:
        masks = {pack(">i", port): b"PORT"}
        cluster_id = (
            self._stores[port].cluster_id(lambda: "none") if self.level >= Level.V0_10_2 else None
        )
        if cluster_id is not None:
            masks[cluster_id.encode()] = b"cluster id"
        with Talk(port, self.level, masks) as talk:
            sequence.script(talk)
        return talk.lines

    def stop(self) -> None:
        for client in self._clients:
            client.close()
        self.ours.kill()
        self.jvm.kill()


def padding_of(topic: str) -> bytes:
    if topic != "strict":
        return entry(0, message(b"", b"k"))
    return entry(0, message(b"", b"k", magic=1, timestamp=int(time.time() * 1000)))


def leading(connection: Connection) -> set[str]:
    """The topics that the broker knows the leaders of."""
    found: Any = connection.send(MetadataRequest([]))
    return {
        topic.topic
        for topic in found.topics
        if topic.partitions and all(p.leader == 1 for p in topic.partitions)
    }


P = TypeVar("P")


@contextmanager
def one_at_a_time(
    new_directory: Callable[[], Path], open_pair: Callable[[Path, Level], AbstractContextManager[P]]
) -> Iterator[Callable[[Level], P]]:
    """Finds the pair of a level. One is running at a time: the tests come level by level."""
    with ExitStack() as stack:
        running: dict[Level, P] = {}

        def find(level: Level) -> P:
            if level not in running:
                stack.close()
                running.clear()
                running[level] = stack.enter_context(open_pair(new_directory(), level))
            return running[level]

        yield find


@contextmanager
def pair_of(directory: Path, level: Level) -> Iterator[Pair]:
    zookeeper = new_zookeeper(directory)
    zookeeper.start()
    pair = Pair(directory, level, zookeeper)
    try:
        pair.start()
        yield pair
    finally:
        pair.stop()
        zookeeper.stop()
