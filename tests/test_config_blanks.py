"""A blank behind a value of a .properties file: which release keeps it, and who is told."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from kafka08.arrow.option_text import OptionText
from kafka08.broker.settings.config import BrokerConfig
from kafka08.config import Config, parse_properties
from kafka08.consumer import ConsumerConfig, KafkaConsumerConfig
from kafka08.errors import ConfigError
from kafka08.producer import KafkaProducerConfig, ProducerConfig

FILE = "bootstrap.servers = h:1 \nclient.id=reader\t\nenable.auto.commit=False \nacks=all\r\n"
REQUIRED: dict[type[Config], dict[str, str]] = {
    KafkaConsumerConfig: {"bootstrap.servers": "h:1"},
    KafkaProducerConfig: {"bootstrap.servers": "h:1"},
    BrokerConfig: {"broker.id": "0", "zookeeper.connect": "h:1", "api.level": "0.10.2 "},
}


def test_new_clients_trim_and_read_booleans_in_any_case() -> None:
    """As Kafka's: from a file, a mapping and keywords."""
    given = parse_properties(FILE)
    consumer = KafkaConsumerConfig(given, group_id=" g ")
    assert (consumer.client_id, consumer.enable_auto_commit, consumer.group_id) == (
        "reader",
        False,
        "g",
    )
    assert KafkaProducerConfig(given).acks == "all"


@pytest.mark.parametrize("kind", REQUIRED)
def test_no_key_of_a_trimming_configuration_keeps_a_blank(kind: type[Config]) -> None:
    """Every key of text, at its default with a blank behind it."""
    for name, declared in kind(REQUIRED[kind]).keys.items():
        plain = REQUIRED[kind].get(name, declared.default)
        if isinstance(plain, str | bool) and declared.exists and plain != "":
            made = kind({**REQUIRED[kind], name: f"{plain} \t"})
            assert made == kind({**REQUIRED[kind], name: plain}), name


@pytest.mark.parametrize(
    ("make", "attribute"),
    [
        (lambda text: ConsumerConfig(group_id="g", zookeeper_connect="h:1/prod" + text),
         "zookeeper_connect"),
        (lambda text: BrokerConfig({"broker.id": 0, "zookeeper.connect": "h:1/prod" + text}),
         "zookeeper_connect"),
        (lambda text: ProducerConfig(metadata_broker_list="h:1", compressed_topics="t" + text),
         "compressed_topics"),
    ],
)  # fmt: skip
def test_what_0_8_2_2_keeps_is_kept_and_said(
    make: Callable[[str], Any], attribute: str, caplog: pytest.LogCaptureFixture
) -> None:
    """By a broker of its level and the old clients: the warning names the key and the blank."""
    made = make(" ")
    assert getattr(made, attribute).endswith(" ")
    with caplog.at_level(logging.WARNING):
        made.log_notes()
    assert f"Property {attribute.replace('_', '.')} has a blank at an end" in caplog.text


def test_a_no_break_space_is_said_everywhere(caplog: pytest.LogCaptureFixture) -> None:
    """Nobody trims it, and nobody sees it."""
    config = KafkaConsumerConfig(bootstrap_servers="h:1", group_id="readers\xa0")
    assert config.group_id == "readers\xa0"
    config.log_notes()
    assert r"group.id has a blank at an end: 'readers\xa0'" in caplog.text


def test_the_old_booleans_are_exact() -> None:
    """As in 0.8.2.2."""
    with pytest.raises(ConfigError, match="neither 'true' nor 'false'"):
        ConsumerConfig({"group.id": "g", "zookeeper.connect": "h:1", "auto.commit.enable": "False"})


def test_options_of_spark_are_trimmed() -> None:
    """Of a read and a write."""
    text = OptionText({"splitBy": "bytes ", "Kafka.acks": "all\t"})
    assert text.take_choice("splitBy", ["bytes"]) == "bytes"
    assert text.take_kafka_keys({}) == {"acks": "all"}
