"""JVM 0.10.2.2 and our brokers read each other's notifications in ZooKeeper."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafka08.network.connection import Connection
from kafka08.protocol.metadata import MetadataRequest
from kafka08.zk import paths
from tests.interop.jvm import POM_0_10_2
from tests.interop.seats import HOST, MixedCluster, Release, Seat, mixed_cluster
from tests.waiting import until

KEYS = {
    "log.message.format.version": "0.9.0",
    "auto.leader.rebalance.enable": "false",
    "unclean.leader.election.enable": "false",
}
OF_0_10_2 = Release(POM_0_10_2, "0.10.2", KEYS)
PINNED = Release(
    level="0.10.2",
    keys={"inter.broker.protocol.version": "0.8.2", "log.message.format.version": "0.8.2"},
)


def isrs_at(seat: Seat) -> list[set[int]]:
    """The ISRs of the topic as a broker's metadata have them, by partition."""
    with Connection(HOST, seat.port) as connection:
        response: Any = connection.send(MetadataRequest(["t"], version=1))
    partitions = sorted(response.topics[0].partitions, key=lambda p: p.partition)
    return [set(partition.isr) for partition in partitions]


@pytest.mark.parametrize("jvm_controls", [False, True])
def test_an_isr_that_grew_is_known_to_all_brokers(tmp_path: Path, jvm_controls: bool) -> None:
    """The leader, of the other kind than the controller, writes a notification that its follower is
    back; the controller reads it, sends UpdateMetadata to all brokers, and deletes it."""
    with mixed_cluster(tmp_path, 3, OF_0_10_2) as cluster:
        controller, leader, follower = cluster.seats
        start = [Seat.start_ours, Seat.start_jvm]
        start[jvm_controls](controller)
        until(lambda: cluster.controller() == controller.id, "the controller")
        start[not jvm_controls](leader)
        follower.start_ours()
        cluster.admin.create_topic("t", assignment={0: [2, 3], 1: [2, 3]})
        cluster.await_isr("t", 2, 3)
        follower.stop()
        cluster.await_isr("t", 2)
        for seat in (controller, leader):
            until(lambda s=seat: [{2}, {2}] == isrs_at(s), "the ISR of one")  # type: ignore[misc]
        follower.start_ours()
        cluster.await_isr("t", 2, 3)
        for seat in cluster.seats:
            until(
                lambda s=seat: [{2, 3}] * 2 == isrs_at(s),  # type: ignore[misc]
                f"the ISR of two at broker {seat.id}",
            )
        assert controller.id == cluster.controller()
        until(lambda: not notifications(cluster), "the notification to be removed")


def notifications(cluster: MixedCluster) -> list[str]:
    return cluster.store.zk.children(paths.ISR_CHANGES)


@pytest.mark.parametrize(
    ("release", "theirs"),
    [
        (OF_0_10_2, "Processing override for entityType: topics, entity: t with config"),
        (PINNED, "Processed topic config change 1 for topic t, setting new config"),
    ],
    ids=["0.10.2.2", "0.8.2.2 and ours pinned"],
)
def test_an_altered_configuration_reaches_both_kinds(
    tmp_path: Path, release: Release, theirs: str
) -> None:
    """Running brokers of both kinds apply a changed topic configuration, each from the notification
    form of its release."""
    with mixed_cluster(tmp_path, 2, release) as cluster:
        jvm, ours = cluster.seats
        jvm.start_jvm()
        ours.start_ours()
        cluster.admin.create_topic("t", assignment={0: [1, 2]})
        for seat in cluster.seats:
            until(lambda s=seat: "Created log for" in s.output(), "the log")  # type: ignore[misc]
        cluster.admin.alter_topic("t", config={"retention.ms": "123456"})
        until(lambda: theirs in jvm.output(), "the JVM broker to read it")
        until(
            lambda: (
                "for topic t, setting new config to {'retention.ms': '123456'}" in ours.output()
            ),
            "our broker to read it",
        )
