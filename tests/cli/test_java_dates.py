"""DateFormat formats like SimpleDateFormat for the same pattern (en_US)."""

from __future__ import annotations

from datetime import datetime

import pytest

from kafka08.cli.java_dates import DateFormat

MOMENT = datetime(2015, 3, 7, 0, 5, 9, 42_000).timestamp()


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("yyyy-MM-dd HH:mm:ss:SSS", "2015-03-07 00:05:09:042"),
        ("yy/M/d k:m:s.S", "15/3/7 24:5:9.42"),
        ("EEE, d MMM yyyy hh a", "Sat, 7 Mar 2015 12 AM"),
        ("EEEE MMMM DDD KK", "Saturday March 066 00"),
        ("yyyy-MM-dd'T'HH 'o''clock' ''", "2015-03-07T00 o'clock '"),
        ("", ""),
    ],
)
def test_patterns(pattern: str, text: str) -> None:
    """A repeated letter is a field with at least this width. Quotes protect text."""
    assert DateFormat(pattern).text(MOMENT) == text


@pytest.mark.parametrize(
    ("pattern", "wrong"),
    [("HH z", "the letter z is not one of"), ("HH 'h", "a quote is not closed")],
)
def test_patterns_that_are_refused(pattern: str, wrong: str) -> None:
    """A pattern that is not supported is refused with the reason."""
    with pytest.raises(ValueError, match=wrong):
        DateFormat(pattern)
