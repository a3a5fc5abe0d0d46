"""This process's connections to clusters, kept open between tasks: Spark reuses its Python workers.

They are closed when the process ends.
"""

from __future__ import annotations

import atexit
import logging
import threading
from collections.abc import Callable, Hashable
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Final, TypeVar

from kafka08.arrow.settings import ClusterAddress, ReadSettings
from kafka08.client.cluster import ClusterClient
from kafka08.client.metadata import ClusterMetadata
from kafka08.client.pool import ConnectionPool
from kafka08.client.retry import RetryPolicy, retry
from kafka08.config import INT_MAX
from kafka08.errors import ClientError, NoBrokersAvailable, ProtocolError
from kafka08.lifecycle import in_forked_processes
from kafka08.network.connection import Connection
from kafka08.protocol.version_ranges import OF_0_8
from kafka08.runtime import Buffers
from kafka08.structs import Broker

logger = logging.getLogger(__name__)

TopicFilter = Callable[[str], bool]
Kept = TypeVar("Kept", ClusterClient, ConnectionPool)

RESPONSE_OVERHEAD: Final = 4 << 20
"""Bytes of a Fetch response of one partition without its messages, at most: of committed messages
it names the aborted transactions."""
ZOOKEEPER_TIMEOUT_MS: Final = 10_000

KEPT: Final = 8
"""Clients, and as many pools, of which a process keeps the connections open: those used last. A
driver that lives for weeks may name many clusters and client ids."""
lost_leaders: Final[set[Broker]] = set()
"""Leaders at which reads of this process have failed: see RangeReader."""


class _Connections:
    """The connections of one process, by what they are for."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.clusters: dict[Hashable, ClusterClient] = {}
        self.pools: dict[Hashable, ConnectionPool] = {}


_open = _Connections()


@in_forked_processes
def _begin() -> None:
    """A forked process opens its own connections."""
    global _open
    _open = _Connections()


def resolved(
    address: ClusterAddress, settings: ReadSettings, is_used: TopicFilter = lambda _: True
) -> ClusterAddress:
    """The same cluster by its brokers' addresses, and whether they tell their versions; asks
    ZooKeeper and the brokers for what is not known.

    is_used   whether a topic is read or written: the leaders of such topics count alone
    NoBrokersAvailable if no broker is registered there, or none responds.
    """
    if not address.bootstrap:
        address = replace(address, bootstrap=_registered(address.zookeeper, settings))
    if address.negotiates is None:
        address = replace(address, negotiates=_tell_versions(address, settings, is_used))
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


def _tell_versions(address: ClusterAddress, settings: ReadSettings, is_used: TopicFilter) -> bool:
    """Whether none of the leaders is one of 0.8, which closes a connection that asks for versions.
    They are asked side by side; without a leader all brokers are. This is the first contact, where
    addresses may be wrong: NoBrokersAvailable if none responds for as long as `looks` last."""
    with (
        closing(new_cluster(address, settings)) as cluster,
        settings.deadline(cluster.clock),
    ):
        policy = RetryPolicy(settings.looks + 1, settings.retry_interval_ms)
        metadata = refreshed(cluster, policy, what="listing the brokers")
        leaders = {
            partition.leader
            for topic, info in metadata.topics.items()
            if is_used(topic)
            for partition in info.partitions
        }
        brokers = metadata.brokers
        used = [brokers[number] for number in leaders & brokers.keys()] or brokers.values()
        if address.secrets:
            return True  # brokers of 0.8 have neither TLS nor SASL
        asked = {(broker.host, broker.port) for broker in used} or set(address.bootstrap)
        return not any(
            cluster.run_concurrently([partial(_is_of_0_8, *broker, settings) for broker in asked])
        )


def refreshed(cluster: ClusterClient, policy: RetryPolicy, what: str) -> ClusterMetadata:
    """The metadata of all topics. Tried again while no broker responds."""
    return retry(
        cluster.refresh,
        policy,
        cluster.clock,
        what=what,
        passes=lambda error: isinstance(error, NoBrokersAvailable),
    )


def _is_of_0_8(host: str, port: int, settings: ReadSettings) -> bool:
    """Whether the broker closes connections that ask for versions, and no others: looked at twice,
    since one that is stopping does so once. False of one that is down or does not respond: it may
    be of any release when it is back."""
    return all(_closes_at_versions(host, port, settings) for _ in range(2))


def _closes_at_versions(host: str, port: int, settings: ReadSettings) -> bool:
    with Connection(
        host,
        port,
        client_id=settings.client_id,
        timeout_ms=settings.socket_timeout_ms,
        negotiates=True,
        accepts_0_8=True,
    ) as connection:
        try:
            connection.open()
        except (ClientError, ProtocolError) as error:
            logger.debug("%s:%d does not say its versions: %s", host, port, error)
            return False
        return connection.versions is OF_0_8


def cluster_at(
    address: ClusterAddress, settings: ReadSettings, *, creates_topics: bool = False
) -> ClusterClient:
    """This process's client of the cluster at `address`, which must be resolved. `creates_topics`:
    for writes, see ClusterClient."""
    return _kept(
        _open.clusters,
        (address, settings, creates_topics),
        lambda: new_cluster(address, settings, creates_topics=creates_topics),
    )


def fetch_pool(address: ClusterAddress, settings: ReadSettings) -> ConnectionPool:
    """This process's connections for fetches from a cluster, see `new_fetch_pool`."""
    return _kept(
        _open.pools,
        (address.negotiates, address.secrets, settings),
        lambda: new_fetch_pool(address, settings),
    )


def _kept(known: dict[Hashable, Kept], key: Hashable, make: Callable[[], Kept]) -> Kept:
    """The one of this key in `known`, or a new one. Of more than KEPT the one used longest ago is
    forgotten: its idle connections are closed, and whoever still has it can go on."""
    with _open.lock:
        found = known.pop(key, None) or make()
        known[key] = found
        forgotten = known.pop(next(iter(known))) if len(known) > KEPT else None
    if forgotten is not None:
        forgotten.close_idle()
    return found


def new_cluster(
    address: ClusterAddress, settings: ReadSettings, *, creates_topics: bool = False
) -> ClusterClient:
    """A client of the cluster at `address`, which must be resolved. The caller closes it."""
    return ClusterClient(
        address.bootstrap,
        client_id=settings.client_id,
        timeout_ms=settings.socket_timeout_ms,
        retry_policy=settings.retry_policy,
        negotiates=bool(address.negotiates),
        security=address.security,
        creates_topics=creates_topics,
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
            buffers=Buffers(receive=settings.receive_buffer_bytes),
            max_response_bytes=min(
                max(settings.fetch_bytes, settings.max_fetch_bytes) + RESPONSE_OVERHEAD, INT_MAX
            ),
            negotiates=bool(address.negotiates),
            security=address.security,
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
