"""Faults of an embedded cluster, each by one line, and that they are mended."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from kafka08.client import ClusterClient
from kafka08.client.bootstrap import parse_bootstrap
from kafka08.consumer import SimpleConsumer
from kafka08.embedded import EmbeddedCluster
from kafka08.embedded.damage import corrupt_tail
from kafka08.errors import ConnectionFailed, KafkaError, RequestTimeout
from kafka08.log.check import check_log
from kafka08.network.connection import Connection
from kafka08.producer import KeyedMessage, Producer, ProducerConfig
from kafka08.protocol.metadata import MetadataRequest
from kafka08.structs import LATEST_OFFSET, TopicPartition
from kafka08.zk.client import ZkClient
from kafka08.zk.store import ClusterStore
from tests.waiting import until


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    keys = {"zookeeper.session.timeout.ms": 3000}
    with EmbeddedCluster(brokers=2, config=keys, cuttable=True) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def healed(cluster: EmbeddedCluster) -> Iterator[None]:
    yield
    cluster.heal()
    cluster.check_alive()


def registered(cluster: EmbeddedCluster) -> list[int]:
    with ZkClient(cluster.zookeeper.connect_string) as zk:
        return ClusterStore(zk).broker_ids()


def send(cluster: EmbeddedCluster, topic: str, count: int) -> None:
    config = ProducerConfig(metadata_broker_list=cluster.bootstrap, request_required_acks=1)
    with Producer(config) as producer:
        producer.send([KeyedMessage(topic, b"message %d" % n) for n in range(count)])


def test_a_killed_brokers_session_ends_at_once(cluster: EmbeddedCluster) -> None:
    """kill ends the broker's session too; heal starts it again at its address with its data."""
    cluster.create_topic("killed")
    send(cluster, "killed", 3)
    leader = cluster.leader_of("killed")
    cluster.kill(leader)
    assert registered(cluster) == [1 - leader.id]
    cluster.heal()
    assert registered(cluster) == [0, 1]
    assert end_of(cluster, "killed") == 3


def test_a_healed_cluster_leads_all_partitions(cluster: EmbeddedCluster) -> None:
    """heal returns when the broker leads its partitions again. (It returned when the broker was
    registered, which is before that if it has many.)"""
    cluster.create_topic("many", partitions=1000)
    partitions = [TopicPartition("many", number) for number in range(1000)]
    with ZkClient(cluster.zookeeper.connect_string) as zk:
        cluster.kill(1)
        cluster.heal()
        states = ClusterStore(zk).leader_and_isr(partitions)
    assert {state.leader for state in states.values()} == {0, 1}


def end_of(cluster: EmbeddedCluster, topic: str) -> int:
    try:
        leader = cluster.leader_of(topic)
        with SimpleConsumer(leader.host, leader.port) as consumer:
            return consumer.earliest_or_latest(TopicPartition(topic, 0), LATEST_OFFSET)
    except KafkaError:
        return -1


def test_a_broker_whose_session_expired_registers_again(cluster: EmbeddedCluster) -> None:
    """The server ends the session; the broker notices, logs it and registers again."""
    broker = cluster.brokers[1]
    position = broker.process.log_size
    cluster.expire_session(broker)
    until(lambda: registered(cluster) == [0, 1], "it registered again")
    said = "done re-registering broker"
    until(lambda: said in broker.process.logged_since(position, 1000), "it says so")


def test_heal_waits_for_a_broker_whose_session_expired(cluster: EmbeddedCluster) -> None:
    """After heal the broker is registered for the next test."""
    cluster.expire_session(1)
    cluster.heal()
    assert registered(cluster) == [0, 1]


def test_a_disconnected_broker_is_isolated(cluster: EmbeddedCluster) -> None:
    """Clients get no response and ZooKeeper ends the session. After restore the response arrives
    over the same connection, since no byte was lost."""
    cluster.create_topic("cut")
    leader = cluster.leader_of("cut")
    tp = TopicPartition("cut", 0)
    with SimpleConsumer(leader.host, leader.port, timeout_ms=2000) as consumer:
        assert consumer.earliest_or_latest(tp, LATEST_OFFSET) == 0
        cluster.cut(leader)
        with pytest.raises(RequestTimeout):
            consumer.earliest_or_latest(tp, LATEST_OFFSET)
        until(lambda: registered(cluster) == [1 - leader.id], "its session ended")
        assert leader.running
    cluster.restore(leader)
    until(lambda: registered(cluster) == [0, 1], "it is back")
    until(lambda: end_of(cluster, "cut") == 0, "it serves")


def test_other_connections_survive_a_cut(cluster: EmbeddedCluster) -> None:
    """Only connections to and from the disconnected broker wait."""
    other = cluster.brokers[1]
    cluster.cut(0)
    client = ClusterClient(parse_bootstrap(f"{other.host}:{other.port}"))
    client.refresh()
    client.close()
    assert 1 in registered(cluster)


def test_connections_that_are_reset_fail_and_new_ones_work(cluster: EmbeddedCluster) -> None:
    """reset closes connections of one broker, blocked ones included; those of the other broker
    stay."""
    connections = [Connection(broker.host, broker.port) for broker in cluster.brokers]
    with connections[0] as reset, connections[1] as other:
        for connection in connections:
            connection.send(MetadataRequest([]))
        cluster.cut(0)
        reset.write(MetadataRequest([]))
        cluster.reset_connections(0)
        with pytest.raises(ConnectionFailed, match="reset"):
            reset.read_response()
        cluster.restore(0)
        reset.send(MetadataRequest([]))
        assert not other.is_stale()


def test_a_paused_broker_is_resumed_by_heal(cluster: EmbeddedCluster) -> None:
    """pause makes the broker lose its session, heal resumes it."""
    cluster.pause(1)
    until(lambda: registered(cluster) == [0], "its session ended")
    cluster.heal()
    until(lambda: registered(cluster) == [0, 1], "it registered again")


def test_a_broker_that_there_is_not_is_named(cluster: EmbeddedCluster) -> None:
    """An id that no broker has is an error that lists those there are, for every fault: -1 is not
    the last broker."""
    for call in (cluster.kill, cluster.pause, cluster.cut, cluster.restart):
        for wrong in (9, -1):
            with pytest.raises(KafkaError, match=f"no broker {wrong}; the cluster has: 0, 1"):
                call(wrong)
    assert all(broker.running for broker in cluster.brokers)


def test_a_broker_is_restarted_by_its_id(cluster: EmbeddedCluster) -> None:
    """`restart` takes an id as the other calls do, and the broker is another process."""
    before = cluster.brokers[1].process.pid
    cluster.restart(1)
    assert cluster.brokers[1].process.pid not in {None, before}


def test_a_damaged_tail_is_truncated_at_the_next_start(cluster: EmbeddedCluster) -> None:
    """The check finds the damage; recovery after kill -9 keeps all messages before it."""
    cluster.create_topic("damaged")
    for _ in range(3):
        send(cluster, "damaged", 1)
    leader = cluster.leader_of("damaged")
    cluster.kill(leader)
    path = cluster.corrupt_tail(leader, "damaged", size=4)
    assert check_log(path.parent)
    cluster.heal()
    until(lambda: end_of(cluster, "damaged") == 2, "the last message is gone")
    assert not check_log(path.parent)
    with pytest.raises(KafkaError, match="fewer than 1000000 bytes"):
        corrupt_tail(path.parent, 1_000_000)
    with pytest.raises(KafkaError, match="size: 0 is not a number of bytes"):
        corrupt_tail(path.parent, 0)
    with pytest.raises(KafkaError, match=r"no directory of \[nothing,0\]"):
        cluster.corrupt_tail(leader, "nothing")


@pytest.mark.parametrize("fault", ["pause", "kill"])
def test_heal_restores_zookeeper(fault: str) -> None:
    """ZooKeeper returns on its port with its data, and the broker keeps its session, although
    ZooKeeper was away for longer than it lasts: the broker has as long again to return."""
    session_s = 5.0
    keys = {"zookeeper.session.timeout.ms": int(1000 * session_s)}
    with EmbeddedCluster(brokers=1, config=keys) as cluster:
        cluster.create_topic("before")
        getattr(cluster.zookeeper.process, fault)()
        time.sleep(1.5 * session_s)
        cluster.heal()
        assert registered(cluster) == [0]
        cluster.create_topic("after")
        assert "re-registering" not in cluster.brokers[0].process.log.read_text()


def test_cut_needs_a_cluster_with_proxies() -> None:
    """The error names the missing option."""
    cluster = EmbeddedCluster(brokers=1)
    with pytest.raises(KafkaError, match="cuttable=True"):
        cluster.cut(cluster.brokers[0] if cluster.brokers else 0)
    with pytest.raises(KafkaError, match="cuttable=True"):
        cluster.reset_connections(0)
    cluster.stop()
