"""A reader sends the expected requests to the expected brokers."""

from __future__ import annotations

from kafka08.client import parse_bootstrap
from kafka08.embedded.ports import free_ports
from kafka08.exporter.reader import ClusterReader, without_coordinator
from kafka08.hashing import group_partition
from kafka08.structs import OFFSETS_TOPIC, Broker, TopicPartition
from kafka08.zk import paths
from kafka08.zk.client import ZkClient
from kafka08.zk.store import ClusterStore
from tests.producer.tcp_cluster import TcpCluster

GROUPS = [f"group-{n}" for n in range(20)]


def test_groups_whose_coordinator_is_down_are_not_requested() -> None:
    """The leaders of the offsets topic show which ones; the other groups are requested, and all of
    them if there is no such topic."""
    led = [TopicPartition(OFFSETS_TOPIC, n) for n in range(4) if n != 2]
    led.append(TopicPartition("t", 2))
    silent = without_coordinator(GROUPS, 4, led)
    assert {2} == {group_partition(group, 4) for group in silent}
    assert {0, 1, 3} == {group_partition(group, 4) for group in set(GROUPS) - set(silent)}
    assert [] == without_coordinator(GROUPS, 0, led)


def test_brokers_that_moved_together_are_found_again(zk_connect: str) -> None:
    """All brokers come back at other addresses, as after a restart in new containers: the next view
    asks those that are registered by then."""
    with ZkClient(zk_connect, name="brokers") as zk, ClusterReader(zk_connect) as reader:
        store = ClusterStore(zk)
        store.create_common_paths()
        [gone] = free_ports(1)
        store.register_broker(Broker(1, "127.0.0.1", gone), timestamp_ms=0)
        assert reader.read_view().failed_requests[0].startswith("brokers: ")
        zk.delete(paths.broker(1))
        with TcpCluster({"t": {0: 1}}, (1,)) as cluster:
            [(host, port)] = parse_bootstrap(cluster.servers)
            store.register_broker(Broker(1, host, port), timestamp_ms=0)
            assert () == reader.read_view().failed_requests
