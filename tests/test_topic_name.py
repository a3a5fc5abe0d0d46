"""Legal and illegal topic names."""

from __future__ import annotations

import pytest

from kafka08.topic_name import fault_of


@pytest.mark.parametrize("name", ["a", "A-b_c.9", "...", "_", "x" * 255])
def test_legal_names(name: str) -> None:
    """A name has letters, digits, dots, underscores and dashes, up to 255 of them."""
    assert fault_of(name) is None


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("", "can't be empty"),
        (".", 'cannot be "." or ".."'),
        ("..", 'cannot be "." or ".."'),
        ("x" * 256, "can't be longer than 255 characters"),
        ("a b", "topic name a b is illegal, contains a character other than"),
        ("a/b", "contains a character other than"),
        ("é", "contains a character other than"),
        ("a\n", "contains a character other than"),
        pytest.param("bad\udc80", "contains a character other than", id="surrogate"),
    ],
)
def test_illegal_names(name: str, fault: str) -> None:
    """The names that kafka.common.Topic refuses are refused."""
    assert fault in (fault_of(name) or "")
