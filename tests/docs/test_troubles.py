"""docs/troubles.md quotes messages as the code has them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from kafka08.errors import CODES

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "troubles.md").read_text()
GAP = "…"


def quoted() -> list[str]:
    """The texts in backquotes in the first column, but for commands and keys."""
    columns = [row.split(" | ")[0] for row in PAGE.splitlines() if row.startswith("| ")]
    texts = [text for column in columns for text in re.findall(r"`([^`]+)`", column)]
    is_command = re.compile(r"kafka08 |--|[a-z.]+=|[a-z]+(\.[a-z]+)+$")
    return [text for text in texts if not is_command.match(text)]


@cache
def templates() -> tuple[str, ...]:
    """Every text in the package, GAP for what is put in."""
    return tuple(texts())


def texts() -> Iterator[str]:
    for path in (ROOT / "kafka08").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.JoinedStr):
                yield "".join(
                    str(part.value) if isinstance(part, ast.Constant) else GAP
                    for part in node.values
                )
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield re.sub(r"%[sdr]|\{\w*\}", GAP, node.value)


OF_THE_SYSTEM = {"No space left on device", "Leader: -1", "Leader: none", "out of sync"}
"""Texts that are printed as they are, and put together from parts."""


@pytest.mark.parametrize("text", quoted())
def test_the_message_is_in_the_code(text: str) -> None:
    """Its fragments between the gaps stand in one text, in their order; a name with a number is an
    error of the protocol's table."""
    if match := re.fullmatch(r"(\w+) \((\d+)\)", text):
        assert match[1] == CODES[int(match[2])].__name__
        return
    if text in OF_THE_SYSTEM:
        return
    fragments = text.removeprefix("Waiting: ").split(GAP)
    pattern = re.compile(".*".join(re.escape(part.strip()) for part in fragments), re.DOTALL)
    assert any(map(pattern.search, templates())), text


def test_messages_are_found() -> None:
    """The search finds messages, without which the test above would compare nothing."""
    assert len(quoted()) > 35
