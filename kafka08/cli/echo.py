"""The lines that a command prints, safe for a terminal: its result on stdout, the rest on stderr.

Names of topics, groups and clients may be any bytes, and anybody may choose them: such as clear a
screen, set a title, or pretend to be a line of the command's own. So every line of a command goes
through here (tests/test_layout.py), and what is not printable is escaped.
"""

from __future__ import annotations

import math
import os
import re
import sys
import time
from collections.abc import Mapping
from typing import Final

import click

from kafka08.printable import printable_lines

COLOURS: Final = {
    "Error": "red",
    "ERROR": "red",
    "CRITICAL": "red",
    "Problem": "red",
    "Refused": "red",
    "WARNING": "yellow",
    "Note": "yellow",
}
"""The first word of a line → how a terminal shows it."""
FIRST_WORD: Final = re.compile(r"\w+")


def show(text: str = "") -> None:
    """Lines of a command's result on stdout; on a terminal the first word, such as `Problem`, in
    its colour."""
    click.echo(coloured(printable_lines(text)), color=wanted_colour())


def say(text: str) -> None:
    """The same on stderr, for what is not the result."""
    global _said_at
    _said_at = time.monotonic()
    click.echo(coloured(printable_lines(text)), err=True, color=wanted_colour())


_said_at = -math.inf


def last_said() -> float:
    """When `say` was called last, in monotonic seconds; minus infinity before."""
    return _said_at


def show_heading(text: str) -> None:
    """A line in bold on stdout."""
    click.echo(click.style(printable_lines(text), bold=True), color=wanted_colour())


def pass_on(text: str | bytes) -> None:
    """Text for a program, as it is, in UTF-8 and without a newline of ours, on stdout; escaped if
    that is a terminal."""
    data = text.encode(errors="backslashreplace") if isinstance(text, str) else text
    click.echo(printable_lines(data.decode()) if sys.stdout.isatty() else data, nl=False)


def wanted_colour(environ: Mapping[str, str] = os.environ) -> bool | None:
    """False: no colours (NO_COLOR, or a terminal without them); None: on a terminal."""
    return False if environ.get("NO_COLOR") or environ.get("TERM") == "dumb" else None


def coloured(text: str) -> str:
    """`text` with its first word in the colour of that word, if it has one."""
    word = FIRST_WORD.match(text)
    if word is None or word[0] not in COLOURS:
        return text
    return click.style(word[0], fg=COLOURS[word[0]], bold=True) + text[word.end() :]
