"""ConsumerConfig has the keys, defaults and checks of 0.8.2.2."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from kafka08 import consumer
from kafka08.consumer.zookeeper.config import ConsumerConfig
from kafka08.errors import ConfigError

MINIMAL = {"group.id": "g", "zookeeper.connect": "h:1"}

DEFAULTS = {
    "consumer.id": None,
    "auto.offset.reset": "largest",
    "auto.commit.enable": True,
    "auto.commit.interval.ms": 60000,
    "offsets.storage": "zookeeper",
    "dual.commit.enabled": False,
    "partition.assignment.strategy": "range",
    "fetch.message.max.bytes": 1048576,
    "fetch.min.bytes": 1,
    "fetch.wait.max.ms": 100,
    "queued.max.message.chunks": 2,
    "num.consumer.fetchers": 1,
    "rebalance.max.retries": 4,
    "rebalance.backoff.ms": 2000,
    "zookeeper.session.timeout.ms": 6000,
    "zookeeper.connection.timeout.ms": 6000,
    "zookeeper.sync.time.ms": 2000,
    "consumer.timeout.ms": -1,
    "exclude.internal.topics": True,
    "offsets.channel.backoff.ms": 1000,
    "offsets.channel.socket.timeout.ms": 10000,
    "offsets.commit.max.retries": 5,
    "socket.timeout.ms": 30000,
    "socket.receive.buffer.bytes": -1,  # 65536 there: docs/compatibility.md says why
    "refresh.leader.backoff.ms": 200,
    "client.id": "g",
}


@pytest.mark.parametrize(("name", "expected"), DEFAULTS.items())
def test_defaults_are_those_of_0_8_2_2(name: str, expected: object) -> None:
    """Every key of ConsumerConfig and ZKConfig has its default."""
    assert expected == getattr(ConsumerConfig(MINIMAL), name.replace(".", "_"))


def test_dependent_defaults_follow_their_key() -> None:
    """The defaults of some keys follow other keys: backoff the sync time, dual commit the storage,
    the connection timeout that of the session."""
    config = ConsumerConfig(
        MINIMAL,
        zookeeper_sync_time_ms=7,
        offsets_storage="KAFKA",
        zookeeper_session_timeout_ms=9,
        client_id="me",
    )
    assert (config.rebalance_backoff_ms, config.dual_commit_enabled) == (7, True)
    assert (config.offsets_storage, config.zookeeper_connection_timeout_ms) == ("kafka", 9)
    assert config.client_id == "me"
    assert not ConsumerConfig(MINIMAL, offsets_storage="kafka", dual_commit_enabled=False).unknown


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("group.id", "a b"),
        ("group.id", ""),
        ("client.id", "a/b"),
        ("consumer.id", "a/b"),
        ("auto.offset.reset", "earliest"),
        ("offsets.storage", "disk"),
        ("auto.commit.enable", "yes"),
        ("fetch.wait.max.ms", "40000"),
        ("queued.max.message.chunks", "0"),
    ],
)
def test_bad_values_name_their_key(key: str, value: str) -> None:
    """The error has the key (or the other one of a pair) and the value."""
    with pytest.raises(ConfigError, match=re.escape(value) if value else "group.id"):
        ConsumerConfig({**MINIMAL, key: value})


def test_group_is_required() -> None:
    """A missing group.id is an error with the text of 0.8.2.2."""
    with pytest.raises(ConfigError, match=r"Missing required property 'group\.id'"):
        ConsumerConfig({"zookeeper.connect": "h:1"})


def test_changes_keep_given_values() -> None:
    """`with_changes` computes the dependent defaults again."""
    config = ConsumerConfig(MINIMAL, offsets_storage="kafka")
    changed = config.with_changes(offsets_storage="zookeeper", consumer_timeout_ms=5)
    assert (changed.dual_commit_enabled, changed.consumer_timeout_ms) == (False, 5)


def attributes_read() -> set[str]:
    """The attributes that the consumer's modules read, with the defaults in config.py itself."""
    return {
        node.attr
        for path in Path(consumer.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    }


def test_guarantee_7_the_keys_are_those_of_0_8_2_2() -> None:
    """The keys are exactly those of 0.8.2.2."""
    assert set(ConsumerConfig.KEYS) == {*MINIMAL, *DEFAULTS}


@pytest.mark.parametrize("name", [*MINIMAL, *DEFAULTS])
def test_guarantee_7_each_key_is_honoured_or_named(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The consumer reads each key somewhere, or the key is declared to have no effect, and setting
    it gives a warning at start."""
    declared = ConsumerConfig.KEYS[name]
    if declared.effect:
        assert name.replace(".", "_") in attributes_read()
        return
    config = ConsumerConfig({**MINIMAL, name: str(DEFAULTS[name])})
    config.log_notes()
    assert f"Property {name} is accepted but has no effect here" in caplog.text


def test_guarantee_7_keys_of_others_are_named(caplog: pytest.LogCaptureFixture) -> None:
    """A key of the new consumer gives a warning. One that begins with `external` does not, as in
    0.8.2.2."""
    config = ConsumerConfig({**MINIMAL, "session.timeout.ms": "1", "external.note": "1"})
    config.log_notes()
    assert caplog.messages == [
        "Property session.timeout.ms is not valid; did you mean zookeeper.session.timeout.ms?"
    ]
