"""listing.some_of: the first few of many."""

from __future__ import annotations

from kafka08.listing import counted, some_of


def test_a_list_that_fits_is_complete() -> None:
    """A list counts names only if they do not fit."""
    assert some_of([]) == ""
    assert some_of(range(5)) == "0, 1, 2, 3, 4"


def test_the_others_are_counted() -> None:
    """With what they are, where the line would leave that open."""
    assert some_of([*"abcdefg"]) == "a, b, c, d, e and 2 more"
    assert some_of([*"abcdefg"], "; ", "reasons") == "a; b; c; d; e; and 2 more reasons"


def test_one_thing_has_no_plural() -> None:
    """None and several do."""
    assert ["0 messages", "1 message", "2 messages"] == [counted(n, "message") for n in range(3)]
