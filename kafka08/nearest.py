"""The name that was probably meant: "did you mean" in errors, warnings and the command line."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection
from typing import Final

NAMES_MAX: Final = 20_000
"""For more names the comparison would take too long; then there is no suggestion."""
COMPARED_MAX: Final = 1000
"""The most names that are compared character by character, at up to 0.1 ms each."""


def nearest(name: str, names: Collection[str]) -> str | None:
    """The most similar one of `names`, ignoring case; None if none is similar. Of very many only
    those are compared that share most characters at both ends: a typing error is between them."""
    from difflib import get_close_matches  # imported late: most programs need no suggestion
    from heapq import nlargest

    if len(names) > NAMES_MAX:
        return None
    by_lower = {candidate.lower(): candidate for candidate in sorted(names, reverse=True)}
    wanted = name.lower()
    compared: Collection[str] = by_lower
    if len(by_lower) > COMPARED_MAX:
        compared = nlargest(COMPARED_MAX, by_lower, key=lambda other: _likeness(wanted, other))
    found = get_close_matches(wanted, compared, n=1, cutoff=0.7)
    return by_lower[found[0]] if found else None


def did_you_mean(name: str, names: Collection[str]) -> str:
    """`; did you mean X?` for the end of a sentence, empty if no name is similar."""
    found = nearest(name, names)
    return "" if found is None else f"; did you mean {found}?"


def _likeness(name: str, other: str) -> float:
    """The share of characters in equal starts and equal ends: at most difflib's ratio."""
    most = min(len(name), len(other))
    start = bisect_left(range(most), True, key=lambda n: name[: n + 1] != other[: n + 1])
    end = bisect_left(range(most - start), True, key=lambda n: name[-1 - n :] != other[-1 - n :])
    return 2 * (start + end) / max(1, len(name) + len(other))
