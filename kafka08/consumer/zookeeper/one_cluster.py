"""Addresses of brokers and of ZooKeeper that are given together: do they belong to one cluster?

Ids prove nothing, since every cluster begins to count at 0. A broker's id with the address that it
advertises does: it is the same text in the metadata and in the registration.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import closing

from kafka08.consumer.zookeeper.zookeeper_brokers import MakeClient
from kafka08.errors import ConfigError, NoBrokersAvailable
from kafka08.listing import some_of
from kafka08.runtime.transport import Address
from kafka08.structs import host_port
from kafka08.zk.store import ClusterStore

logger = logging.getLogger(__name__)


def addresses_in_cluster(
    store: ClusterStore, bootstrap: Sequence[Address], make_client: MakeClient
) -> list[Address]:
    """The brokers known at `bootstrap` that are registered in the ZooKeeper of `store`. A caller
    uses these, so that a list with brokers of two clusters mixes nothing. While no broker of
    `bootstrap` responds: those registered.

    Raises ConfigError if there is no such broker, NoBrokersAvailable, ZooKeeperError.
    """
    with closing(make_client(bootstrap)) as client:
        try:
            brokers = client.refresh().brokers.values()
        except NoBrokersAvailable as error:
            logger.warning("%s; the brokers registered in ZooKeeper are used", error)
            return store.broker_addresses()
    registered = {
        (broker_id, endpoint.host, endpoint.port)
        for broker_id, registration in store.registrations().items()
        for endpoint in registration.listeners()
    }
    known = [(one.host, one.port) for one in brokers if (one.id, one.host, one.port) in registered]
    if not brokers:
        # Brokers of 0.8 without any topic know no broker, themselves neither.
        addresses = {(host, port) for _, host, port in registered}
        known = [address for address in bootstrap if address in addresses]
    if known:
        return known
    raise ConfigError(
        f"the brokers at {_shown(bootstrap)} do not belong to the cluster of ZooKeeper "
        f"{store.zk.connect}, where {_shown([one[1:] for one in sorted(registered, key=str)])} is "
        "registered: give addresses of one cluster, or that of ZooKeeper alone"
    )


def _shown(addresses: Sequence[tuple[object, object]]) -> str:
    return some_of([host_port(host, port) for host, port in addresses]) or "no broker"
