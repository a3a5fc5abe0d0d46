"""The connections that the tools of this room share: one ZooKeeper session, one client."""

from __future__ import annotations

import socket
from collections.abc import Callable

from kafka08.client import ClusterClient, RetryPolicy, parse_bootstrap
from kafka08.clock import SYSTEM_CLOCK, Clock
from kafka08.consumer.brokers import BootstrapBrokers
from kafka08.consumer.offset_store import KafkaOffsetStore
from kafka08.errors import NoBrokersAvailable
from kafka08.lifecycle import Closeable
from kafka08.zk.client import ZkClient
from kafka08.zk.store import ClusterStore

Connect = Callable[[tuple[str, int], float], socket.socket]

RETRIES = RetryPolicy(tries=50, backoff_ms=200)
"""A coordinator that is loading or moving needs some seconds."""


class Connections(Closeable):
    """Connects at once; raises ZooKeeperError or NoBrokersAvailable. Thread-safe; usable in a
    `with` statement.

    zookeeper   connect string of the cluster
    bootstrap   brokers to begin with; None: those registered in ZooKeeper
    """

    def __init__(
        self,
        zookeeper: str,
        bootstrap: str | None = None,
        *,
        clock: Clock = SYSTEM_CLOCK,
        connect: Connect = socket.create_connection,
    ) -> None:
        self.clock = clock
        self._connect_socket = connect
        self.zk = ZkClient(zookeeper, name="migration")
        self.zk.start()
        self.store = ClusterStore(self.zk)
        try:
            self.cluster = self._connect(bootstrap)
        except BaseException:
            self.zk.close()
            raise

    def _connect(self, bootstrap: str | None) -> ClusterClient:
        if bootstrap is not None:
            addresses = parse_bootstrap(bootstrap)
        else:
            addresses = [(b.host, b.port) for b in self.store.brokers().values()]
        if not addresses:
            raise NoBrokersAvailable("no broker is registered in ZooKeeper")
        return ClusterClient(
            addresses,
            client_id="kafka08-migrate",
            connect=self._connect_socket,
            clock=self.clock,
        )

    def kafka(self, group: str) -> KafkaOffsetStore:
        """The offsets topic, for `group`."""
        brokers = BootstrapBrokers(self.cluster)
        return KafkaOffsetStore(brokers, group, clock=self.clock, backoff_ms=RETRIES.backoff_ms)

    def close(self) -> None:
        self.cluster.close()
        self.zk.close()
