"""Brokers of 0.8.2.2 and ours in one cluster: they copy from each other, and either controls it."""

from __future__ import annotations

from pathlib import Path

from kafka08.client.requests import produce_request, produce_results
from kafka08.errors import NotEnoughReplicas, NotEnoughReplicasAfterAppend
from kafka08.network.connection import Connection
from kafka08.protocol import message_set
from kafka08.protocol.produce import ProduceResponse
from kafka08.structs import TopicPartition
from tests.histories.workload import Workload
from tests.interop.jvm import JvmZooKeeper
from tests.interop.seats import HOST, Seat, mixed_cluster
from tests.waiting import until

TOPIC = "mixed"
STRICT = "strict"
CLEAN = {"unclean.leader.election.enable": "false"}
BOTH = {**CLEAN, "min.insync.replicas": "2"}
SEND_TIMEOUT_MS = 20_000
"""More than a session and the time that a follower may lag."""
REFUSALS = [NotEnoughReplicasAfterAppend.code, NotEnoughReplicas.code]


def test_a_jvm_broker_and_ours_replace_each_other(tmp_path: Path) -> None:
    """Each broker follows, leads, is the controller, dies by kill -9 while the other continues, and
    returns. In the end both logs are equal, byte for byte. With two in-sync replicas required, the
    broker that is left refuses: after the append while it waits for the dead one, later before
    it."""
    with mixed_cluster(tmp_path, 2, zookeeper=JvmZooKeeper(tmp_path)) as cluster:
        jvm, ours = cluster.seats
        jvm.start_jvm()
        ours.start_ours()
        assert jvm.id == cluster.controller()
        cluster.admin.create_topic(TOPIC, assignment={0: [1, 2], 1: [2, 1]}, config=CLEAN)
        cluster.admin.create_topic(STRICT, assignment={0: [1, 2], 1: [2, 1]}, config=BOTH)
        for topic in (TOPIC, STRICT):
            cluster.await_isr(topic, 1, 2)
        with Workload(cluster.bootstrap, TOPIC, partitions=2) as work:
            work.await_progress()
            until(lambda: produce(ours, 1) == 0, "our broker to lead")
            jvm.kill()
            assert REFUSALS == [produce(ours, 1), produce(ours, 1)]
            until(lambda: cluster.controller() == ours.id, "our broker to be the controller")
            cluster.await_isr(TOPIC, ours.id)
            work.await_progress()
            jvm.start_jvm()
            for topic in (TOPIC, STRICT):
                cluster.await_isr(topic, 1, 2)
            work.await_progress()
            cluster.admin.elect_preferred([TopicPartition(STRICT, 0)])
            until(lambda: produce(jvm, 0) == 0, "the JVM to lead")
            ours.kill()
            assert REFUSALS == [produce(jvm, 0), produce(jvm, 0)]
            until(lambda: cluster.controller() == jvm.id, "the JVM to be the controller")
            cluster.await_isr(TOPIC, jvm.id)
            work.await_progress()
            ours.start_ours()
            cluster.await_isr(TOPIC, 1, 2)
            work.await_progress()
        assert [] == work.problems()
        cluster.await_equal_logs(TOPIC, 2)


def produce(leader: Seat, partition: int) -> int:
    """Send one message with acks=-1; the code of the response."""
    tp = TopicPartition(STRICT, partition)
    request = produce_request(
        {tp: message_set.encode([(None, b"x")])}, required_acks=-1, timeout_ms=SEND_TIMEOUT_MS
    )
    with Connection(HOST, leader.port) as connection:
        response = connection.send(request)
    assert isinstance(response, ProduceResponse)
    [result] = produce_results(response).values()
    return result.error_code


def test_a_jvm_cluster_is_replaced_by_ours_and_back(tmp_path: Path) -> None:
    """Our brokers replace the JVM's one by one on the existing directories while clients read and
    send with acks=-1 and two in-sync replicas; at last the JVM takes over a directory of ours."""
    with mixed_cluster(tmp_path, 3) as cluster:
        for seat in cluster.seats:
            seat.start_jvm()
        everybody = [seat.id for seat in cluster.seats]
        cluster.admin.create_topic(TOPIC, 2, 3, {**CLEAN, "min.insync.replicas": "2"})
        cluster.admin.await_leaders(TOPIC)
        with Workload(cluster.bootstrap, TOPIC, partitions=2) as work:
            for seat in cluster.seats:
                work.await_progress()
                seat.stop()
                seat.start_ours()
                cluster.await_isr(TOPIC, *everybody)
            work.await_progress()
            seat = cluster.seats[0]
            seat.stop()
            seat.start_jvm()
            cluster.await_isr(TOPIC, *everybody)
            work.await_progress()
        assert [] == work.problems()
        cluster.await_equal_logs(TOPIC, 2)
