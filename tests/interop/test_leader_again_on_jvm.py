"""Our broker leads again after another one did: it goes on replicating to a follower of the JVM."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

import pytest

from kafka08.client.requests import produce_request, produce_results
from kafka08.network.connection import Connection
from kafka08.protocol import message_set
from kafka08.protocol.produce import ProduceResponse
from kafka08.structs import TopicPartition
from tests.interop.jvm import POM_0_10_2
from tests.interop.seats import HOST, OF_0_8_2, MixedCluster, Release, Seat, mixed_cluster
from tests.waiting import until

TOPIC = "again"
MOVED, STILL = TopicPartition(TOPIC, 0), TopicPartition(TOPIC, 1)
PATIENCE = {
    "zookeeper.session.timeout.ms": "60000",
    "replica.lag.time.max.ms": "60000",
    "replica.fetch.wait.max.ms": "100",
}
"""The follower stays in the ISR: what is acknowledged within a minute, it has copied."""
RELEASES = (
    OF_0_8_2._replace(keys=PATIENCE),
    Release(POM_0_10_2, "0.10.2", PATIENCE),
)
REFUSED = "did not lead partition [again,0] for a while; the follower must compare its log"


class Cluster:
    """Broker 1 of ours leads; 2 of the JVM follows; 3 of ours is there to lead for a while. The
    second partition keeps the connection from 2 to 1 in use."""

    def __init__(self, cluster: MixedCluster) -> None:
        self._cluster = cluster
        self.ours, self.jvm, self.other = cluster.seats
        self.ours.start_ours()
        self.jvm.start_jvm()
        self.other.start_ours()
        cluster.admin.create_topic(TOPIC, assignment={0: [1, 2, 3], 1: [1, 2, 3]})
        cluster.await_isr(TOPIC, 1, 2, 3)

    def move(self, leader: Seat) -> None:
        """Make a broker lead the first partition: the first replica is the preferred one."""
        admin = self._cluster.admin
        replicas = (leader.id, *(seat.id for seat in self._cluster.seats if seat != leader))
        admin.move_partitions({MOVED: replicas})
        until(lambda: not self._cluster.store.reassignments(), "the end of a move")
        admin.elect_preferred([MOVED])
        until(partial(leads, leader, MOVED), f"broker {leader.id} to lead")

    def await_copy(self) -> None:
        """Until both brokers of ours have the same messages."""
        until(lambda: self.ours.segments(*MOVED) == self.other.segments(*MOVED), "the copy")


def produce(leader: Seat, partition: TopicPartition, acks: int) -> int:
    """Send one message; the code of the response."""
    request = produce_request(
        {partition: message_set.encode([(None, b"x")])}, required_acks=acks, timeout_ms=30_000
    )
    with Connection(HOST, leader.port, timeout_ms=60_000) as connection:
        response = connection.send(request)
    assert isinstance(response, ProduceResponse)
    [result] = produce_results(response).values()
    return result.error_code


def leads(broker: Seat, partition: TopicPartition) -> bool:
    return produce(broker, partition, acks=1) == 0


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.level)
def test_a_jvm_follower_is_refused_once(tmp_path: Path, release: Release) -> None:
    """The follower is suspended while another broker leads. When it goes on over its connection it
    is refused, and repeats its fetch: acks=-1 go on, long before it would leave the ISR. The same
    after it has led itself."""
    with mixed_cluster(tmp_path, 3, release) as mixed:
        cluster = Cluster(mixed)
        for partition in (MOVED, STILL):
            until(partial(leads, cluster.ours, partition), "broker 1 to lead")
            assert produce(cluster.ours, partition, acks=-1) == 0
        cluster.jvm.pause()
        time.sleep(0.5)
        # The fetch that waits at the leader is answered, without an error.
        assert produce(cluster.ours, STILL, acks=1) == 0
        cluster.move(cluster.other)
        cluster.await_copy()
        cluster.move(cluster.ours)
        cluster.jvm.resume()
        for partition in (MOVED, STILL):
            assert produce(cluster.ours, partition, acks=-1) == 0
        assert 1 == cluster.ours.output().count(REFUSED)
        mixed.await_isr(TOPIC, 1, 2, 3)

        cluster.move(cluster.jvm)
        assert produce(cluster.jvm, MOVED, acks=-1) == 0
        cluster.move(cluster.ours)
        for partition in (MOVED, STILL):
            assert produce(cluster.ours, partition, acks=-1) == 0
        mixed.await_isr(TOPIC, 1, 2, 3)
        mixed.await_equal_logs(TOPIC, 2)
