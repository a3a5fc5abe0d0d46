"""Times in arguments are those that a timestamp of a message can have."""

from __future__ import annotations

import pytest

from kafka08.cli.times import is_time, parse_ms
from kafka08.config import LONG_MAX


@pytest.mark.parametrize(
    ("text", "time_ms"),
    [
        ("0", 0),
        (str(LONG_MAX), LONG_MAX),
        ("1970-01-01T00:00+00:00", 0),
        ("2017-07-14T02:40:01.5+00:00", 1_500_000_001_500),
    ],
)
def test_a_time_is_a_number_or_a_date(text: str, time_ms: int) -> None:
    """Both are milliseconds since 1970."""
    assert parse_ms(text) == time_ms
    assert is_time(f"@{text}")
    assert not is_time(text)


@pytest.mark.parametrize(
    "text",
    [
        str(LONG_MAX + 1),
        "-1",
        "1969-12-31T23:59:59.999+00:00",
        "1969-12-31T23:59:59.998+00:00",
        "0001-01-01T00:00",
        "tomorrow",
        "",
    ],
)
def test_no_message_has_such_a_time(text: str) -> None:
    """A time before 1970 is refused: to brokers -1 means the log's end, and -2 its start. (Just
    before 1970 was taken for these.)"""
    with pytest.raises(ValueError):
        parse_ms(text)
    assert not is_time(f"@{text}")
