"""KafkaProducers on the brokers of tcp_cluster."""

from __future__ import annotations

from typing import Any

from kafka08.errors import KafkaError
from kafka08.producer import KafkaProducer, KafkaProducerConfig, ProducerRecord, RecordMetadata
from kafka08.structs import TopicPartition
from tests.producer.tcp_cluster import TcpCluster

SECONDS = 20
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
U0 = TopicPartition("u", 0)


def config_on(cluster: TcpCluster, **keys: Any) -> KafkaProducerConfig:
    """By default without a question for versions: the brokers are of 0.8, see test_versions."""
    keys.setdefault("retry_backoff_ms", 5)
    keys.setdefault("api_version_request", False)
    return KafkaProducerConfig(bootstrap_servers=cluster.servers, **keys)


def producer_on(cluster: TcpCluster, **keys: Any) -> KafkaProducer:
    return KafkaProducer(config_on(cluster, **keys))


def values(cluster: TcpCluster, tp: TopicPartition) -> list[bytes | None]:
    return [value for _, value in cluster.messages(tp)]


class Interceptor:
    """An interceptor that turns values into upper case; with `fail` it raises."""

    def __init__(self) -> None:
        self.told: list[tuple[RecordMetadata | None, KafkaError | None]] = []
        self.fail = False
        self.closed = 0

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        if self.fail:
            raise RuntimeError("on_send")
        return record._replace(value=record.value.upper())

    def on_acknowledgement(self, metadata: RecordMetadata | None, error: KafkaError | None) -> None:
        self.told.append((metadata, error))
        if self.fail:
            raise RuntimeError("on_acknowledgement")

    def close(self) -> None:
        self.closed += 1
