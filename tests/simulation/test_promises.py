"""Each promise of the pages has a rule of the simulation, or a reason why no run judges it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
RULES = ROOT / "kafka08" / "simulation"
ROW = re.compile(r"\| \[[\w-]+\]\(([\w-]+)\.md\) \| (.+?) \| (.+) \|")
HEADING = re.compile(r"^#+ Guarantees$", re.MULTILINE)


def promises(page: str) -> list[str]:
    """The guarantees of a page, by their first words."""
    text = (DOCS / f"{page}.md").read_text()
    if page == "replication":
        return list(first_cells(text.partition("## What happens when")[2]))
    if page == "migration":
        above = text.partition("\n## ")[0]
        return [first_words(line) for line in re.findall(r"^- (.+)$", above, re.MULTILINE)]
    [start] = [match.end() for match in HEADING.finditer(text)]
    if page == "mirror":
        return list(first_cells(text[start:]))
    found: list[str] = []
    for number, title in re.findall(r"^(\d+)\. (.+)$", text[start:], re.MULTILINE):
        if int(number) != len(found) + 1:
            break  # another list
        found.append(title.removeprefix("**").partition("**")[0].rstrip("."))
    return found


def first_cells(text: str) -> Iterator[str]:
    """The first cells of the first table in a text, without its heading."""
    table = re.search(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert table is not None
    for line in table[0].splitlines()[2:]:
        yield first_words(line.strip("| ").partition(" | ")[0])


def first_words(text: str) -> str:
    """A text until its first point or colon, or a comma that another clause follows."""
    return re.split(r"\.(?:\s|$)|: |, with |, `|, also ", text)[0]


def rows() -> list[tuple[str, str, str]]:
    """Page, promise and rule of each row of the table."""
    text = (DOCS / "simulation.md").read_text().partition("\n## Promises\n")[2]
    found = [ROW.fullmatch(line) for line in text.partition("\n## ")[0].splitlines()]
    return [(row[1], row[2], row[3]) for row in found if row is not None]


@pytest.mark.parametrize(
    "page", ["consumer", "kafka-consumer", "producer", "replication", "migration", "mirror"]
)
def test_each_promise_has_a_row(page: str) -> None:
    """The table has the promises of a page in its order; it names each by how it begins."""
    named = [promise for of, promise, _ in rows() if of == page]
    made = promises(page)
    assert len(made) > 3
    assert [
        (promise, name)
        for promise, name in zip(made, named, strict=False)
        if not promise.startswith(name)
    ] == []
    assert len(made) == len(named)


@pytest.mark.parametrize("row", rows(), ids=lambda row: f"{row[0]}: {row[1]}")
def test_each_row_names_a_rule_or_a_reason(row: tuple[str, str, str]) -> None:
    """A row names a module of the rules, or says that the promise is not judged, and why; files of
    tests that it names exist."""
    judged = row[2]
    names = re.findall(r"`([\w/.]+)`", judged)
    modules = [name for name in names if (RULES / f"{name}.py").is_file()]
    assert modules or judged.startswith(("not judged: ", "not judged, as above"))
    assert [name for name in names if "/" in name and not (ROOT / name).exists()] == []
