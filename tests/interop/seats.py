"""Seats of a cluster: id, port and log directory, taken by a JVM broker or by ours in turn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from kafka08.admin import AdminClient
from kafka08.embedded.broker import EmbeddedBroker
from kafka08.embedded.embedded_zookeeper import EmbeddedZooKeeper
from kafka08.embedded.ports import free_ports
from kafka08.log.check import check_log
from kafka08.zk.client import ZkClient
from kafka08.zk.store import ClusterStore
from tests.interop.jvm import POM, JvmBroker, JvmZooKeeper, guard, new_zookeeper
from tests.waiting import until

HOST = "127.0.0.1"
CONFIG = {
    "zookeeper.session.timeout.ms": "3000",
    "zookeeper.connection.timeout.ms": "30000",
    "replica.lag.time.max.ms": "2000",
    "offsets.topic.num.partitions": "4",
    "controlled.shutdown.max.retries": "3",
    "controlled.shutdown.retry.backoff.ms": "500",
    "delete.topic.enable": "true",
    # A JVM follower truncates to its high watermark when it learns of a new leader (before 0.11,
    # KIP-101). A preferred replica that is elected five seconds after a change of the controller,
    # and stopped at that moment, is replaced by one that has not copied its messages again.
    "auto.leader.rebalance.enable": "false",
}


class Release(NamedTuple):
    """The brokers of a cluster: the JVM's jars, the level of ours, and keys for all."""

    pom: Path = POM
    level: str = "0.8.2"
    keys: Mapping[str, str] = {}


OF_0_8_2 = Release()


class Seat:
    """Broker `broker_id` of the cluster, whoever it is now: of the cluster's release, unless
    another is given when it is started."""

    def __init__(self, directory: Path, broker_id: int, port: int, cluster: MixedCluster) -> None:
        self.id = broker_id
        self.port = port
        self.logs = directory / f"logs-{broker_id}"
        self._cluster = cluster
        self._directory = directory
        self._jvm = self._make_jvm(cluster.release)
        self._ours = self._make_ours(cluster.release)

    def _keys(self, release: Release) -> dict[str, str]:
        return {**CONFIG, **release.keys, "log.dirs": str(self.logs), "port": str(self.port)}

    def _make_jvm(self, release: Release) -> JvmBroker:
        connect = self._cluster.zookeeper.connect_string
        keys = self._keys(release)
        return JvmBroker(self._directory, self.id, connect, keys, pom=release.pom)

    def _make_ours(self, release: Release) -> EmbeddedBroker:
        return EmbeddedBroker(
            self.id,
            self.port,
            host=HOST,
            directory=self._directory / f"ours-{self.id}",
            zookeeper_connect=self._cluster.zookeeper.connect_string,
            config={**self._keys(release), "api.level": release.level},
            guard=guard(),
        )

    def start_jvm(self, release: Release | None = None) -> None:
        if release is not None:
            self._jvm = self._make_jvm(release)
        # A JVM broker ends at once if a killed process of its id is still registered; ours waits.
        until(lambda: self.id not in self._cluster.store.broker_ids(), "the former session")
        self._jvm.start()
        self._await_registration()

    def start_ours(self, release: Release | None = None) -> None:
        if release is not None:
            self._ours = self._make_ours(release)
        self._ours.start()
        self._await_registration()

    def stop(self) -> None:
        """A clean stop, with a controlled shutdown."""
        (self._jvm if self._jvm.running else self._ours).stop()

    def kill(self) -> None:
        (self._jvm if self._jvm.running else self._ours).kill()

    def pause(self) -> None:
        (self._jvm if self._jvm.running else self._ours.process).pause()

    def resume(self) -> None:
        (self._jvm if self._jvm.running else self._ours.process).resume()

    def end(self) -> None:
        self._jvm.kill()
        self._ours.kill()

    def _await_registration(self) -> None:
        def is_there() -> bool:
            self._ours.check_alive()
            return self.id in self._cluster.store.broker_ids()

        until(is_there, f"broker {self.id} to register")

    def output(self) -> str:
        """The broker's output to its log, all starts together."""
        process = self._jvm if self._jvm.running else self._ours.process
        return process.log.read_text(errors="replace")

    def segments(self, topic: str, partition: int) -> dict[str, bytes]:
        directory = self.logs / f"{topic}-{partition}"
        assert [] == check_log(directory)
        return {path.name: path.read_bytes() for path in sorted(directory.glob("*.log"))}


class MixedCluster:
    """A ZooKeeper and some seats, ids from 1 on."""

    def __init__(
        self,
        directory: Path,
        seats: int,
        release: Release,
        zookeeper: EmbeddedZooKeeper | JvmZooKeeper,
    ) -> None:
        self.release = release
        self.zookeeper = zookeeper
        self.zookeeper.start()
        self._zk = ZkClient(self.zookeeper.connect_string, connection_timeout_ms=30_000)
        self._zk.start()
        self.store = ClusterStore(self._zk)
        self.admin = AdminClient(zk=self._zk)
        ports = free_ports(seats)
        self.seats = [Seat(directory, n, port, self) for n, port in enumerate(ports, 1)]
        self.bootstrap = ",".join(f"{HOST}:{port}" for port in ports)

    def controller(self) -> int | None:
        node = self.store.controller()
        return None if node is None else node.broker_id

    def leaders(self, topic: str) -> set[int | None]:
        [described] = self.admin.describe_topics([topic])
        return {partition.leader for partition in described.partitions}

    def await_isr(self, topic: str, *members: int) -> None:
        """Until these, and no others, are in sync in every partition."""

        def is_so() -> bool:
            [described] = self.admin.describe_topics([topic])
            return all(set(members) == set(p.isr) for p in described.partitions)

        until(is_so, f"the ISR of {topic} to be {members}")

    def await_equal_logs(self, topic: str, partitions: int) -> None:
        """Until all seats have the same bytes."""

        def are_equal() -> bool:
            first, *others = ([s.segments(topic, n) for n in range(partitions)] for s in self.seats)
            return all(first == other for other in others)

        until(are_equal, f"the copies of {topic} to be equal")

    def close(self) -> None:
        for seat in self.seats:
            seat.end()
        self._zk.close()
        self.zookeeper.stop()


@contextmanager
def mixed_cluster(
    directory: Path,
    seats: int,
    release: Release = OF_0_8_2,
    *,
    zookeeper: JvmZooKeeper | None = None,
) -> Iterator[MixedCluster]:
    """zookeeper   None: one of ours"""
    cluster = MixedCluster(directory, seats, release, zookeeper or new_zookeeper(directory))
    try:
        yield cluster
    finally:
        cluster.close()
