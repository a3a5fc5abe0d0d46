from __future__ import annotations

import logging
from contextlib import suppress
from pathlib import Path

import pytest

from kafka08.errors import ApiError
from kafka08.log import LogConfig
from kafka08.log.manager import LogManager
from kafka08.protocol import message_set
from kafka08.structs import TopicPartition
from kafka08.topic_config import TOPIC_KEYS


def test_every_topic_key_is_a_field() -> None:
    """The table of topic keys and the fields are the same names, dots for underscores."""
    made = {"level", "rules", "target_codec"}
    assert {name.replace(".", "_") for name in TOPIC_KEYS} == set(LogConfig.__slots__) - made


def test_overrides_lie_over_the_defaults() -> None:
    """Only what the topic sets changes."""
    defaults = LogConfig(segment_bytes=5000, retention_ms=7)
    config = defaults.from_stored("t", {"retention.ms": "100000000", "cleanup.policy": "compact"})
    assert (5000, 100_000_000, True) == (config.segment_bytes, config.retention_ms, config.compact)


def test_a_stored_unknown_key_is_skipped_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    """A topic configured by a newer tool still loads; the log names topic and key."""
    with caplog.at_level(logging.WARNING):
        config = LogConfig().from_stored("t", {"segment.ms": "5", "message.format.version": "0.10"})
    assert 5 == config.segment_ms
    assert "Topic t: skipping unknown configuration message.format.version" in caplog.text


@pytest.mark.parametrize(
    "overrides",
    [
        {"cleanup.policy": "compact,delete"},
        {"flush.ms": "-1"},
        {"flush.messages": "0"},
        {"retention.bytes": "-2"},
        {"retention.ms": str(-(2**63))},
        {"segment.bytes": "-1"},
        {"segment.index.bytes": "0"},
        {"segment.ms": "-1", "segment.jitter.ms": "-5"},
        {"max.message.bytes": "-1"},
        {"min.cleanable.dirty.ratio": "-0.5"},
        {"min.insync.replicas": "0"},
    ],
    ids=str,
)
def test_what_the_jvm_can_read_loads_and_appends(tmp_path: Path, overrides: dict[str, str]) -> None:
    """kafka.log.LogConfig.fromProps asks for the type alone; a set may be refused, no more."""
    manager = LogManager([tmp_path], LogConfig(), {"t": overrides})
    stored = {name.replace(".", "_"): value for name, value in overrides.items()}
    assert stored == {name: str(getattr(manager.config_of("t"), name)) for name in stored}
    log = manager.get_or_create(TopicPartition("t", 0))
    for _ in range(3):
        with suppress(ApiError):
            log.append(bytearray(message_set.encode([(None, b"x")])))
    manager.retain()
    manager.shutdown()


def test_a_stored_value_that_cannot_be_read_leaves_the_default(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """An error in the log names topic, key and value; the topic's other overrides count."""
    stored = {"t": {"retention.ms": "week", "segment.bytes": "99999999999", "segment.ms": "9"}}
    config = LogManager([tmp_path], LogConfig(), stored).config_of("t")
    assert LogConfig(segment_ms=9) == config
    assert "Topic t: retention.ms: 'week' is not a number" in caplog.text
    assert "Topic t: segment.bytes: '99999999999' is outside the range" in caplog.text
