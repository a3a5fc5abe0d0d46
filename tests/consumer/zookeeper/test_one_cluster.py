"""Addresses of brokers and of ZooKeeper that do not belong together."""

from __future__ import annotations

import pytest

from kafka08.admin.connections import Connections
from kafka08.errors import ConfigError
from kafka08.groups import GroupReader
from kafka08.structs import Broker
from kafka08.zk.client import ZkClient
from kafka08.zk.store import ClusterStore
from tests.consumer.store_cluster import HOST, PORT, StoreCluster


@pytest.mark.parametrize("of_both", [Connections, GroupReader])
def test_brokers_of_another_cluster_are_refused(
    zk: ZkClient, zk_connect: str, of_both: type[Connections | GroupReader]
) -> None:
    """A cluster's ids begin at 0 as another's do: the broker 1 of ZooKeeper has another address
    than the broker 1 that responds. Both addresses are named. (`migrate start` copied one cluster's
    offsets into the other one.)"""
    ClusterStore(zk).register_broker(Broker(1, "elsewhere", PORT), timestamp_ms=0)
    with pytest.raises(ConfigError) as refused:
        of_both(zk_connect, f"{HOST}:{PORT}", runtime=StoreCluster().runtime)
    assert f"the brokers at {HOST}:{PORT} do not belong to the cluster" in str(refused.value)
    assert f"elsewhere:{PORT} is registered" in str(refused.value)


def test_brokers_of_two_clusters_in_one_list(zk: ZkClient, zk_connect: str) -> None:
    """Only those that are registered in this ZooKeeper are asked from then on, so no request can
    go to the other cluster."""
    cluster = StoreCluster()
    cluster.create_topic(zk, "t", 1)
    bootstrap = f"{HOST}:{PORT},elsewhere:{PORT}"
    with Connections(zk_connect, bootstrap, runtime=cluster.runtime) as connections:
        assert [(b.host, b.port) for b in connections.cluster.brokers()] == [(HOST, PORT)]
        cluster.network.broker("elsewhere", PORT, cluster.respond)
        for _ in range(20):
            connections.cluster.refresh()
        assert "elsewhere" not in {host for host, _ in cluster.network.opened}


def test_brokers_that_do_not_respond(zk: ZkClient, zk_connect: str) -> None:
    """Those that are registered are used, so ZooKeeper can be read while Kafka is down."""
    cluster = StoreCluster()
    cluster.create_topic(zk, "t", 1)
    with Connections(zk_connect, f"gone:{PORT}", runtime=cluster.runtime) as connections:
        assert [(b.host, b.port) for b in connections.cluster.brokers()] == [(HOST, PORT)]
