"""kafka08.cli.stderr_logging prints warnings, and repeated texts once."""

from __future__ import annotations

import logging

import pytest

from kafka08.cli.echo import coloured, wanted_colour
from kafka08.cli.stderr_logging import REPEAT_S, TEXTS_MAX, RepeatFilter


def record(text: str) -> logging.LogRecord:
    return logging.LogRecord("x", logging.WARNING, "", 0, text, None, None)


def test_a_text_is_repeated_only_after_a_while() -> None:
    """The same text within the interval is suppressed; another one is printed."""
    now = 0.0
    once = RepeatFilter(lambda: now)
    assert once.filter(record("a"))
    assert once.filter(record("b"))
    assert not once.filter(record("a"))
    now = REPEAT_S
    assert once.filter(record("a"))


def test_it_does_not_remember_without_bound() -> None:
    """At most TEXTS_MAX different texts are remembered."""
    once = RepeatFilter(lambda: 0.0)
    assert all(once.filter(record(str(n))) for n in range(3 * TEXTS_MAX))
    assert len(once._said) <= TEXTS_MAX


@pytest.mark.parametrize(
    ("environ", "wanted"),
    [({}, None), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, None), ({"TERM": "dumb"}, False)],
)
def test_colours_can_be_refused(environ: dict[str, str], wanted: bool | None) -> None:
    """NO_COLOR counts if it is not empty (no-color.org). Otherwise the terminal decides."""
    assert wanted is wanted_colour(environ)


def test_problems_and_notes_differ_in_colour() -> None:
    """The first word alone has a colour, which tells errors from notes. Other texts stay as they
    are."""
    assert coloured("Problem: [t,0]: x") == "\x1b[31m\x1b[1mProblem\x1b[0m: [t,0]: x"
    assert coloured("Note offline: x") == "\x1b[33m\x1b[1mNote\x1b[0m offline: x"
    assert coloured("Group a is healthy") == "Group a is healthy"
    assert coloured("") == ""
