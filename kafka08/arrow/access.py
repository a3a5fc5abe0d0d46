"""Connections of this process to clusters, kept between tasks: Spark reuses its Python workers.

They are closed when the process ends.
"""

from __future__ import annotations

import atexit
import threading
from typing import Final

from kafka08.arrow.settings import ClusterAddress, ReadSettings
from kafka08.client.cluster import ClusterClient
from kafka08.client.pool import ConnectionPool
from kafka08.network.connection import MAX_RESPONSE_BYTES, Connection
from kafka08.zk.client import ZkClient
from kafka08.zk.store import ClusterStore

RESPONSE_OVERHEAD: Final = 64 << 10
"""Room for everything in a Fetch answer of one partition but its messages."""
ZOOKEEPER_TIMEOUT_MS: Final = 10_000

_lock: Final = threading.Lock()
_clusters: Final[dict[tuple[ClusterAddress, ReadSettings], ClusterClient]] = {}
_pools: Final[dict[ReadSettings, ConnectionPool]] = {}


def resolved(address: ClusterAddress) -> ClusterAddress:
    """The same cluster by its brokers' addresses; asks ZooKeeper if that is what is known.

    NoBrokersAvailable if no broker is registered there.
    """
    if address.bootstrap:
        return address
    with ZkClient(
        address.zookeeper,
        session_timeout_ms=ZOOKEEPER_TIMEOUT_MS,
        connection_timeout_ms=ZOOKEEPER_TIMEOUT_MS,
        name="spark",
    ) as zk:
        return ClusterAddress(tuple(ClusterStore(zk).broker_addresses()))


def cluster_at(address: ClusterAddress, settings: ReadSettings) -> ClusterClient:
    """This process's client of the cluster at `address`, which must be resolved."""
    with _lock:
        cluster = _clusters.get((address, settings))
        if cluster is None:
            cluster = _clusters[address, settings] = new_cluster(address, settings)
        return cluster


def fetch_pool(settings: ReadSettings) -> ConnectionPool:
    """Connections for fetches, which take answers as large as the largest message allowed."""
    with _lock:
        pool = _pools.get(settings)
        if pool is None:
            pool = _pools[settings] = new_fetch_pool(settings)
        return pool


def new_cluster(address: ClusterAddress, settings: ReadSettings) -> ClusterClient:
    """A client of the cluster at `address`, which must be resolved. The caller closes it."""
    return ClusterClient(
        address.bootstrap,
        client_id=settings.client_id,
        timeout_ms=settings.socket_timeout_ms,
        retry_policy=settings.retry_policy,
    )


def new_fetch_pool(settings: ReadSettings) -> ConnectionPool:
    """Connections for fetches, as `fetch_pool`. The caller closes it."""
    return ConnectionPool(
        lambda host, port: Connection(
            host,
            port,
            client_id=settings.client_id,
            timeout_ms=settings.socket_timeout_ms,
            receive_buffer=settings.receive_buffer_bytes,
            max_response_bytes=max(
                MAX_RESPONSE_BYTES, settings.max_fetch_bytes + RESPONSE_OVERHEAD
            ),
        )
    )


@atexit.register
def close_all() -> None:
    """Close this process's connections; the next use opens them again."""
    with _lock:
        for cluster in _clusters.values():
            cluster.close()
        for pool in _pools.values():
            pool.close()
        _clusters.clear()
        _pools.clear()
