"""Text of a cluster for a terminal or a log."""

from __future__ import annotations

import logging

import pytest

from kafka08.cli.echo import pass_on, show
from kafka08.cli.table import layout
from kafka08.printable import LogFormatter, printable, printable_lines

HOSTILE = "\x1b]0;title\x07\x1b[2J\u202e\r\x9b31m"


@pytest.mark.parametrize("name", ["readers", "größe 漢字 \U0001f600", "a\\x1b", ""])
def test_printable_text_stays_as_it_is(name: str) -> None:
    """Letters of every language, and a backslash."""
    assert (name, name) == (printable(name), printable_lines(name))


def test_all_else_is_escaped() -> None:
    """Control characters, also those above 0x80, changes of direction, and half of a pair."""
    assert printable(HOSTILE + "\udc80\n").isprintable()
    assert "\\x1b[2J\\u202e" == printable("\x1b[2J\u202e")
    assert "a\n\tb\\x1b" == printable_lines("a\n\tb\x1b")


def test_a_name_makes_no_line_of_a_table() -> None:
    """A cell is one line without control characters, as wide as its column."""
    _, [first, second] = layout(("group", "lag"), [(f"{HOSTILE}\nx", 1), ("y", 2)])
    assert first.isprintable()
    assert first.index("1", len(first) - 1) == second.index("2")


def test_a_result_changes_nothing_in_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """A finding of the doctor names a group as it is."""
    show(f"Problem group {HOSTILE}:\n  Why: x")
    said = capsys.readouterr().out
    assert all(line.isprintable() for line in said.splitlines())
    assert said.endswith("\n  Why: x\n")


def test_data_for_a_program_stays_as_it_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A report in HTML, metrics, payloads: escaped only where a terminal would act on them."""
    pass_on("a\xa0b\x1b[2J\n")
    assert capsys.readouterr().out == "a\xa0b\x1b[2J\n"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    pass_on("a\x1b[2J\n")
    assert capsys.readouterr().out == "a\\x1b[2J\n"


@pytest.mark.parametrize(
    "text", ["a\n[2026-01-01] ERROR forged", "a\r\x1b[2J", "a\u2028b", "a\x85b"]
)
def test_a_peer_writes_no_entry_of_its_own_into_a_log(text: str) -> None:
    """A name in a message, or in the message of a traceback, stays in its entry: further lines are
    indented, and the rest that a terminal or a reader of lines acts on is escaped."""
    try:
        raise ValueError(text)
    except ValueError as error:
        failure = (type(error), error, error.__traceback__)
    record = logging.LogRecord("n", logging.ERROR, "f", 1, "client %s", (text,), failure)
    first, *others = LogFormatter("[now] %(message)s").format(record).splitlines()
    assert first.startswith("[now] client a")
    assert others
    assert all(line.startswith("  ") for line in others)
    assert all(line.isprintable() for line in [first, *others])
