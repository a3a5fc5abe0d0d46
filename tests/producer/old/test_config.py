"""ProducerConfig has the keys, defaults and ranges of 0.8.2.2, and its errors name the key."""

from __future__ import annotations

import re

import pytest

from kafka08.errors import ConfigError
from kafka08.producer import (
    ByteArrayPartitioner,
    DefaultEncoder,
    DefaultPartitioner,
    ProducerConfig,
    StringEncoder,
)

BROKERS = {"metadata.broker.list": "a:1,b:2"}

# The table of the old producer in kafka.producer.ProducerConfig, AsyncProducerConfig and
# SyncProducerConfigShared 0.8.2.2.
DEFAULTS = {
    "request.required.acks": 0,
    "request.timeout.ms": 10000,
    "producer.type": "sync",
    "serializer.class": "kafka.serializer.DefaultEncoder",
    "partitioner.class": "kafka.producer.DefaultPartitioner",
    "compression.codec": "none",
    "compressed.topics": None,
    "message.send.max.retries": 3,
    "retry.backoff.ms": 100,
    "topic.metadata.refresh.interval.ms": 600000,
    "queue.buffering.max.ms": 5000,
    "queue.buffering.max.messages": 10000,
    "queue.enqueue.timeout.ms": -1,
    "batch.num.messages": 200,
    "send.buffer.bytes": 102400,
    "client.id": "",
}


def test_defaults_are_those_of_0_8_2_2() -> None:
    """Every key has the default of 0.8.2.2."""
    config = ProducerConfig(BROKERS)
    assert {key: getattr(config, key.replace(".", "_")) for key in DEFAULTS} == DEFAULTS
    assert config.bootstrap == [("a", 1), ("b", 2)]
    assert isinstance(config.encoder(), DefaultEncoder)
    assert isinstance(config.key_encoder(), DefaultEncoder)
    assert isinstance(config.partitioner(), DefaultPartitioner)


@pytest.mark.parametrize(
    ("key", "value", "complaint"),
    [
        ("metadata.broker.list", "a", "not of the form host:port"),
        ("request.required.acks", "2", "outside the range -1 to 1"),
        ("request.timeout.ms", "0", "outside the range 1 to"),
        ("producer.type", "both", "not one of sync, async"),
        ("compression.codec", "zip", "not a compression codec"),
        ("client.id", "a b", "character other than"),
        ("batch.num.messages", "10001", "larger than queue.buffering.max.messages"),
        ("serializer.class", "com.example.Mine", "none of kafka.serializer.DefaultEncoder"),
        ("key.serializer.class", "nowhere_at_all:thing", "cannot be imported"),
        ("partitioner.class", "math:nothing", "cannot be imported"),
        ("partitioner.class", "math:pi", "not callable"),
        ("message.send.max.retries", "-1", "outside the range 0 to"),
    ],
)
def test_a_bad_value_is_named(key: str, value: str, complaint: str) -> None:
    """The error names key, value and the legal values."""
    with pytest.raises(ConfigError, match=f"^{re.escape(key)}: .*{complaint}"):
        ProducerConfig({**BROKERS, key: value})


def test_an_unknown_charset_is_named() -> None:
    """An unknown charset is an error where a StringEncoder would use it."""
    with pytest.raises(ConfigError, match=r"serializer.encoding: 'klingon'"):
        ProducerConfig(
            BROKERS,
            serializer_class="kafka.serializer.StringEncoder",
            serializer_encoding="klingon",
        )


def test_the_broker_list_is_required() -> None:
    """The error for a missing broker list has the text of 0.8."""
    with pytest.raises(ConfigError, match=r"Missing required property 'metadata.broker.list'"):
        ProducerConfig({})


def test_keys_of_the_queue_have_no_effect_in_sync_mode() -> None:
    """In sync mode the keys of the queue are accepted, and a warning names them."""
    config = ProducerConfig(BROKERS, queue_buffering_max_ms=1, batch_num_messages=5)
    assert config.without_effect == ["batch.num.messages", "queue.buffering.max.ms"]


@pytest.mark.parametrize(
    ("codec", "topics", "expected"),
    [
        ("none", None, {"a": 0, "b": 0}),
        ("gzip", None, {"a": 1, "b": 1}),
        ("2", "", {"a": 2, "b": 2}),
        ("lz4", " a ,c", {"a": 3, "b": 0}),
        ("0", "a", {"a": 0, "b": 0}),
    ],
)
def test_compression_of_all_or_of_named_topics(
    codec: str, topics: str | None, expected: dict[str, int]
) -> None:
    """A codec has a name or a number. An empty list of topics means all topics."""
    config = ProducerConfig(BROKERS, compression_codec=codec, compressed_topics=topics)
    assert {topic: config.codec_of(topic) for topic in expected} == expected


def test_classes_by_java_name_and_by_own_name() -> None:
    """A class may be named as in Kafka, or as module:callable."""
    config = ProducerConfig(
        BROKERS,
        serializer_class="kafka.serializer.StringEncoder",
        serializer_encoding="ISO-8859-1",
        partitioner_class="kafka.producer.ByteArrayPartitioner",
    )
    assert isinstance(config.key_encoder(), StringEncoder)
    assert config.encoder()("é") == b"\xe9"
    assert isinstance(config.partitioner(), ByteArrayPartitioner)
    own = ProducerConfig(
        BROKERS, key_serializer_class="json:dumps", partitioner_class="operator:mod"
    )
    assert own.partitioner()(7, 3) == 1
    assert isinstance(own.encoder(), DefaultEncoder)
