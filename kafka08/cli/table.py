"""Rows under headings: columns of text for a terminal, and the same rows as JSON has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import click


def show_table(
    headings: Sequence[str], rows: Sequence[Sequence[object]], *, if_none: str | None = None
) -> None:
    """The table on stdout; without rows nothing there, and `if_none` on stderr."""
    if rows:
        for line in table_lines(headings, rows):
            click.echo(line)
    elif if_none is not None:
        click.echo(if_none, err=True)


def table_lines(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> Iterator[str]:
    """The headings and then the rows, each column as wide as what is in it; `-` for None."""
    table = [headings, *([("-" if v is None else str(v)) for v in row] for row in rows)]
    widths = [max(len(line[n]) for line in table) for n in range(len(headings))]
    for line in table:
        yield "  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip()


def as_objects(
    headings: Sequence[str], rows: Iterable[Sequence[object]]
) -> list[dict[str, object]]:
    """Each row by its headings, with underscores for their blanks."""
    names = [heading.replace(" ", "_") for heading in headings]
    return [dict(zip(names, row, strict=True)) for row in rows]
