"""Columns of text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def table_lines(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> Iterator[str]:
    """The headings and then the rows, each column as wide as what is in it; `-` for None."""
    table = [headings, *([("-" if v is None else str(v)) for v in row] for row in rows)]
    widths = [max(len(line[n]) for line in table) for n in range(len(headings))]
    for line in table:
        yield "  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip()
