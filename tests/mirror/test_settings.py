"""Configurations with which a mirror would break its word are refused."""

from __future__ import annotations

import pytest

from kafka08.consumer import ConsumerConfig
from kafka08.errors import ConfigError
from kafka08.mirror import MirrorSettings
from kafka08.mirror.settings import SOURCE_DEFAULTS, TARGET_DEFAULTS, check_apart, check_configs
from kafka08.producer import KafkaProducerConfig


def source(**changes: str) -> ConsumerConfig:
    keys = {"group.id": "g", "zookeeper.connect": "h:2181", **SOURCE_DEFAULTS}
    return ConsumerConfig(keys | {key.replace("_", "."): value for key, value in changes.items()})


def target(**changes: str) -> KafkaProducerConfig:
    keys = {"bootstrap.servers": "h:9092", **TARGET_DEFAULTS}
    return KafkaProducerConfig(
        keys | {key.replace("_", "."): value for key, value in changes.items()}
    )


def test_the_defaults_keep_the_promises() -> None:
    """They begin at the start of a new topic, and wait for every replica."""
    check_configs(source(), target())
    assert "smallest" == source().auto_offset_reset
    assert target().acks == "all"


def test_settings_that_lose_messages_or_order_are_refused() -> None:
    """The error has the key and the reason."""
    with pytest.raises(ConfigError, match=r"auto\.commit\.enable"):
        check_configs(source(auto_commit_enable="false"), target())
    with pytest.raises(ConfigError, match="acks: with 0"):
        check_configs(source(), target(acks="0"))
    with pytest.raises(ConfigError, match=r"max\.in\.flight"):
        check_configs(source(), target(max_in_flight_requests_per_connection="5"))


def test_a_cluster_is_not_copied_into_itself() -> None:
    """One broker in common is enough; the same port on another host is another broker."""
    check_apart([("a", 9092), ("b", 9092)], [("c", 9092), ("a", 9093)])
    with pytest.raises(ConfigError, match="the same cluster: broker b:9092 is in both"):
        check_apart([("a", 9092), ("b", 9092)], [("b", 9092), ("c", 9092)])


def test_there_is_at_least_one_stream_and_one_producer() -> None:
    """None would copy nothing, in silence."""
    with pytest.raises(ConfigError, match="streams: 0 is not at least 1"):
        MirrorSettings(streams=0)
    with pytest.raises(ConfigError, match="producers: 0 is not at least 1"):
        MirrorSettings(producers=0)
