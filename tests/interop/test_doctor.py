"""No false alarm on healthy clusters of 0.8.2.2, alone and beside ours."""

from __future__ import annotations

from pathlib import Path

from kafka08.doctor import SnapshotReader, findings_of
from tests.interop.jvm import JvmKafka
from tests.interop.seats import mixed_cluster


def findings(zookeeper: str) -> list[str]:
    with SnapshotReader(zookeeper) as reader:
        return [str(finding) for finding in findings_of(reader.read_snapshot())]


def test_a_jvm_broker_has_no_findings(tmp_path: Path) -> None:
    """The doctor finds no problem in a JVM broker with a topic of its own tool."""
    with JvmKafka(tmp_path, {"num.partitions": "3"}) as kafka:
        kafka.create_topic("examined", partitions=3)
        assert [] == findings(kafka.zookeeper)


def test_a_mixed_cluster_has_no_findings(tmp_path: Path) -> None:
    """The doctor finds no problem in a JVM broker and one of ours, both in sync."""
    with mixed_cluster(tmp_path, 2) as cluster:
        jvm, ours = cluster.seats
        jvm.start_jvm()
        ours.start_ours()
        cluster.admin.create_topic("examined", assignment={0: [1, 2], 1: [2, 1]})
        cluster.await_isr("examined", 1, 2)
        assert [] == findings(cluster.zookeeper.connect_string)
