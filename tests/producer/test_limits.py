"""Waits and ids at and beyond the limits of the system and of the protocol."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import pytest

from kafka08.consumer import ConsumerConfig, KafkaConsumerConfig
from kafka08.errors import ConfigError, RequestTimeout
from kafka08.producer import KafkaProducerConfig, ProducerConfig, ProducerRecord
from tests.producer.producers import producer_on
from tests.producer.tcp_cluster import TcpCluster

LONG_MAX = 2**63 - 1


@pytest.mark.parametrize("timeout", [inf, 1e10])
def test_a_wait_may_be_longer_than_the_system_takes(cluster: TcpCluster, timeout: float) -> None:
    """Also with times in the configuration that no poller takes."""
    config = {"linger_ms": LONG_MAX, "metadata_max_age_ms": LONG_MAX, "connections_max_idle_ms": -1}
    producer = producer_on(cluster, **config)
    future = producer.send(ProducerRecord("t", b"v", partition=0))
    producer.flush(timeout)
    assert future.result(timeout).offset == 0
    producer.close(timeout)
    assert not producer._sender.is_alive


@pytest.mark.parametrize("text", ["x" * 32768, "\ud800"])
@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda t: KafkaProducerConfig(bootstrap_servers="h:1", client_id=t), "client.id"),
        (lambda t: KafkaConsumerConfig(bootstrap_servers="h:1", client_id=t), "client.id"),
        (lambda t: KafkaConsumerConfig(bootstrap_servers="h:1", group_id=t), "group.id"),
        (lambda t: ProducerConfig(metadata_broker_list="h:1", client_id=t), "client.id"),
        (lambda t: ConsumerConfig(zookeeper_connect="h:1", group_id=t), "group.id"),
    ],
)
def test_an_id_that_no_request_carries_is_refused(
    make: Callable[[str], Any], name: str, text: str
) -> None:
    """Else each request fails, which looks like brokers that cannot be reached."""
    with pytest.raises(ConfigError, match=name):
        make(text)


def test_a_missing_topic_is_named_so(cluster: TcpCluster) -> None:
    """By the error's name and number, with what to check: the brokers are well."""
    with (
        producer_on(cluster, max_block_ms=50) as producer,
        pytest.raises(RequestTimeout, match=r"said UnknownTopicOrPartition \(3\); check"),
    ):
        producer.partitions_for("missing")
