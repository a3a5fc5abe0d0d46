"""The name that was probably meant: "did you mean" in errors, warnings and the command line."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

NAMES_MAX: Final = 20_000
"""For more names the comparison would take too long; then there is no suggestion."""


def nearest(name: str, names: Collection[str]) -> str | None:
    """The most similar one of `names`, ignoring case; None if none is similar."""
    from difflib import get_close_matches  # imported late: most programs need no suggestion

    if len(names) > NAMES_MAX:
        return None
    by_lower = {candidate.lower(): candidate for candidate in sorted(names, reverse=True)}
    found = get_close_matches(name.lower(), by_lower, n=1, cutoff=0.7)
    return by_lower[found[0]] if found else None


def did_you_mean(name: str, names: Collection[str]) -> str:
    """`; did you mean X?` for the end of a sentence, empty if no name is similar."""
    found = nearest(name, names)
    return "" if found is None else f"; did you mean {found}?"
