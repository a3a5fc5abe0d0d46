"""BrokersFromZooKeeper: a consumer's client of the brokers that are registered in ZooKeeper."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from kafka08.client import ClusterClient
from kafka08.errors import Closed
from kafka08.runtime import ClientRuntime
from kafka08.structs import TopicPartition
from kafka08.zk.client import ZkClient
from kafka08.zk.store import ClusterStore

MakeClient = Callable[[Sequence[tuple[str, int]]], ClusterClient]


class BrokersFromZooKeeper:
    """A ClusterClient of the brokers in /brokers/ids, created when it is first needed and created
    again after `renew`, since all brokers may have moved. Thread-safe."""

    def __init__(self, zk: ZkClient, make_client: MakeClient, runtime: ClientRuntime) -> None:
        self._zk = zk
        self._make_client = make_client
        self._lock = runtime.rlock()
        """Re-entrant: a signal handler may close it in a thread that holds it."""
        self._client: ClusterClient | None = None
        self._closed = False

    def client(self) -> ClusterClient:
        """Raises NoBrokersAvailable if none is registered, ZooKeeperError, Closed."""
        with self._lock:
            known = self._known()
        if known is not None:
            return known
        addresses = ClusterStore(self._zk).broker_addresses()
        with self._lock:
            if self._known() is None:  # no other thread was faster
                self._client = self._make_client(addresses)
            assert self._client is not None
            return self._client

    def _known(self) -> ClusterClient | None:
        if self._closed:
            raise Closed("the consumer was shut down")
        return self._client

    def renew(self, stale: ClusterClient) -> None:
        """Read the brokers again at the next use, unless a thread has done so since `stale`."""
        with self._lock:
            if self._client is stale:
                self._client = None
                stale.close()

    def led_by(
        self, broker_id: int, partitions: Collection[TopicPartition]
    ) -> Collection[TopicPartition]:
        """Those that it leads by their states in ZooKeeper. Raises ZooKeeperError."""
        states = ClusterStore(self._zk).leader_and_isr(partitions)
        return [tp for tp, state in states.items() if state.leader == broker_id]

    def close(self) -> None:
        """Close it; a thread that waits for a response gets ConnectionFailed."""
        with self._lock:
            self._closed = True
            if self._client is not None:
                self._client.close()
