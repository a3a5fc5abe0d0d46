"""Brokers of ours that crash and restart together lead again, under a controller of the JVM that
did not see them leave."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from kafka08.client.requests import produce_request, produce_results
from kafka08.errors import ClientError
from kafka08.network.connection import Connection
from kafka08.protocol import message_set
from kafka08.protocol.produce import ProduceResponse
from kafka08.structs import TopicPartition
from kafka08.zk import paths
from tests.interop.jvm import POM_0_10_2
from tests.interop.seats import HOST, OF_0_8_2, MixedCluster, Release, Seat, mixed_cluster
from tests.waiting import until

TOPIC = "t"
PAUSED_KEYS = {"zookeeper.session.timeout.ms": "50000"}
"""The JVM is paused for less: it stays controller."""
KEYS = {"zookeeper.session.timeout.ms": "6000"}
RELEASES = (OF_0_8_2._replace(keys=KEYS), Release(POM_0_10_2, "0.10.2", KEYS))


def refused(cluster: MixedCluster, partitions: int) -> list[int]:
    """The partitions to which nothing can be produced."""
    ports = {seat.id: seat.port for seat in cluster.seats}
    [described] = cluster.admin.describe_topics([TOPIC])
    by_leader: dict[int, list[int]] = {}
    for one in described.partitions:
        by_leader.setdefault(-1 if one.leader is None else one.leader, []).append(one.partition)
    left = set(range(partitions))
    for leader, numbers in by_leader.items():
        if leader not in ports:
            continue
        sets = {TopicPartition(TOPIC, n): message_set.encode([(None, b"x")]) for n in numbers}
        try:
            with Connection(HOST, ports[leader], timeout_ms=10_000) as connection:
                response = connection.send(produce_request(sets, required_acks=1, timeout_ms=5000))
        except ClientError:
            continue
        assert isinstance(response, ProduceResponse)
        results = produce_results(response)
        left -= {tp.partition for tp, result in results.items() if not result.error_code}
    return sorted(left)


def registered_by(cluster: MixedCluster, seat: Seat) -> int | None:
    """The session that has registered a broker."""
    stat = cluster.store.zk.stat(paths.broker(seat.id))
    return None if stat is None else stat.ephemeral_owner


def is_new(cluster: MixedCluster, seat: Seat, former: int | None) -> bool:
    return registered_by(cluster, seat) not in (None, former)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.level)
@pytest.mark.parametrize(("partitions", "paused"), [(4, True), (200, False)])
def test_they_lead_again(tmp_path: Path, release: Release, partitions: int, paused: bool) -> None:
    """They registered some milliseconds after their former sessions had ended. With the controller
    stopped meanwhile, or busy with 200 partitions, produce requests got error 3 for ever."""
    with mixed_cluster(tmp_path, 3, release) as cluster:
        jvm, *ours = cluster.seats
        jvm.start_jvm(release._replace(keys=PAUSED_KEYS))
        until(lambda: cluster.controller() == jvm.id, "the JVM's broker to be the controller")
        for seat in ours:
            seat.start_ours()
        replicas = [seat.id for seat in ours]
        cluster.admin.create_topic(
            TOPIC, assignment={n: replicas[n % 2 :] + replicas[: n % 2] for n in range(partitions)}
        )
        cluster.await_isr(TOPIC, *replicas)
        until(lambda: not refused(cluster, partitions), "all partitions to be led", 90)
        if paused:
            jvm.pause()
        killed = {seat: registered_by(cluster, seat) for seat in ours}
        for seat in ours:
            seat.kill()
        for seat in ours:
            seat.start_ours()
        for seat in ours:
            until(partial(is_new, cluster, seat, killed[seat]), "a new registration")
        if paused:
            jvm.resume()
        until(partial(lambda: not refused(cluster, partitions)), "all partitions to be led", 90)
        assert cluster.controller() == jvm.id
