"""The doctor on a real cluster: healthy with a group that reads, then broken by hand."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from click.testing import CliRunner

from kafka08.admin import AdminClient
from kafka08.cli.root import root
from kafka08.client import ClusterClient, parse_bootstrap
from kafka08.client.requests import commit_request
from kafka08.consumer import ConsumerConfig, ConsumerConnector, KafkaConsumer, KafkaConsumerConfig
from kafka08.doctor import Finding, SnapshotReader, findings_of
from kafka08.embedded import EmbeddedCluster
from kafka08.errors import WokenUp
from kafka08.producer import KafkaProducer, KafkaProducerConfig, ProducerRecord
from kafka08.structs import OffsetAndMetadata, TopicPartition
from kafka08.zk.client import ZkClient
from tests.waiting import until

PARTITIONS = 4
CONFIG = {"zookeeper.session.timeout.ms": 3000, "offsets.topic.replication.factor": 2}


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(brokers=2, config=CONFIG) as cluster:
        with AdminClient(cluster.zookeeper.connect_string) as admin:
            admin.create_topic("t", PARTITIONS, 2)
            admin.await_leaders("t")
        # A leader may hear of its election after ZooKeeper has it, and retries are 0 by default.
        config = KafkaProducerConfig(
            {"bootstrap.servers": cluster.bootstrap, "acks": "-1", "retries": "20"}
        )
        with KafkaProducer(config) as producer:
            for number in range(40):
                producer.send(ProducerRecord("t", b"x", partition=number % PARTITIONS)).result(10)
        yield cluster


def examine(cluster: EmbeddedCluster) -> list[Finding]:
    directories = [broker.config["log.dirs"] for broker in cluster.brokers[:1]]
    with SnapshotReader(cluster.zookeeper.connect_string, log_directories=directories) as reader:
        return findings_of(reader.read_snapshot())


def test_a_healthy_cluster_has_no_findings(cluster: EmbeddedCluster) -> None:
    """The cluster has a group of ours that reads and commits to Kafka, whose topic is created for
    that."""
    config = ConsumerConfig(
        {
            "group.id": "readers",
            "zookeeper.connect": cluster.zookeeper.connect_string,
            "auto.offset.reset": "smallest",
            "offsets.storage": "kafka",
        }
    )
    with ConsumerConnector(config) as connector:
        [stream] = connector.create_message_streams({"t": 1})["t"]
        for _ in range(40):
            next(stream)
        connector.commit_offsets()
        assert [] == examine(cluster)
    assert [] == examine(cluster)


def test_offsets_that_expire_are_noted(cluster: EmbeddedCluster) -> None:
    """The doctor notes a group without members, by the time of its newest commit in the offsets
    topic."""
    t0 = TopicPartition("t", 0)
    offsets = {t0: OffsetAndMetadata(10, "", int((time.time() - 20 * 3600) * 1000))}
    request = commit_request("readers", offsets, "kafka")
    with closing(ClusterClient(parse_bootstrap(cluster.bootstrap))) as client:
        client.send(client.coordinator("readers"), request)
    [found] = [f for f in examine(cluster) if f.check == "offsets-expiring"]
    assert not found.is_problem
    assert "group readers, [t,0]" == found.where
    assert "in 4.0 h" in found.what


def test_offsets_that_logs_and_stores_contradict_are_found(cluster: EmbeddedCluster) -> None:
    """One above the log's end, none at all for messages that there are, and two that differ."""
    t0 = TopicPartition("t", 0)
    with closing(ClusterClient(parse_bootstrap(cluster.bootstrap))) as client:
        request = commit_request("twice", {t0: OffsetAndMetadata(5)}, "kafka")
        client.send(client.coordinator("twice"), request)
    with ZkClient(cluster.zookeeper.connect_string) as zk:
        for group, offset in (("ahead", "999"), ("one", "1"), ("twice", "4")):
            zk.put(f"/consumers/{group}/offsets/t/0", offset)
        found = {(f.check, f.where) for f in examine(cluster)}
        assert ("group-outside-log", "group ahead, [t,0]") in found
        assert ("group-stores-disagree", "group twice, [t,0]") in found
        [never] = [f for f in examine(cluster) if f.check == "group-never-committed"]
        assert "group one, [t,1], [t,2], [t,3]" in never.where
        for group in ("ahead", "one", "twice"):
            zk.delete_recursive(f"/consumers/{group}")


def test_a_group_of_a_coordinator_is_checked() -> None:
    """It is healthy while a KafkaConsumer reads. A commit behind the log's end and one that is
    about to expire are found, also of a group that never had members."""
    t0 = TopicPartition("t", 0)
    with EmbeddedCluster(brokers=1, level="0.10.2") as cluster:
        cluster.create_topic("t", 1, 1)
        keys = {"bootstrap.servers": cluster.bootstrap, "group.id": "c"}
        with KafkaProducer(KafkaProducerConfig({"bootstrap.servers": cluster.bootstrap})) as sender:
            sender.send(ProducerRecord("t", b"x")).result(10)
        config = KafkaConsumerConfig({**keys, "auto.offset.reset": "earliest"})
        with KafkaConsumer(config) as consumer:
            consumer.subscribe(["t"])
            until(lambda: consumer.poll(1.0))
            consumer.commit()
            assert [] == [f for f in examine(cluster) if f.check != "offsets-topic-one-replica"]
            with KafkaConsumer(config) as second:
                second.subscribe(["t"])
                joining = threading.Thread(target=poll_until_woken, args=(second,), name="joins")
                joining.start()
                until(lambda: "group-rebalancing" in {f.check for f in examine(cluster)})
                second.wakeup()
                joining.join()
            until(lambda: not consumer.poll(0.1) and t0 in consumer.assignment())
            consumer.commit({t0: 999})
            assert "group-outside-log" in {finding.check for finding in examine(cluster)}
        day_old = OffsetAndMetadata(1, "", int((time.time() - 20 * 3600) * 1000))
        with closing(ClusterClient(parse_bootstrap(cluster.bootstrap))) as client:
            request = commit_request("lonely", {t0: day_old}, "kafka")
            client.send(client.coordinator("lonely"), request)
        assert [("offsets-expiring", "group lonely, [t,0]")] == [
            (f.check, f.where) for f in examine(cluster) if "lonely" in f.where
        ]


def poll_until_woken(consumer: KafkaConsumer) -> None:
    with suppress(WokenUp):
        consumer.poll(60.0)


def test_each_fault_is_found_by_name(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    """The doctor finds leftover requests, impossible overrides, strange files, and at last a dead
    broker."""
    connect = cluster.zookeeper.connect_string
    (tmp_path / "server.properties").write_text(
        f"broker.id=0\nzookeeper.connect={connect}\nlog.retension.hours=5\n"
        "zookeeper.session.timeout.ms=500\n"
    )
    with ZkClient(connect) as zk:
        zk.put("/config/topics/t", '{"version":1,"config":{"min.insync.replicas":"3"}}')
        zk.put("/config/topics/gone", '{"version":1,"config":{}}')
        zk.put("/brokers/topics/broken", "no JSON")
        zk.put("/brokers/topics/uneven", '{"version":1,"partitions":{"0":[0],"1":[0,1]}}')
    follower = cluster.brokers[1]
    follower.kill()
    expected = {
        "min-insync-above-replicas",
        "config-left-behind",
        "topic-unreadable",
        "replica-counts-differ",
        "partition-under-replicated",
        "broker-left-behind",
    }
    until(lambda: expected <= {f.check for f in examine(cluster)}, "all are found")
    arguments = ["doctor", "--zookeeper", connect, "--json"]
    arguments += ["--broker", str(tmp_path / "server.properties")]
    result = CliRunner().invoke(root, arguments)
    assert 1 == result.exit_code, result.output
    told = json.loads(result.stdout)
    found = {row["check"] for row in told["findings"]}
    assert expected | {"properties-unknown", "session-too-short"} <= found
    assert told["problems"] == sum(row["severity"] == "problem" for row in told["findings"])
