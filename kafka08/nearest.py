"""The name that was probably meant: "did you mean" in errors, warnings and the command line."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

NAMES_MAX: Final = 20_000
"""Above this the comparison takes longer than a user waits; then nothing is suggested."""


def nearest(name: str, names: Collection[str]) -> str | None:
    """The one of `names` most like `name`, whatever the case; None if none is alike."""
    from difflib import get_close_matches  # most programs mistype nothing

    if len(names) > NAMES_MAX:
        return None
    by_lower = {candidate.lower(): candidate for candidate in sorted(names, reverse=True)}
    found = get_close_matches(name.lower(), by_lower, n=1, cutoff=0.7)
    return by_lower[found[0]] if found else None


def did_you_mean(name: str, names: Collection[str]) -> str:
    """`; did you mean X?` for the end of a sentence, empty if no name is alike."""
    found = nearest(name, names)
    return "" if found is None else f"; did you mean {found}?"
