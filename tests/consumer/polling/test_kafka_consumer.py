"""A KafkaConsumer refuses wrong calls before it asks any broker."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kafka08.consumer import KafkaConsumer
from kafka08.errors import ConfigError
from kafka08.structs import TopicPartition
from tests.forking import in_child

NOWHERE = "127.0.0.1:1"
TP = TopicPartition("t", 0)


@pytest.fixture
def consumer() -> Iterator[Any]:
    with KafkaConsumer(bootstrap_servers=NOWHERE, group_id="g") as consumer:
        yield consumer


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda c: c.assign([("t", "0")]), TypeError, "('t', '0') is not a TopicPartition"),
        (lambda c: c.assign(TP), TypeError, "'t' is not a TopicPartition"),
        (lambda c: c.assign([("t", -1)]), ValueError, "[t,-1]: the lowest partition is 0"),
        (lambda c: c.assign([("t t", 0)]), ValueError, "'t t'"),
        (lambda c: c.pause([TP]), TypeError, "one by one"),
        (lambda c: c.committed([TP]), TypeError, "is not a TopicPartition"),
        (lambda c: c.end_offsets(TP), TypeError, "'t' is not a TopicPartition"),
        (lambda c: c.beginning_offsets(["t"]), TypeError, "'t' is not a TopicPartition"),
        (lambda c: c.seek(TP, 1.5), TypeError, "float"),
        (lambda c: c.seek(TP, -1), ValueError, "cannot seek to -1"),
        (lambda c: c.commit({"t": 4}), TypeError, "'t' is not a TopicPartition"),
        (lambda c: c.commit({TP: 4.0}), TypeError, "[t,0]: 4.0 is not an offset"),
        (lambda c: c.offsets_for_times({"t": 4}), TypeError, "'t' is not a TopicPartition"),
        (lambda c: c.subscribe([5]), TypeError, "must be a str, not int"),
        (lambda c: c.subscribe("^logs-.*"), ValueError, "re.compile"),
    ],
)
def test_arguments_of_the_wrong_kind_are_named(
    consumer: KafkaConsumer, call: Callable[[Any], object], error: type[Exception], said: str
) -> None:
    """The error is raised by the call itself, not by a thread later on."""
    with pytest.raises(error, match=re.escape(said)):
        call(consumer)


@pytest.mark.parametrize("argument", ["t", {"bootstrap.servers": NOWHERE}])
def test_only_a_configuration_configures(argument: Any) -> None:
    """Other libraries take topics or a dict in its place."""
    with pytest.raises(ConfigError, match=re.escape("pass KafkaConsumerConfig({...})")):
        KafkaConsumer(argument)


def test_a_forked_process_cannot_use_the_consumer_of_its_parent() -> None:
    """Nor go on with an iteration that began before: its threads do not exist there. `close` does
    nothing: it would leave the parent's group."""
    with KafkaConsumer(bootstrap_servers=NOWHERE, group_id="g") as consumer:
        consumer.subscribe(["t"])
        messages = iter(consumer)
        assert "make a KafkaConsumer in each" in in_child(lambda: consumer.poll(0.1))
        assert "make a KafkaConsumer in each" in in_child(lambda: next(messages))
        assert in_child(consumer.close) == "None"
        consumer.poll(0.1)
