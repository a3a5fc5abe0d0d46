"""Lines of `consume --format json` are read back, and errors name what is wrong with any other
line."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.cli.json_lines import BadLine, record_of
from kafka08.cli.rendering import json_line
from kafka08.kernel.types import NO_TIMESTAMP
from kafka08.producer import ProducerRecord

FIELD = st.none() | st.binary(max_size=20) | st.text(max_size=20).map(str.encode)


@given(
    key=FIELD,
    value=FIELD,
    partition=st.integers(0, 1000),
    timestamp=st.none() | st.integers(0, (1 << 63) - 1),
)
def test_printed_messages_round_trip(
    key: bytes | None, value: bytes | None, partition: int, timestamp: int | None
) -> None:
    """Key, value, partition and timestamp are equal, whatever their bytes."""
    time_ms = NO_TIMESTAMP if timestamp is None else timestamp
    line = json_line("a", partition, 7, key, value, time_ms)
    assert ProducerRecord("b", value, key, partition, timestamp) == record_of("b", line)


def test_only_the_value_is_needed() -> None:
    """Only `value` is required, and null is a value."""
    assert record_of("t", b'{"value": "\\u00e9"}') == ProducerRecord("t", "é".encode())
    assert record_of("t", b'{"value": null}') == ProducerRecord("t", None)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("", "not JSON"),
        ("[1]", 'not an object with "value"'),
        ('{"key": "a"}', 'not an object with "value"'),
        ('{"value": 1}', "value is int, not text or null"),
        ('{"value": "", "key": []}', "key is list"),
        ('{"value": "", "partition": -1}', "partition -1"),
        ('{"value": "", "partition": true}', "partition True"),
        ('{"value": "", "timestamp": -1}', "timestamp -1 is not a number of milliseconds"),
        ('{"value": "", "timestamp": "2026-11-22"}', "timestamp '2026-11-22'"),
        ('{"value": "", "timestamp": 1.5}', "timestamp 1.5"),
        ('{"value": "", "timestamp": 9223372036854775808}', "timestamp 9223372036854775808"),
        ('{"value": "", "encoding": "hex"}', "encoding 'hex' is not base64"),
        ('{"value": "a", "encoding": "base64"}', "value is not base64"),
        ('{"value": "\u00e9", "encoding": "base64"}', "value is not base64"),
        ("[" * 100_000, "not JSON"),
        (json.dumps({"value": "", "vlaue": 1}), "unknown fields: vlaue"),
    ],
)
def test_a_bad_line_says_why(line: str, said: str) -> None:
    """A bad line raises BadLine with the reason."""
    with pytest.raises(BadLine, match=said):
        record_of("t", line.encode())
