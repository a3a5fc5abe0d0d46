"""kafka08.cli.stderr_logging: warnings are heard, but four tries in a row are not four texts."""

from __future__ import annotations

import logging

import pytest

from kafka08.cli.stderr_logging import (
    REPEAT_SECONDS,
    TEXTS_MAX,
    OnceInAWhile,
    coloured,
    wanted_colour,
)


def record(text: str) -> logging.LogRecord:
    return logging.LogRecord("x", logging.WARNING, "", 0, text, None, None)


def test_a_text_is_repeated_only_after_a_while() -> None:
    """The same text again within the time is kept back, another one is not."""
    now = 0.0
    once = OnceInAWhile(lambda: now)
    assert once.filter(record("a"))
    assert once.filter(record("b"))
    assert not once.filter(record("a"))
    now = REPEAT_SECONDS
    assert once.filter(record("a"))


def test_it_does_not_remember_without_bound() -> None:
    """Texts that are all different cost no more memory than TEXTS_MAX of them."""
    once = OnceInAWhile(lambda: 0.0)
    assert all(once.filter(record(str(n))) for n in range(3 * TEXTS_MAX))
    assert len(once._said) <= TEXTS_MAX


@pytest.mark.parametrize(
    ("environ", "wanted"),
    [({}, None), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, None), ({"TERM": "dumb"}, False)],
)
def test_colours_can_be_refused(environ: dict[str, str], wanted: bool | None) -> None:
    """NO_COLOR counts when it is not empty (no-color.org); else the terminal decides."""
    assert wanted is wanted_colour(environ)


def test_problems_and_notes_are_told_apart_by_colour() -> None:
    """The first word alone, whatever follows it; any other text stays as it is."""
    assert coloured("Problem: [t,0]: x") == "\x1b[31m\x1b[1mProblem\x1b[0m: [t,0]: x"
    assert coloured("Note offline: x") == "\x1b[33m\x1b[1mNote\x1b[0m offline: x"
    assert coloured("Group a is healthy") == "Group a is healthy"
    assert coloured("") == ""
