"""This process's connections to clusters, kept open between tasks: Spark reuses its Python workers.

They are closed when the process ends.
"""

from __future__ import annotations

import atexit
import logging
import threading
from contextlib import closing
from dataclasses import replace
from typing import Final

from kafka08.arrow.settings import ClusterAddress, ReadSettings
from kafka08.client.cluster import ClusterClient
from kafka08.client.pool import ConnectionPool
from kafka08.client.requests import offsets_request
from kafka08.client.retry import retry
from kafka08.clock import SYSTEM_CLOCK
from kafka08.errors import ClientError, NoBrokersAvailable, ProtocolError
from kafka08.lifecycle import in_forked_processes
from kafka08.network.connection import MAX_RESPONSE_BYTES, Connection
from kafka08.structs import Broker

logger = logging.getLogger(__name__)

RESPONSE_OVERHEAD: Final = 64 << 10
"""Bytes of a Fetch response of one partition without its messages, at most."""
ZOOKEEPER_TIMEOUT_MS: Final = 10_000

lost_leaders: Final[set[Broker]] = set()
"""Leaders at which reads of this process have failed: see RangeReader."""


class _Connections:
    """The connections of one process, by what they are for."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.clusters: dict[tuple[ClusterAddress, ReadSettings], ClusterClient] = {}
        self.pools: dict[tuple[bool | None, ReadSettings], ConnectionPool] = {}


_open = _Connections()


@in_forked_processes
def _begin() -> None:
    """A forked process opens its own connections."""
    global _open
    _open = _Connections()


def resolved(address: ClusterAddress, settings: ReadSettings) -> ClusterAddress:
    """The same cluster by its brokers' addresses, and whether they tell their versions; asks
    ZooKeeper and the brokers for what is not known.

    NoBrokersAvailable if no broker is registered there, or none responds.
    """
    if not address.bootstrap:
        address = replace(address, bootstrap=_registered(address.zookeeper, settings))
    if address.negotiates is None:
        address = replace(address, negotiates=_tell_versions(address, settings))
    return address


def _registered(zookeeper: str, settings: ReadSettings) -> tuple[tuple[str, int], ...]:
    """The addresses of the brokers that are registered at a connect string."""
    from kafka08.zk.client import ZkClient  # most reads know their brokers
    from kafka08.zk.store import ClusterStore

    with ZkClient(
        zookeeper,
        session_timeout_ms=ZOOKEEPER_TIMEOUT_MS,
        connection_timeout_ms=ZOOKEEPER_TIMEOUT_MS,
        name=settings.client_id,
    ) as zk:
        return tuple(ClusterStore(zk).broker_addresses())


def _tell_versions(address: ClusterAddress, settings: ReadSettings) -> bool:
    """Whether no live broker is one of 0.8, which closes a connection that asks for versions."""
    with closing(new_cluster(address, settings)) as cluster:
        metadata = retry(
            cluster.refresh,
            settings.retry_policy,
            SYSTEM_CLOCK,
            what="listing the brokers",
            passes=lambda error: isinstance(error, NoBrokersAvailable),
        )
    listed = {(broker.host, broker.port) for broker in metadata.brokers.values()}
    return not any(_is_of_0_8(*broker, settings) for broker in listed or address.bootstrap)


def _is_of_0_8(host: str, port: int, settings: ReadSettings) -> bool:
    """Whether the broker closes connections that ask for versions, and no others. False of one that
    is down: it may be of any release when it is back."""
    for _ in range(2):
        if _responds(host, port, settings, negotiates=True):
            return False
        if not _responds(host, port, settings, negotiates=False):
            return False
    return True


def _responds(host: str, port: int, settings: ReadSettings, *, negotiates: bool) -> bool:
    """Whether the broker responds on a new connection, which asks for its versions or does not."""
    with Connection(
        host,
        port,
        client_id=settings.client_id,
        timeout_ms=settings.socket_timeout_ms,
        negotiates=negotiates,
    ) as connection:
        try:
            connection.send(offsets_request({}))
        except (ClientError, ProtocolError) as error:
            logger.debug("%s:%d, negotiates=%s: %s", host, port, negotiates, error)
            return False
    return True


def cluster_at(address: ClusterAddress, settings: ReadSettings) -> ClusterClient:
    """This process's client of the cluster at `address`, which must be resolved."""
    with _open.lock:
        cluster = _open.clusters.get((address, settings))
        if cluster is None:
            cluster = _open.clusters[address, settings] = new_cluster(address, settings)
        return cluster


def fetch_pool(address: ClusterAddress, settings: ReadSettings) -> ConnectionPool:
    """This process's connections for fetches from a cluster, see `new_fetch_pool`."""
    with _open.lock:
        pool = _open.pools.get((address.negotiates, settings))
        if pool is None:
            pool = _open.pools[address.negotiates, settings] = new_fetch_pool(address, settings)
        return pool


def new_cluster(address: ClusterAddress, settings: ReadSettings) -> ClusterClient:
    """A client of the cluster at `address`, which must be resolved. The caller closes it."""
    return ClusterClient(
        address.bootstrap,
        client_id=settings.client_id,
        timeout_ms=settings.socket_timeout_ms,
        retry_policy=settings.retry_policy,
        negotiates=bool(address.negotiates),
    )


def new_fetch_pool(address: ClusterAddress, settings: ReadSettings) -> ConnectionPool:
    """Connections for fetches, which take responses as large as the largest message allowed. The
    caller closes it."""
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
            negotiates=bool(address.negotiates),
        )
    )


@atexit.register
def close_all() -> None:
    """Close this process's connections; the next use opens them again."""
    with _open.lock:
        for cluster in _open.clusters.values():
            cluster.close()
        for pool in _open.pools.values():
            pool.close()
        _open.clusters.clear()
        _open.pools.clear()
