"""Records that are deleted on three brokers: by a command, over kills, for every consumer."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing

import pytest

from kafka08.client import ClusterClient, parse_bootstrap
from kafka08.client.log_offsets import log_ends, log_starts
from kafka08.embedded import EmbeddedCluster
from kafka08.producer import KafkaProducer, ProducerRecord
from kafka08.structs import TopicPartition
from tests.waiting import until

COMMAND = (sys.executable, "-m", "kafka08.cli", "topic", "delete-records")


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(brokers=3, level="0.11.0") as cluster:
        yield cluster


def delete(cluster: EmbeddedCluster, *arguments: str) -> list[list[int]]:
    """Partition, former and new log start of each row."""
    done = subprocess.run(
        [*COMMAND, *arguments, "--bootstrap", cluster.bootstrap, "--json"],
        capture_output=True,
        check=False,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return [
        [row["partition"], row["log_start"], row["new_log_start"]]
        for row in json.loads(done.stdout)
    ]


def bounds(cluster: EmbeddedCluster, tp: TopicPartition) -> tuple[int, int]:
    """Log start and end, as its leader says."""
    addresses = parse_bootstrap(cluster.bootstrap)
    with closing(ClusterClient(addresses, client_id="test")) as client:
        return log_starts(client, [tp])[tp], log_ends(client, [tp])[tp]


def test_deleted_records_do_not_come_back(cluster: EmbeddedCluster) -> None:
    """Neither when all brokers are killed at once, right after the command has returned, nor when
    the leader changes three times. Their producer goes on."""
    tp = TopicPartition("gone", 0)
    cluster.create_topic(tp.topic, 1, 3, {"min.insync.replicas": "2"})
    with KafkaProducer(
        bootstrap_servers=cluster.bootstrap, acks="all", retries=20, retry_backoff_ms=200
    ) as producer:
        for n in range(10):
            producer.send(ProducerRecord(tp.topic, b"%d" % n)).result(30)
        assert [[0, 0, 4]] == delete(cluster, tp.topic, "--before", "4", "--dry-run")
        assert (0, 10) == bounds(cluster, tp)
        assert [[0, 0, 4]] == delete(cluster, tp.topic, "--before", "4")
        for broker in cluster.brokers:
            cluster.kill(broker)
        for broker in cluster.brokers:
            broker.start()
        cluster.await_ready()
        until(lambda: (4, 10) == bounds(cluster, tp), "the log start after the kill")
        for _ in range(3):
            cluster.wait.isr(tp.topic)
            leader = cluster.leader_of(tp.topic)
            cluster.kill(leader)
            cluster.wait.leader(tp.topic, other_than=leader.id)
            until(lambda: 4 == bounds(cluster, tp)[0], "the log start of the next leader")
            leader.start()
        cluster.wait.isr(tp.topic)
        assert 10 == producer.send(ProducerRecord(tp.topic, b"10")).result(30).offset
