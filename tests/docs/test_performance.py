"""The summary of docs/performance.md has figures of docs/performance-tables.md, and no others."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parent.parent.parent / "docs"


def rows(page: str) -> list[tuple[str, str, set[str]]]:
    """Each row of the page's tables: its section, the label, the figures. The headers too: their
    figures are counts of partitions."""
    found = []
    section = ""
    for line in (DOCS / page).read_text().splitlines():
        if line.startswith("## "):
            section = line[3:]
        elif line.startswith("| ") and not line.startswith("|---"):
            label, *cells = [cell.strip() for cell in line.strip("|").split("|")]
            figures = set(re.findall(r"\d[\d.,]*\d|\d", " ".join(cells)))
            found.append((section, label.strip().rstrip("*"), figures))
    return found


def test_each_row_of_the_summary_is_one_of_the_tables() -> None:
    """Same section, same label, and no figure of its own: new measurements change both pages."""
    tables = rows("performance-tables.md")
    summary = rows("performance.md")
    assert len(summary) > 40
    unknown = [
        (section, label, figures)
        for section, label, figures in summary
        if figures and not any((section, label) == row[:2] and figures <= row[2] for row in tables)
    ]
    assert unknown == []
