"""Texts about refused topic configuration values are those of a real 0.10.2.2, and of 0.11.0.3."""

from __future__ import annotations

import time

import pytest

from kafka08.broker.topics.topic_config_texts import java_double, text_of_refusal
from kafka08.levels import Level

LEVEL = Level.V0_10_2
LEADERS, FOLLOWERS = (f"{kind}.replication.throttled.replicas" for kind in ("leader", "follower"))
FORMATS = "[partitionId],[brokerId]:[partitionId],[brokerId]:[partitionId],[brokerId] etc"
REFUSED = (
    ("retention.ms", "x", "x", "Not a number of type LONG"),
    ("retention.ms", "", "", "Not a number of type LONG"),
    ("retention.ms", "9223372036854775808", "9223372036854775808", "Not a number of type LONG"),
    ("segment.bytes", "2147483648", "2147483648", "Not a number of type INT"),
    ("segment.bytes", " +13 ", "13", "Value must be at least 14"),
    ("segment.bytes", " 1_3", " 1_3", "Not a number of type INT"),
    ("segment.index.bytes", "-1", "-1", "Value must be at least 0"),
    ("min.cleanable.dirty.ratio", "1.1", "1.1", "Value must be no more than 1"),
    ("min.cleanable.dirty.ratio", "-1e-5", "-1.0E-5", "Value must be at least 0"),
    ("min.cleanable.dirty.ratio", "1e400", "Infinity", "Value must be no more than 1"),
    ("min.cleanable.dirty.ratio", "inf", "inf", "Not a number of type DOUBLE"),
    ("cleanup.policy", " compact , x,y", "x", "String must be one of: compact, delete"),
    ("cleanup.policy", "compact,", "", "String must be one of: compact, delete"),
    (
        "compression.type",
        "zstd",
        "zstd",
        "String must be one of: uncompressed, snappy, lz4, gzip, producer",
    ),
    ("preallocate", "1", "1", "Expected value to be either true or false"),
    (LEADERS, "x", "[x]", f"{LEADERS}  must match for format {FORMATS}"),
    (FOLLOWERS, "0:1 , x,,", "[0:1, x, , ]", f"{FOLLOWERS}  must match for format {FORMATS}"),
)


@pytest.mark.parametrize(("name", "text", "value", "reason"), REFUSED)
def test_a_text_has_the_value_and_the_reason(name: str, text: str, value: str, reason: str) -> None:
    """The value as it was read, if it was read, and else as it was sent."""
    expected = f"Invalid value {value} for configuration {name}: {reason}"
    assert expected == text_of_refusal({name: text}, LEVEL)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("segment.bytes", "9" * 32_000),
        ("min.cleanable.dirty.ratio", "1" * 32_000 + "x"),
        ("cleanup.policy", "a" + " " * 32_000 + "b"),
        (LEADERS, "a" + " " * 32_000 + "b"),
    ],
)
def test_the_longest_values_have_their_text_at_once(name: str, text: str) -> None:
    """A broker serves no one else meanwhile."""
    began = time.process_time()
    found = text_of_refusal({name: text}, LEVEL)
    assert found is not None
    assert found.startswith(f"Invalid value {'[' * (name == LEADERS)}{text}")
    assert time.process_time() - began < 0.5


def test_values_that_the_jvm_takes_have_no_text() -> None:
    """Also those that we alone refuse."""
    taken = {
        "retention.ms": "-2",
        "cleanup.policy": "",
        "segment.index.bytes": "3",
        "min.cleanable.dirty.ratio": "NaN",
        "message.timestamp.type": "x",
        "message.format.version": "x",
        "preallocate": " TRUE ",
        LEADERS: "*",
    }
    assert text_of_refusal(taken, LEVEL) is None


def test_of_several_the_first_in_the_hash_table_counts() -> None:
    """The order of the request does not matter."""
    names = ("flush.ms", "segment.ms", "segment.bytes", "preallocate")
    for order in (names, names[::-1]):
        text = text_of_refusal(dict.fromkeys(order, "-1"), LEVEL)
        assert text is not None
        assert " preallocate: " in text


def test_0_11_checks_in_the_order_of_the_declaration() -> None:
    """The first is then segment.bytes; and the text about replicas is another one."""
    names = ("preallocate", "flush.ms", "segment.ms", "segment.bytes")
    text = text_of_refusal(dict.fromkeys(names, "-1"), Level.V0_11_0)
    assert "Invalid value -1 for configuration segment.bytes: Value must be at least 14" == text
    assert (
        f"Invalid value [x] for configuration {LEADERS}: {LEADERS} must be the literal '*' or a "
        "list of replicas in the following format: [partitionId],[brokerId]:[partitionId],"
        "[brokerId]:..."
    ) == text_of_refusal({LEADERS: "x"}, Level.V0_11_0)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.001, "0.001"),
        (2.0, "2.0"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (1.25e-4, "1.25E-4"),
    ],
)
def test_fractions_are_written_as_in_java(value: float, text: str) -> None:
    """With an exponent outside of a range."""
    assert text == java_double(value)
