"""Three brokers of one kind below a ZooKeeper chroot of their own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from benchmarks.subjects import JvmSubject, OurSubject, await_leaders, cpu_seconds
from kafka08.admin import AdminClient
from kafka08.structs import TopicPartition
from kafka08.zk.client import ZkClient
from kafka08.zk.store import ClusterStore
from tests.interop.jvm import POM

BROKERS = (1, 2, 3)
HEAP = "512m"
CREATION_S = 120.0
"""Longest wait for a new topic; 0.8.2.2 needs a while for a thousand partitions."""

Broker = JvmSubject | OurSubject


class Cluster:
    """Three brokers. name: `jvm` or `ours`, which says whose; settings: keys that all of them get;
    records_turns: ours record the long turns of their event loops (turns.py).

    zookeeper   connect string with this cluster's chroot
    brokers     broker id - 1 → broker
    """

    def __init__(
        self,
        name: str,
        directory: Path,
        zookeeper: str,
        settings: Mapping[str, str],
        *,
        records_turns: bool = False,
        pom: Path = POM,
    ) -> None:
        self.name = name
        self._pom = pom
        self._records_turns = records_turns
        self.zookeeper = zookeeper
        self.brokers = [self._broker(directory / f"{name}-{n}", n, settings) for n in BROKERS]

    def _broker(self, directory: Path, number: int, settings: Mapping[str, str]) -> Broker:
        if self.name == "jvm":
            return JvmSubject(
                directory, self.zookeeper, settings, broker_id=number, heap=HEAP, pom=self._pom
            )
        return OurSubject(
            directory,
            self.zookeeper,
            settings,
            broker_id=number,
            records_turns=self._records_turns,
        )

    def start(self) -> None:
        for broker in self.brokers:
            broker.start()

    def kill(self) -> None:
        for broker in self.brokers:
            broker.kill()

    def broker(self, broker_id: int) -> Broker:
        return self.brokers[broker_id - 1]

    def create_topic(self, topic: str, assignment: Mapping[int, tuple[int, ...]] | int) -> None:
        """Create a topic, of so many partitions with three replicas or as assigned, and wait until
        every broker knows all its leaders."""
        with AdminClient(self.zookeeper) as admin:
            if isinstance(assignment, int):
                assignment = admin.create_topic(topic, assignment, len(BROKERS))
            else:
                admin.create_topic(topic, assignment=assignment)
        for broker in self.brokers:
            await_leaders(broker, topic, len(assignment), CREATION_S)

    def leaders(self, topic: str) -> list[Broker]:
        """The leader of each partition."""
        with ZkClient(self.zookeeper) as zk:
            store = ClusterStore(zk)
            partitions = [TopicPartition(topic, number) for number in store.assignment(topic) or ()]
            states = store.leader_and_isr(partitions)
        return [self.broker(states[tp].leader) for tp in partitions]

    def cpu_seconds(self) -> float:
        return sum(cpu_seconds(broker.pid) for broker in self.brokers)
