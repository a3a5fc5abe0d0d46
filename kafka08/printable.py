"""Text of a cluster for a terminal or a log: names of groups and clients may be any bytes, also
such that clear a screen, set a title, reverse the direction of a line, or begin one of their own.
"""

from __future__ import annotations

import logging
from typing import Final

CONTINUATION: Final = "\n  "
"""Between the lines of one entry of a log."""


class LogFormatter(logging.Formatter):
    """Formats an entry so that its text cannot pass for another entry: what is not printable is
    escaped, and lines after the first, as of a traceback, are indented."""

    def format(self, record: logging.LogRecord) -> str:
        lines = super().format(record).split("\n")
        return CONTINUATION.join(map(printable_lines, lines))


def printable(text: str) -> str:
    """`text` on one line, with Python's escapes for all characters that are not printable."""
    return text if text.isprintable() else "".join(map(_printable_character, text))


def printable_lines(text: str) -> str:
    """`text`, with Python's escapes for all characters of its lines that are not printable; tabs
    stay."""
    if text.isprintable():
        return text
    return "".join(c if c in "\n\t" else _printable_character(c) for c in text)


def _printable_character(character: str) -> str:
    if character.isprintable():
        return character
    return character.encode("unicode_escape").decode()
