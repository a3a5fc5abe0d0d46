"""The parameters of a search for messages, and which messages match."""

from __future__ import annotations

import base64

import pytest

from kafka08.pages.messages import (
    MESSAGES_MAX,
    SHOWN_BYTES_MAX,
    SearchRequest,
    Start,
    is_wanted,
    message,
)
from kafka08.pages.search_request import parse_search_request


def test_a_search_request_is_parsed_from_a_url() -> None:
    """A field becomes a condition, unless it is empty."""
    query = {
        "topic": "t",
        "partition": "3",
        "start": "offset",
        "number": "7",
        "key": "",
        "text": "é",
    }
    expected = SearchRequest("t", 3, Start.OFFSET, 7, text="é".encode())
    assert expected == parse_search_request(query)


def test_a_search_continues_where_another_stopped() -> None:
    """It continues there in each partition."""
    found = parse_search_request({"topic": "t", "start": "at", "at": "0:12,5:0"})
    assert {0: 12, 5: 0} == found.at


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"topic": "t", "start": "somewhere"},
        {"topic": "t", "limit": str(MESSAGES_MAX + 1)},
        {"topic": "t", "limit": "-1"},
        {"topic": "t", "partition": "1e3"},
        {"topic": "t", "partition": "²"},
        {"topic": "t", "number": str(2**63)},
        {"topic": "t", "number": "1" * 5000},
        {"topic": "t", "start": "at", "at": ""},
        {"topic": "t", "start": "at", "at": "0:x"},
    ],
)
def test_illegal_parameters_are_refused(query: dict[str, str]) -> None:
    """ValueError names the illegal parameter, whatever was sent."""
    with pytest.raises(ValueError, match="is"):
        parse_search_request(query)


@pytest.mark.parametrize(
    ("key", "text", "expected"),
    [
        (None, None, True),
        (b"k", None, True),
        (b"", None, False),
        (b"K", None, False),
        (None, b"alu", True),
        (None, b"k", True),
        (None, b"other", False),
        (b"k", b"other", False),
    ],
)
def test_a_key_is_whole_and_a_text_a_part(
    key: bytes | None, text: bytes | None, expected: bool
) -> None:
    """The text may be in the key, too; both conditions must match."""
    assert expected == is_wanted(SearchRequest("t", key=key, text=text), b"k", b"value")


def test_a_large_value_is_shown_in_part() -> None:
    """The size of the whole is shown; null differs from empty."""
    found = message(0, 5, -1, None, b"x" * (SHOWN_BYTES_MAX + 1))
    assert found["key"] is None
    assert found["time_ms"] is None
    assert SHOWN_BYTES_MAX + 1 == found["value"]["size"]
    assert SHOWN_BYTES_MAX == len(base64.b64decode(found["value"]["data"]))
