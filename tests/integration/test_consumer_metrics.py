"""metrics() of both consumers on a real cluster: what they fetched, and how far they are behind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka08.consumer import (
    ConsumerConfig,
    ConsumerConnector,
    KafkaConsumer,
    KafkaConsumerConfig,
    SimpleConsumer,
)
from kafka08.embedded import EmbeddedCluster
from kafka08.producer import KafkaProducer, KafkaProducerConfig, ProducerRecord
from kafka08.structs import TopicPartition

MESSAGES, READ = 40, 15
FETCHED = "consumer-fetch-manager-metrics"


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(brokers=1, level="0.10.2") as cluster:
        cluster.create_topic("t", 1)
        with KafkaProducer(KafkaProducerConfig(bootstrap_servers=cluster.bootstrap)) as producer:
            for _ in range(MESSAGES):
                producer.send(ProducerRecord("t", b"x" * 100)).result(10)
        yield cluster


def check(found: dict[str, dict[str, float]]) -> None:
    """READ messages were taken of MESSAGES that were fetched."""
    every = found[FETCHED]
    assert MESSAGES == every["records-consumed-total"]
    assert MESSAGES * 100 < every["bytes-consumed-total"] < MESSAGES * 200
    assert MESSAGES - READ == every["records-lag-max"]
    assert every["records-lag-max"] == found[f"{FETCHED}.t-0"]["records-lag"]
    assert 1 == found["consumer-coordinator-metrics"]["assigned-partitions"]
    assert every["fetch-latency-avg"] > 0
    assert 0 < every["bytes-consumed-rate"] < every["bytes-consumed-total"]


def test_a_connector_says_how_far_it_is_behind(cluster: EmbeddedCluster) -> None:
    """Lag counts from the last message that the stream returned; reading the metrics commits
    nothing."""
    config = ConsumerConfig(
        group_id="connected",
        zookeeper_connect=cluster.zookeeper.connect_string,
        auto_offset_reset="smallest",
    )
    with ConsumerConnector(config) as connector:
        assert 0 == connector.metrics()[FETCHED]["records-lag-max"]
        [stream] = connector.create_message_streams({"t": 1})["t"]
        for _ in range(READ):
            next(stream)
        check(connector.metrics())


def test_a_kafka_consumer_says_how_far_it_is_behind(cluster: EmbeddedCluster) -> None:
    """Lag counts from the consumer's position."""
    config = KafkaConsumerConfig(
        bootstrap_servers=cluster.bootstrap,
        group_id="polled",
        auto_offset_reset="earliest",
        max_poll_records=READ,
    )
    with KafkaConsumer(config) as consumer:
        consumer.subscribe(["t"])
        taken = 0
        while not taken:
            taken = len(consumer.poll(10.0))
        assert READ == taken
        check(consumer.metrics())


def test_a_simple_consumer_counts_its_fetches(cluster: EmbeddedCluster) -> None:
    """It counts those that it waits for and those that it reads ahead, under the names of 0.8."""
    host, _, port = cluster.bootstrap.partition(":")
    t0 = TopicPartition("t", 0)
    with SimpleConsumer(host, int(port)) as consumer:
        fetched = consumer.fetch(t0, 0)
        consumer.start_fetch(t0, MESSAGES - 1).result()
        consumer.multifetch({t0: 0})
        found = consumer.metrics()
        assert found[f"FetchRequestAndResponseMetrics.{host}:{port}"]
    every = found["FetchRequestAndResponseMetrics"]
    assert 3 == every["FetchRequestRateAndTimeMs.Count"]
    assert 0 < every["FetchRequestRateAndTimeMs.Mean"] <= every["FetchRequestRateAndTimeMs.Max"]
    assert len(fetched.data) == every["FetchResponseSize.Max"]
