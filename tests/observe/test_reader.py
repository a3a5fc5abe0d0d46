"""A reader sends the expected requests to the expected brokers."""

from __future__ import annotations

import json
from contextlib import closing
from threading import Barrier

from kafka08.client import ClusterClient, parse_bootstrap
from kafka08.embedded.ports import free_ports
from kafka08.hashing import group_partition
from kafka08.levels import Level
from kafka08.observe.group_states import without_coordinator
from kafka08.observe.reader import ClusterReader
from kafka08.observe.snapshot import PartitionState
from kafka08.protocol import message_set
from kafka08.protocol.fetch import (
    FetchPartitionResponse,
    FetchRequest,
    FetchResponse,
    FetchTopicResponse,
)
from kafka08.protocol.types import Request, Response
from kafka08.structs import OFFSETS_TOPIC, Broker, LeaderAndIsr, TopicPartition
from kafka08.zk import nodes, paths
from kafka08.zk.client import ZkClient
from kafka08.zk.nodes import BrokerRegistration
from kafka08.zk.store import ClusterStore
from tests.network.scripted import ScriptedNetwork
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


def test_a_broker_that_is_not_registered_leads_nothing(zk_connect: str) -> None:
    """ZooKeeper may name it for as long as no other replica is alive, so the alert of partitions
    without a leader counts on -1. A registered broker without a listener for us leads."""
    with ZkClient(zk_connect, name="brokers") as zk, ClusterReader(zk_connect) as reader:
        store = ClusterStore(zk)
        store.create_common_paths()
        secure = {"version": 2, "host": None, "port": -1, "jmx_port": -1, "timestamp": "0"}
        zk.create(paths.broker(1), json.dumps(secure | {"endpoints": ["SSL://h:9093"]}))
        zk.create(paths.topic("led"), nodes.encode_assignment({0: (1,), 1: (2,)}))
        store.create_leader_and_isr(
            {TopicPartition("led", n): LeaderAndIsr(n + 1, 0, (n + 1,), 0, 1) for n in range(2)}
        )
        view = reader.read_view()
    assert {} == view.brokers
    assert [1, -1] == [view.partitions[TopicPartition("led", n)].leader for n in range(2)]


def test_leaders_are_asked_for_timestamps_side_by_side(zk_connect: str) -> None:
    """Each is asked while the other has not responded yet. A broker before 0.10 has none."""
    both = Barrier(2)

    def respond(request: Request) -> Response:
        both.wait(timeout=60.0)
        assert isinstance(request, FetchRequest)
        data = message_set.encode([(None, b"x")], magic=1, timestamps=[77])
        return FetchResponse(
            [
                FetchTopicResponse(
                    topic.topic,
                    [FetchPartitionResponse(p.partition, 0, 1, data) for p in topic.partitions],
                )
                for topic in request.topics
            ]
        )

    network = ScriptedNetwork(level=Level.V0_10_2)
    hosts = {1: "one", 2: "two", 3: "old"}
    for host in hosts.values():
        network.broker(host, 9092, respond)
    registrations = {
        number: BrokerRegistration(host, 9092, version=2 if host == "old" else 4)
        for number, host in hosts.items()
    }
    views = {
        TopicPartition("t", number): PartitionState(number, (number,), (number,))
        for number in hosts
    }
    client = ClusterClient([("one", 9092)], runtime=network.runtime())
    with closing(client), ClusterReader(zk_connect) as reader:
        found = reader._ask_times(client, registrations, views, dict.fromkeys(views, 0))
    assert {TopicPartition("t", 1): 77, TopicPartition("t", 2): 77} == found
