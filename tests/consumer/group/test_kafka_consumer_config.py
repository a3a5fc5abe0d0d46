"""The keys of 0.10.2's consumer: defaults, what goes together, parts by name."""

from __future__ import annotations

from typing import Any

import pytest

from kafka08.consumer import KafkaConsumer, KafkaConsumerConfig, PartitionAssignor
from kafka08.errors import ConfigError


class Mine(PartitionAssignor):
    name = "mine"


def config(**keys: Any) -> KafkaConsumerConfig:
    return KafkaConsumerConfig(**{"bootstrap_servers": "h:9092", **keys})


JAVA_DEFAULTS = {
    "group.id": "",
    "client.id": "",
    "auto.offset.reset": "latest",
    "enable.auto.commit": True,
    "auto.commit.interval.ms": 5000,
    "fetch.min.bytes": 1,
    "fetch.max.wait.ms": 500,
    "fetch.max.bytes": 52428800,
    "max.partition.fetch.bytes": 1048576,
    "check.crcs": True,
    "max.poll.records": 500,
    "max.poll.interval.ms": 300000,
    "session.timeout.ms": 10000,
    "heartbeat.interval.ms": 3000,
    "exclude.internal.topics": True,
    "metadata.max.age.ms": 300000,
    "request.timeout.ms": 305000,
    "retry.backoff.ms": 100,
    "reconnect.backoff.ms": 50,
    "connections.max.idle.ms": 540000,
    "partition.assignment.strategy": "org.apache.kafka.clients.consumer.RangeAssignor",
}


@pytest.mark.parametrize("name", JAVA_DEFAULTS)
def test_a_default_is_java_s(name: str) -> None:
    """Of 0.10.2.2, read from its class; socket buffers alone differ."""
    assert getattr(config(), name.replace(".", "_")) == JAVA_DEFAULTS[name]


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"heartbeat_interval_ms": 10_000}, "heartbeat.interval.ms: 10000 is not below"),
        ({"request_timeout_ms": 10_000}, "request.timeout.ms: 10000 is not above session"),
        ({"fetch_max_wait_ms": 400_000}, "request.timeout.ms: 305000 is not above fetch.max"),
        ({"auto_offset_reset": "smallest"}, "auto.offset.reset"),
        ({"partition_assignment_strategy": ""}, "nothing is not a list"),
        ({"partition_assignment_strategy": "range,range"}, "range, range is not a list"),
        ({"partition_assignment_strategy": "fair"}, "'fair' is none of"),
        ({"value_deserializer": "no.such.Class"}, "value.deserializer"),
        ({"bootstrap_servers": "nowhere"}, "bootstrap.servers"),
    ],
)
def test_a_bad_value_is_named(keys: dict[str, Any], words: str) -> None:
    """As Java's constructor refuses it, with key, value and limit."""
    with pytest.raises(ConfigError, match=words):
        config(**keys)


def test_assignors_by_every_name() -> None:
    """Java's, their own, and the user's by module:callable, in order of preference."""
    names = f"sticky, org.apache.kafka.clients.consumer.RoundRobinAssignor,range,{__name__}:Mine"
    chosen = config(partition_assignment_strategy=names).assignors()
    assert [one.name for one in chosen] == ["sticky", "roundrobin", "range", "mine"]


def test_deserializers_by_name() -> None:
    """Bytes need no deserializer; Java's numbers are big-endian."""
    serialization = "org.apache.kafka.common.serialization."
    key, value = config(
        key_deserializer=serialization + "LongDeserializer",
        value_deserializer=serialization + "StringDeserializer",
    ).deserializers()
    assert key is not None
    assert value is not None
    assert (key("t", (5).to_bytes(8, "big")), value("t", "grün".encode())) == (5, "grün")
    assert config().deserializers() == (None, None)


def test_a_key_without_effect_is_named_at_start() -> None:
    """So is check.crcs=false: CRCs are checked."""
    chosen = config(check_crcs=False, metrics_num_samples=3)
    assert chosen.without_effect == ["check.crcs", "metrics.num.samples"]
    assert not config(check_crcs=True).without_effect


def test_a_configuration_or_keywords() -> None:
    """Not both, which would hide one of them."""
    with pytest.raises(ConfigError, match="not both"):
        KafkaConsumer(config(), group_id="g")
