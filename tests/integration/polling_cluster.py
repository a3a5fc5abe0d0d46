"""The cluster of the tests of the KafkaConsumer on our brokers, and reading from it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

from kafka08.consumer import KafkaConsumer
from kafka08.embedded import EmbeddedCluster
from kafka08.kernel import MessageAndMetadata
from kafka08.producer import KafkaProducer, KafkaProducerConfig, ProducerRecord
from kafka08.structs import TopicPartition

LEVELS = ("0.9.0", "0.10.2")
"""Those that have groups with a coordinator."""
Message = MessageAndMetadata[Any, Any]
_names = count()


@contextmanager
def cluster_of(level: str) -> Iterator[EmbeddedCluster]:
    config = {
        "offsets.topic.num.partitions": 3,
        "group.min.session.timeout.ms": 500,
        "offsets.topic.replication.factor": 2,
    }
    with EmbeddedCluster(brokers=2, config=config, level=level) as running:
        yield running


def new_topic(cluster: EmbeddedCluster) -> str:
    """Create a topic with four partitions for one test."""
    name = f"t{next(_names)}"
    cluster.create_topic(name, partitions=4, replication_factor=2)
    return name


def fill(cluster: EmbeddedCluster, topic: str, messages: int, start: int = 0) -> None:
    """Produce numbers from `start` on, round-robin over the partitions, and wait for the HW."""
    config = KafkaProducerConfig(
        bootstrap_servers=cluster.bootstrap,
        acks="all",
        retries=1000,  # A broker may hear of a new leader after ZooKeeper has it.
        max_in_flight_requests_per_connection=1,
    )
    with KafkaProducer(config) as producer:
        sent = [
            producer.send(ProducerRecord(topic, b"%d" % number, partition=number % 4))
            for number in range(start, start + messages)
        ]
    for future in sent:
        future.result(0)


def consumer_of(cluster: EmbeddedCluster, group: str = "", **keys: Any) -> KafkaConsumer:
    return consumer_at(cluster.bootstrap, group, **keys)


def consumer_at(bootstrap: str, group: str = "", **keys: Any) -> KafkaConsumer:
    """A KafkaConsumer with short timeouts, so that tests can wait for them."""
    defaults = {
        "bootstrap_servers": bootstrap,
        "group_id": group,
        "auto_offset_reset": "earliest",
        "session_timeout_ms": 3000,
        "heartbeat_interval_ms": 200,
        "fetch_max_wait_ms": 100,
    }
    return KafkaConsumer(**{**defaults, **keys})


def read(consumer: KafkaConsumer, messages: int, seconds: float = 20) -> list[Message]:
    """Up to `count` messages, or those that arrive within the timeout."""
    found: list[Message] = []
    end = time.monotonic() + seconds
    while len(found) < messages and time.monotonic() < end:
        found += consumer.poll(0.2)
    return found


def numbers(messages: list[Message]) -> list[int]:
    return sorted(int(message.value or b"") for message in messages)


def partitions_of(topic: str) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for number in range(4)]
