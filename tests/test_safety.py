"""A key that asks for safety which there is not is an error where Kafka would act on it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from kafka08.arrow.options import parse_read_options
from kafka08.broker.settings.config import BrokerConfig
from kafka08.config import Config
from kafka08.consumer import ConsumerConfig, KafkaConsumerConfig
from kafka08.errors import ConfigError
from kafka08.producer import KafkaProducerConfig, ProducerConfig
from kafka08.safety import ALLOW
from kafka08.spark.write_options import parse_write_options

Given = dict[str, str]


def producer(given: Given) -> Config:
    return KafkaProducerConfig({"bootstrap.servers": "h:1", **given})


def consumer(given: Given) -> Config:
    return KafkaConsumerConfig({"bootstrap.servers": "h:1", **given})


def broker(given: Given) -> Config:
    given.setdefault("api.level", "0.10.2")
    return BrokerConfig({"broker.id": "0", "zookeeper.connect": "h:1", **given})


def spark_read(given: Given) -> object:
    of_kafka = {f"kafka.{name}": value for name, value in given.items()}
    return parse_read_options({"subscribe": "t", "kafka.bootstrap.servers": "h:1", **of_kafka})


def spark_write(given: Given) -> object:
    of_kafka = {f"kafka.{name}": value for name, value in given.items()}
    return parse_write_options({"topic": "t", "kafka.bootstrap.servers": "h:1", **of_kafka})


@pytest.mark.parametrize(
    ("make", "name", "value"),
    [
        (spark_write, "enable.idempotence", "TRUE"),
        (broker, "authorizer.class.name", "kafka.security.auth.SimpleAclAuthorizer"),
        (broker, "zookeeper.set.acl", "true"),
    ],
)
def test_less_safety_than_asked_is_an_error(
    make: Callable[[Given], Any], name: str, value: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The error names the key, what happens instead, and how to accept it; accepted it is a
    warning."""
    with pytest.raises(ConfigError) as refused:
        make({name: value})
    assert str(refused.value).startswith(f"{name}: {value!r} asks for safety that kafka08 does not")
    assert f"{ALLOW}={name}" in str(refused.value)
    with caplog.at_level(logging.WARNING):
        made = make({name: value, ALLOW: f" {name}, zookeeper.set.acl"})
        if isinstance(made, Config):
            made.log_notes()
    assert f"{name}={value} has no effect, as {ALLOW} allows".lower() in caplog.text.lower()


@pytest.mark.parametrize(
    ("make", "given"),
    [
        (producer, {"security.protocol": "PLAINTEXT", "ssl.truststore.location": "/f"}),
        (producer, {"enable.idempotence": "false", "transactional.id": ""}),
        (producer, {"isolation.level": "read_committed", "sasl.mechanism": "PLAIN"}),
        (consumer, {"isolation.level": "read_uncommitted", "transactional.id": "t"}),
        (spark_read, {"isolation.level": "read_committed", ALLOW: "isolation.level"}),
        (broker, {"super.users": "User:admin", "zookeeper.set.acl": "false"}),
        (broker, {"api.level": "0.8.2", "authorizer.class.name": "A", "zookeeper.set.acl": "true"}),
    ],
)
def test_what_kafka_would_ignore_too_is_no_error(
    make: Callable[[Given], Any], given: Given
) -> None:
    """Files of JVM clients have such keys, and a client's file those of another client."""
    make(given)


def test_a_broker_of_0_8_notes_what_it_ignores(caplog: pytest.LogCaptureFixture) -> None:
    """As the real one does: no such key is valid there."""
    broker({"api.level": "0.8.2", "authorizer.class.name": "A"}).log_notes()
    assert "Property authorizer.class.name is not valid" in caplog.text


def test_the_old_clients_ignore_the_keys_as_0_8_does() -> None:
    """They are of no release that knows them; the unknown keys are logged."""
    given = {"security.protocol": "SSL", "transactional.id": "t"}
    ProducerConfig({"metadata.broker.list": "h:1", **given})
    ConsumerConfig({"group.id": "g", "zookeeper.connect": "h:1", **given})


def test_the_override_knows_its_keys() -> None:
    """A misspelt one would be taken for a permission."""
    with pytest.raises(ConfigError, match=r"did you mean transactional\.id"):
        producer({ALLOW: "transactional.ids"})
