"""KafkaProducer and the old async Producer on a broker of 0.8.2.2."""

from __future__ import annotations

import pytest

from kafka08.consumer import SimpleConsumer
from kafka08.errors import MessageSizeTooLarge
from kafka08.hashing import murmur2
from kafka08.producer import (
    KafkaProducer,
    KafkaProducerConfig,
    KeyedMessage,
    Producer,
    ProducerConfig,
    ProducerRecord,
)
from kafka08.structs import TopicPartition
from tests.interop.jvm import JvmKafka

SECONDS = 30
PARTITIONS = 3


def read(kafka: JvmKafka, topic: str, partition: int) -> dict[int, tuple[bytes, bytes]]:
    """offset → (key, value) of a partition."""
    broker = kafka.brokers[0]
    with SimpleConsumer("127.0.0.1", broker.port) as consumer:
        messages = consumer.read_range(TopicPartition(topic, partition), 0)
        return {message.offset: (message.key or b"", message.value or b"") for message in messages}


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4"])
def test_records_are_where_their_futures_say(jvm_kafka: JvmKafka, codec: str) -> None:
    """With each codec records are at the offsets of their futures; the JVM broker repacks each set
    into one wrapper and numbers its messages."""
    topic = f"new-producer-{codec}"
    config = KafkaProducerConfig(
        bootstrap_servers=jvm_kafka.bootstrap, compression_type=codec, acks="all", batch_size=2000
    )
    with KafkaProducer(config) as producer:
        sent = [(b"key %d" % (n % 100), b"%d" % n) for n in range(5000)]
        futures = [producer.send(ProducerRecord(topic, value, key)) for key, value in sent]
        many = producer.send_many(topic, [b"many"] * 1000, partition=0).result(SECONDS)
        told = [future.result(SECONDS) for future in futures]
    logs = [read(jvm_kafka, topic, partition) for partition in range(PARTITIONS)]
    for pair, metadata in zip(sent, told, strict=True):
        assert logs[metadata.partition][metadata.offset] == pair
        assert metadata.partition == (murmur2(pair[0]) & 0x7FFFFFFF) % PARTITIONS
    for stored in many:
        for n in range(len(stored.places)):
            assert logs[0][stored.offset + n][1] == b"many"
    assert sum(map(len, logs)) == 6000


def test_a_record_that_the_broker_finds_too_large(jvm_kafka: JvmKafka) -> None:
    """A record above the broker's limit fails alone; the others of its request are stored."""
    config = KafkaProducerConfig(
        bootstrap_servers=jvm_kafka.bootstrap, max_request_size=4 << 20, linger_ms=100
    )
    with KafkaProducer(config) as producer:
        topic = "new-producer-too-large"
        before = producer.send(ProducerRecord(topic, b"a", partition=0))
        large = producer.send(ProducerRecord(topic, b"x" * (2 << 20), partition=0))
        after = producer.send(ProducerRecord(topic, b"b", partition=0))
        assert isinstance(large.exception(SECONDS), MessageSizeTooLarge)
        assert {before.result(SECONDS).offset, after.result(SECONDS).offset} == {0, 1}


def test_the_old_producer_in_async_mode(jvm_kafka: JvmKafka) -> None:
    """Every queued message arrives, in order, before close() returns."""
    config = ProducerConfig(
        {
            "metadata.broker.list": jvm_kafka.bootstrap,
            "producer.type": "async",
            "request.required.acks": "-1",
            "queue.time": "100",
            "message.send.max.retries": "100",  # the topic is made by the first batch
        }
    )
    with Producer(config) as producer:
        for n in range(5000):
            producer.send(KeyedMessage("old-async", b"%d" % n))
    logs = [read(jvm_kafka, "old-async", partition) for partition in range(PARTITIONS)]
    assert [value for log in logs for _, value in log.values()] == [b"%d" % n for n in range(5000)]
