"""Text of a cluster for a terminal: names of groups and clients may be any bytes, also such that
clear a screen, set a title or reverse the direction of a line."""

from __future__ import annotations


def printable(text: str) -> str:
    """`text` on one line, with Python's escapes for all characters that are not printable."""
    return text if text.isprintable() else "".join(map(_printable_character, text))


def printable_lines(text: str) -> str:
    """The same for each line; tabs stay."""
    if text.isprintable():
        return text
    return "".join(c if c in "\n\t" else _printable_character(c) for c in text)


def _printable_character(character: str) -> str:
    if character.isprintable():
        return character
    return character.encode("unicode_escape").decode()
