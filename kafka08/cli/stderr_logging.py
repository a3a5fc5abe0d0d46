"""The library's log on stderr: warnings, without quick repetitions; and the colours of a command's
messages."""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Callable, Mapping
from typing import Final

import click

from kafka08.printable import LogFormatter, printable_lines

REPEAT_SECONDS: Final = 10.0
TEXTS_MAX: Final = 1000
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
FORMAT: Final = "%(levelname)s: %(message)s"
DETAILED_FORMAT: Final = "%(asctime)s %(levelname)s [%(threadName)s] %(name)s: %(message)s"


def set_up_stderr_logging() -> None:
    """Print warnings of kafka08 on stderr; the same one only once in REPEAT_SECONDS."""
    handler = StderrHandler(logging.WARNING)
    handler.addFilter(RepeatFilter())
    handler.setFormatter(LogFormatter(FORMAT))
    logging.getLogger().addHandler(handler)


def show_from(level: int) -> None:
    """Print log lines from `level` on; below warning with time, thread and logger, and all of
    them."""
    logging.getLogger("kafka08").setLevel(level)
    for handler in logging.getLogger().handlers:
        if isinstance(handler, StderrHandler):
            handler.setLevel(level)
            if level < logging.WARNING:
                handler.setFormatter(LogFormatter(DETAILED_FORMAT))
                handler.filters.clear()


def wanted_colour(environ: Mapping[str, str] = os.environ) -> bool | None:
    """False: no colours (NO_COLOR, or a terminal without them); None: on a terminal."""
    return False if environ.get("NO_COLOR") or environ.get("TERM") == "dumb" else None


def say(text: str) -> None:
    """One line on stderr; on a terminal its first word, such as `Error`, in its colour. What is not
    printable is escaped."""
    click.echo(coloured(printable_lines(text)), err=True, color=wanted_colour())


def show(text: str) -> None:
    """One line of a command's result, on stdout; else as `say`."""
    click.echo(coloured(printable_lines(text)), color=wanted_colour())


def coloured(text: str) -> str:
    """`text` with its first word in the colour of that word, if it has one."""
    word = FIRST_WORD.match(text)
    if word is None or word[0] not in COLOURS:
        return text
    return click.style(word[0], fg=COLOURS[word[0]], bold=True) + text[word.end() :]


class StderrHandler(logging.Handler):
    """Writes to the current stderr, so that progress bars can move out of the way."""

    def emit(self, record: logging.LogRecord) -> None:
        say(self.format(record))


class RepeatFilter(logging.Filter):
    """Drops a text that was printed less than REPEAT_SECONDS ago."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._monotonic = monotonic
        self._said: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        text, now = record.getMessage(), self._monotonic()
        if now < self._said.get(text, float("-inf")) + REPEAT_SECONDS:
            return False
        if len(self._said) >= TEXTS_MAX:
            self._said.clear()
        self._said[text] = now
        return True
