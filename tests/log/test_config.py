from __future__ import annotations

import logging

import pytest

from kafka08.errors import ConfigError
from kafka08.log import LogConfig
from kafka08.topic_config import TOPIC_KEYS


def test_every_topic_key_is_a_field() -> None:
    """The table of topic keys and the fields are the same names, dots for underscores."""
    assert {name.replace(".", "_") for name in TOPIC_KEYS} == set(LogConfig.__slots__)


def test_overrides_lie_over_the_defaults() -> None:
    """Only what the topic sets changes."""
    defaults = LogConfig(segment_bytes=5000, retention_ms=7)
    config = defaults.from_overrides({"retention.ms": "100000000", "cleanup.policy": "compact"})
    assert (5000, 100_000_000, True) == (config.segment_bytes, config.retention_ms, config.compact)


def test_an_unknown_key_is_refused_as_the_tools_refuse_it() -> None:
    """The text is TopicCommand's."""
    with pytest.raises(ConfigError, match=r'Unknown configuration "x"\.'):
        LogConfig().from_overrides({"x": "1"})


def test_a_stored_unknown_key_is_skipped_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    """A topic configured by a newer tool still loads; the log names topic and key."""
    with caplog.at_level(logging.WARNING):
        config = LogConfig().from_stored("t", {"segment.ms": "5", "message.format.version": "0.10"})
    assert 5 == config.segment_ms
    assert "Topic t: skipping unknown configuration message.format.version" in caplog.text


def test_a_bad_value_names_key_value_and_range() -> None:
    """Segments below the smallest message cannot be."""
    with pytest.raises(ConfigError, match=r"segment\.bytes: '13' is outside the range 14 to"):
        LogConfig().from_overrides({"segment.bytes": "13"})
