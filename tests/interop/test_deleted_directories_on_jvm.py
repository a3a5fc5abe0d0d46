"""Directories of deleted partitions: JVM 0.10.2.2 and ours start on what the other left."""

from __future__ import annotations

from pathlib import Path

from tests.interop.jvm import POM_0_10_2
from tests.interop.seats import MixedCluster, Release, Seat, mixed_cluster
from tests.waiting import until

OF_0_10_2 = Release(POM_0_10_2, "0.10.2")


def leave_a_directory(cluster: MixedCluster, seat: Seat, topic: str) -> Path:
    """Create a topic, delete it, stop the broker: where the partition was put aside."""
    cluster.admin.create_topic(topic)
    until((seat.logs / f"{topic}-0").exists, "the partition")
    cluster.await_isr(topic, seat.id)
    cluster.admin.delete_topic(topic)
    until(lambda: topic not in cluster.admin.list_topics(), "the deletion")
    seat.stop()
    (left,) = seat.logs.glob(f"{topic}-0.*-delete")
    return left


def test_each_starts_on_the_others_directories(tmp_path: Path) -> None:
    """Each broker starts on the other's directories within file.delete.delay.ms of a deletion,
    while the deleted log's directory is renamed."""
    with mixed_cluster(tmp_path, 1, OF_0_10_2) as cluster:
        (seat,) = cluster.seats
        seat.start_jvm()
        theirs = leave_a_directory(cluster, seat, "theirs")
        seat.start_ours()
        assert not theirs.exists()
        until(lambda: cluster.controller() == seat.id, "our controller")
        ours = leave_a_directory(cluster, seat, "ours")
        assert len(theirs.name) - len("theirs") == len(ours.name) - len("ours")
        seat.start_jvm()
        assert cluster.admin.live_brokers() == [seat.id]
        assert "Fatal error" not in seat.output()
