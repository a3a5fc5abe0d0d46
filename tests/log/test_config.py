from __future__ import annotations

import logging
from contextlib import nullcontext, suppress
from pathlib import Path

import pytest

from kafka08.errors import ApiError, MessageSetSizeTooLarge, MessageSizeTooLarge
from kafka08.levels import Level
from kafka08.log.config import LogConfig
from kafka08.log.manager import LogManager
from kafka08.protocol import message_set
from kafka08.structs import TopicPartition
from kafka08.topic_config import TOPIC_KEYS


def test_every_topic_key_is_a_field() -> None:
    """The keys in the table of topic keys are the fields, with dots for underscores."""
    made = {"level", "rules", "append_rules", "target_codec", "gives_time"}
    assert {name.replace(".", "_") for name in TOPIC_KEYS} == set(LogConfig.__slots__) - made


def test_overrides_lie_over_the_defaults() -> None:
    """An override changes its own key and no other."""
    defaults = LogConfig(segment_bytes=5000, retention_ms=7)
    config = defaults.from_stored("t", {"retention.ms": "100000000", "cleanup.policy": "compact"})
    assert (5000, 100_000_000, True) == (config.segment_bytes, config.retention_ms, config.compact)


def test_a_stored_unknown_key_is_skipped_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    """A topic that a newer tool configured still loads. The log names topic and key."""
    with caplog.at_level(logging.WARNING):
        config = LogConfig().from_stored("t", {"segment.ms": "5", "message.format.version": "0.10"})
    assert 5 == config.segment_ms
    assert "Topic t: skipping unknown configuration message.format.version" in caplog.text


@pytest.mark.parametrize(
    ("overrides", "refused"),
    [
        ({"cleanup.policy": "compact,delete"}, None),
        ({"flush.ms": "-1"}, None),
        ({"flush.messages": "0"}, None),
        ({"index.interval.bytes": "-1"}, None),
        ({"retention.bytes": "-2"}, None),
        ({"retention.ms": str(-(2**63))}, None),
        ({"segment.bytes": "-1"}, MessageSetSizeTooLarge),
        ({"segment.bytes": "1"}, MessageSetSizeTooLarge),
        ({"segment.index.bytes": "0"}, None),
        ({"segment.ms": "-1", "segment.jitter.ms": "-5"}, None),
        ({"max.message.bytes": "-1"}, MessageSizeTooLarge),
        ({"min.cleanable.dirty.ratio": "-0.5"}, None),
        ({"min.insync.replicas": "0"}, None),
    ],
    ids=str,
)
def test_values_that_the_jvm_accepts_are_accepted(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    overrides: dict[str, str],
    refused: type[ApiError] | None,
) -> None:
    """kafka.log.LogConfig.fromProps checks the type alone. We accept the values that a live 0.8.2.2
    accepts and refuse the rest with the same code; the log warns of each value that makes no sense.
    (A live 0.8.2.2 cannot create the log of a topic whose segment.index.bytes is below 8, nor the
    other logs of the same request.)"""
    with caplog.at_level(logging.WARNING):
        manager = LogManager([tmp_path], LogConfig(), {"t": overrides})
    for name, text in overrides.items():
        assert f"Topic t: {name}: {text!r} is " in caplog.text
        assert f"kafka08 topic alter t --config {name}=VALUE" in caplog.text
    log = manager.get_or_create(TopicPartition("t", 0))
    for _ in range(3):
        with pytest.raises(refused) if refused else nullcontext():
            log.append(bytearray(message_set.encode([(None, b"x")])))
    assert (0 if refused else 3) == log.log_end_offset
    manager.retain()
    manager.shutdown()


def test_a_value_that_makes_sense_is_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    """A value that makes sense gets no warning; -1 turns a retention off."""
    LogConfig().from_stored("t", {"retention.ms": "-1", "retention.bytes": "-1"})
    assert "" == caplog.text


def test_a_stored_value_that_cannot_be_read_leaves_the_default(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A stored value that cannot be parsed leaves the default. The log has an error with topic, key
    and value, and the topic's other overrides apply."""
    stored = {"t": {"retention.ms": "week", "segment.bytes": "99999999999", "segment.ms": "9"}}
    config = LogManager([tmp_path], LogConfig(), stored).config_of("t")
    assert LogConfig(segment_ms=9) == config
    assert "Topic t: retention.ms: 'week' is not a number" in caplog.text
    assert "Topic t: segment.bytes: '99999999999' is outside the range" in caplog.text


WORDS = (
    *("zstd", "GZIP", " gzip ", "producer,gzip", "compact", "deletecompact", ",", "*", "0:1"),
    *("", " ", "\0", "\ud800", "true ", "yes", "0.10.2", "0.11", "LogAppendTime", "x" * 40_000),
    *("NaN", "-inf", "1e999", "1.5", "1_000", "٣", "-1", "0", "9" * 30, "-" + "9" * 5_000),
)


@pytest.mark.parametrize("level", Level)
def test_any_stored_word_makes_a_configuration(level: Level) -> None:
    """Any text as the value of any key, alone or in all keys together, gives a configuration that
    can be used. An exception would end the start of a broker, since all topics are read there."""
    defaults = LogConfig(level=level)
    for word in WORDS:
        for names in [*([name] for name in TOPIC_KEYS), list(TOPIC_KEYS)]:
            config = defaults.from_stored("t", dict.fromkeys(names, word))
            assert str(config)
            data = bytearray(message_set.encode([(b"k", b"x")]))
            with suppress(ApiError):
                config.prepare(data, 0, 0)
            with suppress(ApiError):
                config.number(data, 0, 0)


def test_a_codec_that_is_none_leaves_the_default(caplog: pytest.LogCaptureFixture) -> None:
    """0.9 knows no other codec than these, and neither do we."""
    config = LogConfig(level=Level.V0_9_0, compression_type="gzip")
    assert config == config.from_stored("t", {"compression.type": "zstd"})
    assert "Topic t: compression.type: 'zstd' is not one of uncompressed" in caplog.text
