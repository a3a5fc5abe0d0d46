"""Times in a format of Java's SimpleDateFormat, for `--date-format`.

Source: java.text.SimpleDateFormat. Letters that need a calendar or a locale (eras, weeks, time
zones) are refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import Final

TOKEN: Final = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']+")
"""Quoted text, a run of one letter, or anything else; '' means a quote."""
NUMBERS: Final[dict[str, Callable[[datetime], int]]] = {
    "d": lambda t: t.day,
    "D": lambda t: t.timetuple().tm_yday,
    "H": lambda t: t.hour,
    "k": lambda t: t.hour or 24,
    "K": lambda t: t.hour % 12,
    "h": lambda t: t.hour % 12 or 12,
    "m": lambda t: t.minute,
    "s": lambda t: t.second,
    "S": lambda t: t.microsecond // 1000,
}
"""Letters for a number, with at least as many digits as letters."""
WORDS: Final = {"M": ("%b", "%B"), "E": ("%a", "%A")}
"""Letters for a name, short or (from FULL_WORDS_FROM letters on) in full."""
SHORT_YEAR: Final = 2
WORDS_FROM: Final = 3
FULL_WORDS_FROM: Final = 4


class DateFormat:
    """`DateFormat("yyyy-MM-dd HH:mm:ss:SSS").text(seconds)`. ValueError, with the reason, for a
    pattern that is not supported."""

    def __init__(self, pattern: str) -> None:
        self._parts = [_part(token) for token in _tokens(pattern)]

    def text(self, seconds: float) -> str:
        """`seconds` since 1970 in the local zone."""
        moment = datetime.fromtimestamp(seconds)
        return "".join(part(moment) for part in self._parts)


def _tokens(pattern: str) -> list[str]:
    tokens: list[str] = []
    at = 0
    while at < len(pattern):
        match = TOKEN.match(pattern, at)
        if match is None:
            raise ValueError(f"{pattern!r}: a quote is not closed")
        tokens.append(match[0])
        at = match.end()
    return tokens


def _part(token: str) -> Callable[[datetime], str]:
    letter, width = token[0], len(token)
    if letter == "'":
        text = "'" if token == "''" else token[1:-1].replace("''", "'")
        return lambda _: text
    if not letter.isalpha():
        return lambda _: token
    if letter == "y":
        return (lambda t: f"{t:%y}") if width == SHORT_YEAR else lambda t: f"{t.year:0{width}}"
    if letter == "M" and width < WORDS_FROM:
        return lambda t: f"{t.month:0{width}}"
    if letter in WORDS:
        short, full = WORDS[letter]
        return lambda t: t.strftime(full if width >= FULL_WORDS_FROM else short)
    if letter == "a":
        return lambda t: "AM" if t.hour < 12 else "PM"  # noon
    if letter not in NUMBERS:
        known = "".join(("y", *WORDS, "a", *NUMBERS))
        raise ValueError(f"the letter {letter} is not one of {known}")
    number = NUMBERS[letter]
    return lambda t: f"{number(t):0{width}}"
