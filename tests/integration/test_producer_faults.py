"""KafkaProducer on a cluster of three: brokers die and freeze under it, replicas keep its word.

With acks=-1 a record whose future succeeded is in the log exactly where the future says, whoever
leads by then; retries may store it twice.
"""

from __future__ import annotations

import time

import pytest

from kafka08.consumer import SimpleConsumer
from kafka08.embedded.cluster import EmbeddedCluster
from kafka08.producer import KafkaProducer, KafkaProducerConfig, ProducerRecord
from kafka08.producer.future import RecordFuture
from kafka08.structs import TopicPartition

SECONDS = 60
RECORDS = 3000
PARTITIONS = 2

pytestmark = pytest.mark.kafka08_topic(partitions=PARTITIONS, replication_factor=3)


def producer_on(cluster: EmbeddedCluster) -> KafkaProducer:
    return KafkaProducer(
        KafkaProducerConfig(
            bootstrap_servers=cluster.bootstrap,
            acks="all",
            retries=1_000_000,
            request_timeout_ms=2000,
            max_in_flight_requests_per_connection=1,
        )
    )


def log_of(cluster: EmbeddedCluster, tp: TopicPartition) -> dict[int, bytes]:
    leader = cluster.leader_of(tp.topic, tp.partition)
    with SimpleConsumer(leader.host, leader.port) as consumer:
        return {message.offset: message.value or b"" for message in consumer.read_range(tp, 0)}


def check(cluster: EmbeddedCluster, topic: str, sent: list[tuple[bytes, RecordFuture]]) -> None:
    """Every record is at the offset of its future, and first copies are in the order of the
    calls."""
    results = [future.result(SECONDS) for _, future in sent]
    for partition in range(PARTITIONS):
        log = log_of(cluster, TopicPartition(topic, partition))
        told = {
            result.offset: value
            for (value, _), result in zip(sent, results, strict=True)
            if result.partition == partition
        }
        assert {offset: log.get(offset) for offset in told} == told
        assert list(dict.fromkeys(log.values())) == list(told.values())


@pytest.mark.parametrize("fault", ["kill", "pause", "cut"])
def test_a_leader_that_fails_loses_nothing(
    kafka08_cluster: EmbeddedCluster, kafka08_topic: str, fault: str
) -> None:
    """The leader is killed, suspended until another one is elected, or disconnected, while records
    are sent."""
    cluster = kafka08_cluster
    sent: list[tuple[bytes, RecordFuture]] = []
    with producer_on(cluster) as producer:
        for n in range(RECORDS):
            if n == RECORDS // 3:
                producer.flush(SECONDS)
                leader = cluster.leader_of(kafka08_topic, 0)
                getattr(cluster, fault)(leader)
                if fault != "kill":
                    cluster.expire_session(leader)
            value = b"%d" % n
            sent.append((value, producer.send(ProducerRecord(kafka08_topic, value))))
            if n % 100 == 0:
                time.sleep(0.002)  # so that the fault meets requests on their way
        producer.flush(SECONDS)
        assert producer.free_bytes == producer.config.buffer_memory
    check(cluster, kafka08_topic, sent)
