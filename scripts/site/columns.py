"""Parameters in aligned columns, as docstrings have them, become a Markdown list.

Markdown would run the two columns together into one paragraph.
"""

from __future__ import annotations

import re
from typing import Final

ROW: Final = re.compile(r"(?P<names>[a-z_*]\w*(?:, [a-z_*]\w*)*)(?P<gap> {2,})(?P<text>\S.*)")


def with_lists(text: str) -> str:
    """The docstring with each table of names and descriptions as a Markdown list."""
    lines: list[str] = []
    column = 0
    for line in text.splitlines():
        row = ROW.fullmatch(line)
        if row is not None:
            if not column and lines and lines[-1]:
                lines.append("")
            column = row.start("text")
            names = ", ".join(f"`{name}`" for name in row["names"].split(", "))
            lines.append(f"- {names}: {row['text']}")
        elif column and line.startswith(" " * column):
            lines.append(f"  {line[column:]}")
        else:
            if column and line:
                lines.append("")
            column = 0
            lines.append(line)
    return "\n".join(lines)
