"""The diagrams of states in docs/concepts have the transitions that the code allows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from kafka08.broker.controller import partition_state
from kafka08.broker.groups import group_state
from kafka08.migration import journal

CONCEPTS = Path(__file__).parent.parent.parent / "docs" / "concepts"
SHORTER = {
    "rolling back to the newest offsets": "rolling_to_newest",
    "returning to ZooKeeper": "returning",
    "rolling back to the snapshot": "rolling_to_snapshot",
    "rolled back": "rolled_back",
}
"""State in the journal → its name in a diagram."""
TRANSITION = re.compile(r"^ *(\[\*\]|\w+) --> (\w+)", re.MULTILINE)
ALIAS = re.compile(r'^ *state "([^"]*)" as (\w+)$', re.MULTILINE)


def drawn(page: str) -> set[tuple[str, str]]:
    """(from, to) of every arrow between states; an alias stands for each state that it names."""
    found = set()
    text = (CONCEPTS / page).read_text()
    for diagram in re.findall(r"^```mermaid\nstateDiagram-v2\n(.*?)^```$", text, re.M | re.S):
        aliases = {name: label.split(", ") for label, name in ALIAS.findall(diagram)}
        for source, target in TRANSITION.findall(diagram):
            found |= {(state, target) for state in aliases.get(source, [source])}
    return found


def allowed(valid_previous: Mapping[Any, frozenset[Any]]) -> set[tuple[str, str]]:
    """(from, to) of a table of legal predecessors."""
    return {
        (name_of(source), name_of(target))
        for target, sources in valid_previous.items()
        for source in sources
    }


def name_of(state: Enum | None) -> str:
    return "[*]" if state is None else SHORTER.get(state.value, state.value)


@pytest.mark.parametrize(
    ("page", "table"),
    [
        ("leader-change.md", partition_state.VALID_PREVIOUS),
        ("rebalance.md", group_state.VALID_PREVIOUS),
        ("migration.md", journal.VALID_PREVIOUS),
    ],
)
def test_arrows_are_the_legal_transitions(page: str, table: Mapping[Any, frozenset[Any]]) -> None:
    """All of them, and no other; a state that follows itself need not be drawn."""
    arrows, legal = drawn(page), allowed(table)
    loops = {(state, state) for _, state in legal}
    assert legal - loops == arrows - loops
    assert arrows <= legal
