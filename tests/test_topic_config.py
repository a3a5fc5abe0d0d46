"""The table of topic configuration keys."""

from __future__ import annotations

import pytest

from kafka08.errors import ConfigError
from kafka08.levels import Level
from kafka08.topic_config import (
    THROTTLED,
    TOPIC_KEYS,
    UNCLEAN_ELECTIONS,
    check_names,
    override_texts,
    parse_stored_config,
    parse_topic_config,
    unclean_elections_allowed,
)


def test_values_are_parsed_by_their_key() -> None:
    """Numbers, fractions, booleans and words, written as Kafka's tools write them."""
    assert parse_topic_config(
        {
            "segment.bytes": "5000",
            "retention.ms": " 9223372036854775807",
            "min.cleanable.dirty.ratio": "0.25",
            "unclean.leader.election.enable": "FALSE",
            "cleanup.policy": " Compact ",
        }
    ) == {
        "segment.bytes": 5000,
        "retention.ms": 2**63 - 1,
        "min.cleanable.dirty.ratio": 0.25,
        "unclean.leader.election.enable": False,
        "cleanup.policy": "compact",
    }


NO_RANGE = {"leader.replication.throttled.replicas", "follower.replication.throttled.replicas"}


@pytest.mark.parametrize("name", sorted(set(TOPIC_KEYS) - NO_RANGE))
def test_every_key_refuses_nonsense_by_name(name: str) -> None:
    """The error names key and value."""
    with pytest.raises(ConfigError, match=rf"{name}: '\?'"):
        parse_topic_config({name: "?"}, Level.V0_10_2)


@pytest.mark.parametrize("name", sorted(TOPIC_KEYS))
@pytest.mark.parametrize("level", list(Level))
def test_a_level_has_the_keys_of_its_release(level: Level, name: str) -> None:
    """A later key is refused by name."""
    if TOPIC_KEYS[name].declared.since <= level:
        check_names([name], level)
    else:
        with pytest.raises(ConfigError, match=rf'Unknown configuration "{name}"'):
            check_names([name], level)


@pytest.mark.parametrize("level", [Level.V0_8_2, Level.V0_9_0, Level.V0_10_2])
def test_both_cleanup_policies_are_of_0_10(level: Level) -> None:
    """A list of policies is one word to a release before 0.10.1."""
    overrides = {"cleanup.policy": "compact, delete"}
    if level is Level.V0_10_2:
        assert {"cleanup.policy": "compact,delete"} == parse_topic_config(overrides, level)
    else:
        with pytest.raises(ConfigError, match=r"cleanup\.policy: 'compact,delete' is not one of"):
            parse_topic_config(overrides, level)


def test_cleanup_policies_have_lower_case_from_0_9_on() -> None:
    """A JVM broker could not start with another. What is stored already is understood."""
    overrides = {"cleanup.policy": "Compact"}
    assert {"cleanup.policy": "compact"} == parse_topic_config(overrides)
    for level in (Level.V0_9_0, Level.V0_10_2):
        with pytest.raises(ConfigError, match="'Compact' must be in lower case"):
            parse_topic_config(overrides, level)
        assert {"cleanup.policy": "compact"} == parse_stored_config("t", overrides, level)


def test_replicas_to_throttle_are_named() -> None:
    """A JVM broker could not start with others."""
    for key in THROTTLED:
        assert parse_topic_config({key: "0:1,2:3"}, Level.V0_10_2)
        with pytest.raises(ConfigError, match=r"'x' is neither partition:broker"):
            parse_topic_config({key: "x"}, Level.V0_10_2)


def test_replicas_to_throttle_are_refused_in_linear_time() -> None:
    """The longest text of a request with a fault at its end is refused at once: brokers serve no
    one else meanwhile."""
    for text in (", " * 16_000 + "x", "0:1 , " * 5_000 + "x", "," + " " * 32_000 + "x"):
        with pytest.raises(ConfigError, match="is neither partition:broker"):
            parse_topic_config({THROTTLED[0]: text}, Level.V0_10_2)


def test_a_message_format_is_one_of_the_level() -> None:
    """0.11 cannot be stored by a broker of 0.10.2."""
    with pytest.raises(ConfigError, match=r"message\.format\.version: '0\.11\.0' is not one of"):
        parse_topic_config({"message.format.version": "0.11.0"}, Level.V0_10_2)


def test_a_value_that_cannot_work_names_key_value_and_range() -> None:
    """Segments below the smallest message cannot be."""
    with pytest.raises(ConfigError, match=r"segment\.bytes: '13' is outside the range 14 to"):
        parse_topic_config({"segment.bytes": "13"})


def test_unknown_keys_are_refused_in_kafkas_words() -> None:
    """The errors are those of kafka.log.LogConfig.validateNames."""
    with pytest.raises(ConfigError, match=r'Unknown configuration "retention"\.'):
        check_names(["retention"])


@pytest.mark.parametrize(
    ("text", "default", "allowed"),
    [
        (None, True, True),
        (None, False, False),
        ("false", True, False),
        ("False", True, False),
        (" TRUE ", False, True),
        ("no", True, True),
        ("yes", False, False),
    ],
)
def test_unclean_elections_by_topic_and_broker(
    text: str | None, default: bool, allowed: bool
) -> None:
    """An override has any case, as for Scala's toBoolean; without a valid one the broker's default
    applies."""
    overrides = {} if text is None else {UNCLEAN_ELECTIONS: text}
    assert unclean_elections_allowed("t", overrides, default) is allowed


def test_booleans_are_stored_as_kafka_writes_them() -> None:
    """A False of Python's would be a word that 0.8 tools have never seen."""
    stored = override_texts({UNCLEAN_ELECTIONS: False, "retention.ms": 5, "cleanup.policy": "c"})
    assert stored == {UNCLEAN_ELECTIONS: "false", "retention.ms": "5", "cleanup.policy": "c"}


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("retention.ms", "-2", -2),
        ("retention.bytes", str(-(2**63)), -(2**63)),
        ("flush.messages", "0", 0),
        ("cleanup.policy", "", ""),
        ("cleanup.policy", "delete, compact,delete", "delete,compact"),
        ("compression.type", " gzip ", "gzip"),
    ],
)
def test_values_that_later_releases_take(name: str, text: str, value: object) -> None:
    """0.10.2.2 takes them, and a topic may have them when its JVM broker is replaced. At 0.8.2 they
    stay refused: there a negative retention deletes everything, for example."""
    assert parse_topic_config({name: text}, Level.V0_10_2) == {name: value}
    if name != "compression.type":  # unknown there
        with pytest.raises(ConfigError):
            parse_topic_config({name: text}, Level.V0_8_2)


def test_a_number_of_python_alone_is_refused() -> None:
    """1_000 would end a JVM broker of the same cluster."""
    with pytest.raises(ConfigError, match=r"retention.ms: '1_000' is not a number"):
        parse_topic_config({"retention.ms": "1_000"})
