"""Rows under headings: columns of text for a terminal, and the same rows for JSON."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import Final

from kafka08.cli.echo import say, show, show_heading
from kafka08.printable import printable

ELLIPSIS: Final = "…"
GAP: Final = "  "
SHORTEST: Final = 12
"""The least width of a shortened cell: a shorter one could not be told from others."""


def show_rows(
    headings: Sequence[str],
    rows: Sequence[Sequence[object]],
    as_json: bool,
    *,
    if_none: str | None = None,
) -> None:
    """Print the rows as a JSON list of objects, or as a table."""
    if as_json:
        show_json(as_objects(headings, rows))
    else:
        show_table(headings, rows, if_none=if_none)


def show_json(value: object) -> None:
    """Print one line of JSON on stdout."""
    show(json.dumps(value))


def show_table(
    headings: Sequence[str], rows: Sequence[Sequence[object]], *, if_none: str | None = None
) -> None:
    """Print the table on stdout; without rows, `if_none` on stderr. On a terminal it fits the width
    and has bold headings; in a file or pipe every cell is complete."""
    if rows:
        heads, lines = layout(headings, rows, terminal_width())
        for head in heads:
            show_heading(head)
        for line in lines:
            show(line)
    elif if_none is not None:
        say(if_none)


def terminal_width() -> int | None:
    """The width of the terminal on stdout, or None."""
    if not sys.stdout.isatty():
        return None
    return shutil.get_terminal_size().columns


def layout(
    headings: Sequence[str], rows: Sequence[Sequence[object]], width: int | None = None
) -> tuple[list[str], list[str]]:
    """The lines of the headings and those of the rows, each column as wide as its cells; `-` for
    None, and escapes for what is not printable. With a `width` the longest cells are narrowed until
    a line fits: prose is folded, other cells are shortened in the middle. If that is not enough,
    headings are broken at blanks, and then columns of `-` alone are left out. A line may stay too
    long even so."""
    cells = [["-" if v is None else printable(str(v)) for v in row] for row in rows]
    filled = [n for n in range(len(headings)) if any(row[n] != "-" for row in cells)]
    choices = [(False, range(len(headings))), (True, range(len(headings))), (True, filled)]
    for breaks, columns in choices:
        names = [headings[n].split() if breaks else [headings[n]] for n in columns]
        body = [[row[n] for n in columns] for row in cells]
        least = [max(map(len, name)) for name in names]
        widths = [max([low, *(len(row[n]) for row in body)]) for n, low in enumerate(least)]
        if width is None:
            break
        widths = fitted(widths, least, width)
        if line_width(widths) <= width:
            break
    folded = [[folded_at(cell, w) for cell, w in zip(row, widths, strict=True)] for row in body]
    return joined(names, widths), [line for row in folded for line in joined(row, widths)]


def joined(cells: Sequence[Sequence[str]], widths: Sequence[int]) -> list[str]:
    """The lines of one row, each of whose cells has one line or several."""
    lines = zip_longest(*cells, fillvalue="")
    return [
        GAP.join(part.ljust(w) for part, w in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]


def folded_at(cell: str, width: int) -> list[str]:
    """The lines of a cell: its words where these fit, else the cell without its middle."""
    if len(cell) <= width:
        return [cell]
    if " " not in cell or max(map(len, cell.split())) > width:
        return [shortened(cell, width)]
    lines = [""]
    for word in cell.split():
        longer = f"{lines[-1]} {word}".lstrip()
        if len(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def line_width(widths: Sequence[int]) -> int:
    """Columns of the terminal that a line takes."""
    return sum(widths) + len(GAP) * (len(widths) - 1)


def fitted(widths: Sequence[int], least: Sequence[int], width: int) -> list[int]:
    """The widths of columns, the widest ones narrowed until a line has at most `width` columns.
    No column becomes narrower than SHORTEST or its heading, so a line may stay too long."""
    narrowed = list(widths)
    floors = [min(w, max(SHORTEST, low)) for w, low in zip(widths, least, strict=True)]
    excess = line_width(narrowed) - width
    while excess > 0:
        free = [n for n, w in enumerate(narrowed) if w > floors[n]]
        if not free:
            break
        widest = max(free, key=lambda n: narrowed[n])
        narrowed[widest] -= 1
        excess -= 1
    return narrowed


def shortened(text: str, width: int) -> str:
    """`text` with its middle left out if it is longer than `width`."""
    if len(text) <= width:
        return text
    head = width // 2
    tail = width - head - 1
    return f"{text[:head]}{ELLIPSIS}{text[len(text) - tail :]}"


def as_objects(
    headings: Sequence[str], rows: Iterable[Sequence[object]]
) -> list[dict[str, object]]:
    """Each row by its headings, whose blanks become underscores."""
    names = [heading.replace(" ", "_") for heading in headings]
    return [dict(zip(names, row, strict=True)) for row in rows]
