"""PartitionReader on real brokers: the leader dies, and comes back, while it reads."""

from __future__ import annotations

import itertools
import time
from contextlib import closing

import pytest

from kafka08.client import ClusterClient, parse_bootstrap
from kafka08.consumer.fetching.batch import BatchLimits
from kafka08.consumer.partition_reader import PartitionReader
from kafka08.embedded.cluster import EmbeddedCluster
from kafka08.producer import KafkaProducer, KafkaProducerConfig
from kafka08.structs import TopicPartition

SECONDS = 60
EACH = 100

pytestmark = pytest.mark.kafka08_topic(partitions=1, replication_factor=3)


def write(cluster: EmbeddedCluster, topic: str, numbers: range) -> None:
    config = KafkaProducerConfig(bootstrap_servers=cluster.bootstrap, acks="all", retries=1000)
    with KafkaProducer(config) as producer:
        producer.send_many(topic, [b"%d" % n for n in numbers]).result(SECONDS)


def test_it_follows_leaders_that_die(kafka08_cluster: EmbeddedCluster, kafka08_topic: str) -> None:
    """Two of three brokers are killed and restarted in turn: every message is read once, in
    order."""
    tp = TopicPartition(kafka08_topic, 0)
    write(kafka08_cluster, kafka08_topic, range(EACH))
    with closing(ClusterClient(parse_bootstrap(kafka08_cluster.bootstrap))) as client:
        client.refresh()
        reader = PartitionReader(client, tp, 0)
        found: list[bytes | None] = []

        def read_up_to(count: int) -> None:
            deadline = time.monotonic() + SECONDS
            while len(found) < count:
                assert time.monotonic() < deadline, f"{len(found)} of {count} messages came"
                found.extend(
                    itertools.chain.from_iterable(b.values() for b in reader.poll(BatchLimits()))
                )

        read_up_to(EACH)
        for turn in (1, 2):
            victim = kafka08_cluster.leader_of(kafka08_topic)
            kafka08_cluster.kill(victim)
            write(kafka08_cluster, kafka08_topic, range(turn * EACH, (turn + 1) * EACH))
            read_up_to((turn + 1) * EACH)
            kafka08_cluster.restart(victim)
    assert [b"%d" % n for n in range(3 * EACH)] == list(dict.fromkeys(found))
    assert len(found) == reader.position
