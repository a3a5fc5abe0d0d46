"""The connections that the tools of this room share: one ZooKeeper session, one client."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from kafka08.client import PLAINTEXT, ClusterClient, Security, parse_bootstrap
from kafka08.client.cluster import SILENT_S
from kafka08.client.coordinators import Check, Coordinators
from kafka08.client.log_offsets import offsets_at
from kafka08.consumer.fetching.brokers import BootstrapBrokers
from kafka08.consumer.simple import SimpleConsumer
from kafka08.consumer.zookeeper.offset_store import KafkaOffsetStore, Offsets
from kafka08.consumer.zookeeper.one_cluster import addresses_in_cluster
from kafka08.consumer.zookeeper.session import SessionGate
from kafka08.errors import UnsupportedVersion
from kafka08.lifecycle import Closeable
from kafka08.observe.coordinated import CoordinatedGroup
from kafka08.observe.coordinator_reader import CoordinatorReader, may_coordinate
from kafka08.observe.layout import FIRST_COORDINATING
from kafka08.observe.reader import ClusterReader
from kafka08.observe.snapshot import ClusterView
from kafka08.runtime import ClientRuntime
from kafka08.runtime.threads import THREADS
from kafka08.runtime.transport import Address
from kafka08.structs import OFFSETS_TOPIC, Broker, TopicPartition
from kafka08.zk import paths
from kafka08.zk.client import ZkClient
from kafka08.zk.store import ClusterStore

CLIENT_ID: Final = "kafka08-migrate"
BACKOFF_MS: Final = 200
"""Between two requests to a coordinator that is loading or moving."""
SOON_S: Final = 3.0


class Interrupted(Exception):
    """The command was interrupted: what a thread of it had begun ends here, and enters no state."""


class Connections(Closeable):
    """Connects at once; raises ZooKeeperError or NoBrokersAvailable. Thread-safe; usable in a
    `with` statement.

    zookeeper   connect string of the cluster; None: what `zk` and `store` read is not needed, as
                for the offsets of groups that have a coordinator
    bootstrap   brokers to begin with, of the same cluster; None: those registered in ZooKeeper.
                ConfigError if they are not those of `zookeeper`
    is_patient  as ZkClient's
    security    of the connections to brokers
    """

    def __init__(
        self,
        zookeeper: str | None,
        bootstrap: str | None = None,
        security: Security = PLAINTEXT,
        *,
        is_patient: bool = True,
        runtime: ClientRuntime = THREADS,
    ) -> None:
        self.runtime = runtime
        self._security = security
        self._is_interrupted = False
        self._store: ClusterStore | None = None
        if zookeeper is not None:
            zk = ZkClient(
                zookeeper,
                adapter=runtime.zookeeper,
                name="migration",
                is_patient=is_patient,
                clock=runtime,
            )
            zk.start()
            self._store = ClusterStore(zk)
        try:
            self.cluster = self._connect(bootstrap)
        except BaseException:
            self._close_zookeeper()
            raise
        self.coordinators = Coordinators(self.cluster, runtime)
        """The offsets topic, for many groups at once."""
        self.groups = CoordinatorReader(self.cluster, runtime)
        """Groups as their coordinators know them."""
        self._reader = ClusterReader(None, lent=(self._store, self.cluster), runtime=runtime)

    def read_groups(
        self, groups: Sequence[str], also: Mapping[str, Collection[TopicPartition]] = {}
    ) -> ClusterView:
        """A snapshot of these groups, strictly. Raises ZooKeeperError."""
        return self._reader.read_groups(groups, also, strictly=self.coordinators)

    def wait_less(self) -> None:
        """For a user at a terminal: a coordinator that is missing although the offsets topic exists
        is waited for only SOON_S, for its partition has no leader; a broker that does not respond
        only once."""
        self.cluster.silent_s = SILENT_S
        if self.has_offsets_topic():
            self.coordinators = Coordinators(self.cluster, self.runtime, timeout_s=SOON_S)

    @property
    def has_zookeeper(self) -> bool:
        return self._store is not None

    def has_offsets_topic(self) -> bool:
        """Whether the offsets topic exists. Otherwise Kafka has no offsets, and a search for a
        coordinator would create it."""
        if self._store is not None:
            return self._store.zk.exists(paths.topic(OFFSETS_TOPIC))
        return self.groups.has_offsets_topic()

    def interrupt(self) -> None:
        """End the steps of all threads at their next wait, write or state."""
        self._is_interrupted = True

    def check_interrupt(self) -> None:
        if self._is_interrupted:
            raise Interrupted

    def pause(self, seconds: float) -> None:
        """Sleep. Raises Interrupted."""
        self.check_interrupt()
        self.runtime.sleep(seconds)
        self.check_interrupt()

    def gate(self) -> Check:
        """A check for writes to Kafka, which raises SessionLost once the ZooKeeper session of now
        may be over: another tool may work then. Without ZooKeeper there is no session to lose.
        Raises Interrupted too."""
        if self._store is None:
            return self.check_interrupt
        gate = SessionGate(self.zk, self.zk.clock)
        gate.admit_session(self.zk.session_id)

        def check() -> None:
            self.check_interrupt()
            gate.check()

        return check

    @property
    def store(self) -> ClusterStore:
        assert self._store is not None, "made without ZooKeeper"
        return self._store

    @property
    def zk(self) -> ZkClient:
        return self.store.zk

    def _connect(self, bootstrap: str | None) -> ClusterClient:
        if bootstrap is None:
            addresses = self.store.broker_addresses()
        else:
            addresses = parse_bootstrap(bootstrap)
            if self._store is not None:
                addresses = addresses_in_cluster(self._store, addresses, self._client)
        self._addresses = addresses
        return self._client(addresses)

    def _client(self, addresses: Sequence[Address]) -> ClusterClient:
        # Brokers of 0.8 that ZooKeeper has are not asked, except one that is downgraded later.
        asks_versions = self._store is None
        if self._store is not None:
            brokers = self._store.registrations(faults={}).values()
            asks_versions = min((b.version for b in brokers), default=0) >= FIRST_COORDINATING
        return ClusterClient(
            addresses,
            client_id=CLIENT_ID,
            negotiates=asks_versions,
            accepts_0_8=True,
            security=self._security,
            runtime=self.runtime,
        )

    def offsets_at(
        self, partitions: Collection[TopicPartition], time_ms: int
    ) -> tuple[Offsets, list[TopicPartition]]:
        """`log_offsets.offsets_at`: brokers before 0.10.1 do not serve it, nor those of topics
        that store no timestamps."""
        if not self.may_coordinate():
            raise UnsupportedVersion(
                "brokers of 0.8 find no message by its timestamp; give offsets, earliest or latest"
            )
        cluster = ClusterClient(
            self._addresses,
            client_id=CLIENT_ID,
            negotiates=True,
            security=self._security,
            runtime=self.runtime,
        )
        try:
            return offsets_at(cluster, partitions, time_ms)
        finally:
            cluster.close()

    def coordinated(self, group: str) -> CoordinatedGroup | None:
        """The group at its coordinator; None if that knows none of this name, and in a cluster of
        0.8. Raises KafkaError if it does not respond."""
        return self.groups.describe(group) if self.may_coordinate() else None

    def assigned(self, topics: Collection[str]) -> Mapping[str, Collection[int]]:
        """topic → its partitions. All topics are asked for where one that does not exist might be
        created. Raises ZooKeeperError, NoBrokersAvailable."""
        if self._store is not None:
            return self._store.assignments(topics)
        found = self.cluster.refresh().topics
        return {name: [p.partition for p in info.partitions] for name, info in found.items()}

    def may_coordinate(self) -> bool:
        """Whether a broker may know members; those of 0.8 know none."""
        return self._store is None or may_coordinate(self._store)

    def kafka(self, group: str) -> KafkaOffsetStore:
        """The offsets topic, for `group`, as a member sees it."""
        brokers = BootstrapBrokers(self.cluster)
        return KafkaOffsetStore(brokers, group, clock=self.runtime, backoff_ms=BACKOFF_MS)

    def reader(self, broker: Broker) -> SimpleConsumer:
        """A consumer that reads from logs; the caller closes it."""
        return SimpleConsumer(broker.host, broker.port, runtime=self.runtime)

    def close(self) -> None:
        self.cluster.close()
        self._close_zookeeper()

    def _close_zookeeper(self) -> None:
        if self._store is not None:
            self._store.zk.close()
