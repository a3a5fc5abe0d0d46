"""Many names, a number with its noun, or a reason, in one line of an error or a log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

SHOWN_MAX: Final = 5


def counted(number: int, noun: str) -> str:
    """`1 message`, `2 messages`: the plural is the noun and s."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def brokers_are(ids: Sequence[int]) -> str:
    """`broker 1 is`, `brokers 1, 2 are`."""
    names = ", ".join(map(str, ids))
    return f"broker {names} is" if len(ids) == 1 else f"brokers {names} are"


def some_of(names: Sequence[object], separator: str = ", ", kind: str = "") -> str:
    """The first SHOWN_MAX of `names`, and how many more of this kind there are."""
    text = separator.join(map(str, names[:SHOWN_MAX]))
    if len(names) <= SHOWN_MAX:
        return text
    # No comma before the last "and"; but a semicolon, which parts sentences with their own "and".
    return f"{text}{separator.lstrip(',')}and {len(names) - SHOWN_MAX} more {kind}".rstrip()


def reason_of(error: BaseException) -> str:
    """The text of an error for people: one of the operating system without its number."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror[0].lower() + error.strerror[1:]
    return str(error)
