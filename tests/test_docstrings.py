"""Docstrings keep up with the code: names that they list and pages that they cite exist. Every test
has one."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from copy import copy
from pathlib import Path

from tests.in_turn import in_turn
from tests.test_layout import ROOT, parsed, sources

LISTED = re.compile(r"\s+([a-z_]\w*(?:, [a-z_]\w*)*) {2,}\S")
"""`    name   what it is`, or `    one, other   what they are`."""
PAGE = re.compile(r"[\w/.-]+\.md\b")

HEADLESS = re.compile(r"(What|Who|Of|Until|By|From|That|It)\b")
"""A sentence that begins so lacks its noun or its verb: "Until all have it" for "Wait until …"."""

Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def docstrings(path: Path) -> Iterator[tuple[Documented, str]]:
    for node in ast.walk(parsed(path)):
        if isinstance(node, Documented) and (text := ast.get_docstring(node)):
            yield node, text


def identifiers(node: Documented) -> set[str]:
    """Every name in the code of `node`, its docstring left out."""
    code = copy(node)
    code.body = node.body[1:]
    return set(re.findall(r"\w+", ast.unparse(code)))


@in_turn("path", sources())
def test_names_in_a_list_are_names_of_the_code(path: Path) -> None:
    """A class or function that lists its fields or arguments lists such as it has; types of Python
    itself may stand for values of theirs."""
    for node, text in docstrings(path):
        if isinstance(node, ast.Module):
            continue
        listed = {
            name
            for line in text.splitlines()[1:]
            if (match := LISTED.match("    " + line))
            for name in match[1].split(", ")
        }
        unknown = listed - identifiers(node) - set(dir(builtins)) if listed else set()
        assert not unknown, f"{path}:{node.lineno} {node.name} has no {', '.join(sorted(unknown))}"


@in_turn("path", sources())
def test_pages_that_are_cited_exist(path: Path) -> None:
    """A reader can open them."""
    for _, text in docstrings(path):
        for page in PAGE.findall(text):
            assert (ROOT / page).is_file(), f"{path} cites {page}, which is not there"


def test_docstrings_begin_with_a_noun_or_a_verb() -> None:
    """A reader need not guess what a docstring is about."""
    others = (
        path
        for directory in ("benchmarks", "scripts", "examples")
        for path in (ROOT / directory).rglob("*.py")
    )
    headless = [
        f"{path}:{getattr(node, 'lineno', 1)}: {text.splitlines()[0]}"
        for path in (*sources(), *others)
        for node, text in docstrings(path)
        if HEADLESS.match(text)
    ]
    assert not headless, "\n".join(headless)


@in_turn("path", sorted((ROOT / "tests").rglob("test_*.py")))
def test_every_test_has_a_docstring(path: Path) -> None:
    """The docstring has the property, which the name alone seldom has completely."""
    without = [
        f"{path}:{node.lineno} {node.name}"
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.FunctionDef)
        and node.name.startswith("test_")
        and not ast.get_docstring(node)
    ]
    assert not without, "no docstring: " + ", ".join(without)
