"""No false alarm on healthy clusters of the JVM, alone and beside ours."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka08.admin import AdminClient
from kafka08.consumer import KafkaConsumer
from kafka08.doctor import SnapshotReader, findings_of
from kafka08.producer import KafkaProducer, KafkaProducerConfig, ProducerRecord
from tests.interop.jvm import POM_0_9_0, POM_0_10_2, JvmKafka
from tests.interop.seats import mixed_cluster

GROUP = "readers"
MESSAGES = 10


def findings(zookeeper: str) -> list[str]:
    with SnapshotReader(zookeeper) as reader:
        return [str(finding) for finding in findings_of(reader.read_snapshot())]


def groups_seen(zookeeper: str) -> list[str]:
    """The names of the coordinated groups that the doctor reads."""
    with SnapshotReader(zookeeper) as reader:
        return list(reader.read_snapshot().coordinated)


def test_a_jvm_broker_has_no_findings(tmp_path: Path) -> None:
    """The doctor finds no problem in a JVM broker with a topic of its own tool."""
    with JvmKafka(tmp_path, {"num.partitions": "3"}) as kafka:
        kafka.create_topic("examined", partitions=3)
        assert [] == findings(kafka.zookeeper)


@pytest.mark.parametrize("pom", [POM_0_9_0, POM_0_10_2], ids=["0.9.0.1", "0.10.2.2"])
def test_a_jvm_cluster_with_a_group_has_no_findings(tmp_path: Path, pom: Path) -> None:
    """The doctor finds no problem in a JVM broker with two topics and a group that has read one of
    them, neither while its member lives nor after it has left."""
    keys = {"group.min.session.timeout.ms": "500", "group.initial.rebalance.delay.ms": "0"}
    with JvmKafka(tmp_path, keys, pom=pom) as kafka:
        kafka.create_topic("examined", partitions=3)
        kafka.create_topic("unread", partitions=1)
        with KafkaProducer(
            KafkaProducerConfig({"bootstrap.servers": kafka.bootstrap, "retries": "100"})
        ) as producer:
            for number in range(MESSAGES):
                record = ProducerRecord("examined", b"x", partition=number % 3)
                producer.send(record).result(60)
        with KafkaConsumer(
            bootstrap_servers=kafka.bootstrap, group_id=GROUP, auto_offset_reset="earliest"
        ) as consumer:
            consumer.subscribe(["examined"])
            read = 0
            while read < MESSAGES:
                read += len(consumer.poll(timeout=1.0))
            consumer.commit()
            assert [GROUP] == groups_seen(kafka.zookeeper)
            assert [] == findings(kafka.zookeeper)
        assert [] == findings(kafka.zookeeper)
        with AdminClient(kafka.zookeeper) as admin:
            admin.alter_topic("examined", config={"min.insync.replicas": "2"})
        [found] = findings(kafka.zookeeper)
        assert found.startswith("Problem min-insync-above-replicas: ")


def test_a_mixed_cluster_has_no_findings(tmp_path: Path) -> None:
    """The doctor finds no problem in a JVM broker and one of ours, both in sync."""
    with mixed_cluster(tmp_path, 2) as cluster:
        jvm, ours = cluster.seats
        jvm.start_jvm()
        ours.start_ours()
        cluster.admin.create_topic("examined", assignment={0: [1, 2], 1: [2, 1]})
        cluster.await_isr("examined", 1, 2)
        assert [] == findings(cluster.zookeeper.connect_string)
