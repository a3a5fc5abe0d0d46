"""kafka08.cli.stderr_logging prints warnings, and repeated texts once."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from kafka08.cli.echo import coloured, wanted_colour
from kafka08.cli.stderr_logging import (
    REPEAT_S,
    TEXTS_MAX,
    RepeatFilter,
    StderrHandler,
    warnings_withheld,
)


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


@pytest.fixture
def log() -> Iterator[logging.Logger]:
    """A logger whose warnings go to stderr, by no other handler of ours."""
    root, handler = logging.getLogger(), StderrHandler(logging.WARNING)
    others = [other for other in root.handlers if isinstance(other, StderrHandler)]
    for other in others:
        root.removeHandler(other)
    root.addHandler(handler)
    yield logging.getLogger("kafka08.test")
    root.removeHandler(handler)
    for other in others:
        root.addHandler(other)


def test_withheld_warnings_are_printed_after_an_error_alone(
    log: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    """A command that kills a broker has warnings about it: they are of use if it fails."""
    with warnings_withheld() as kept:
        log.warning("expected")
    assert (kept, capsys.readouterr().err) == (["expected"], "")

    def fail() -> None:
        with warnings_withheld():
            log.warning("the cause")
            raise ValueError("it fails")

    with pytest.raises(ValueError, match="it fails"):
        fail()
    log.warning("later")
    assert capsys.readouterr().err == "the cause\nlater\n"


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
