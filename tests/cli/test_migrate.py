"""`kafka08 migrate`: what it refuses, and how a user hears of it."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Commands, Inspector


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("plan", "nobody"), 1, "no store has an offset of it"),
        (("start", "nobody"), 1, "no store has an offset of it"),
        (("verify", "nobody"), 1, "the migration of nobody has not begun; start it first"),
        (("rollback", "nobody"), 1, "the migration of nobody has not begun; start it first"),
        (("forget", "nobody"), 1, "the migration of nobody has not begun; start it first"),
        (("start", "../.."), 2, "group.id: '../..' cannot be the name of a group"),
        (("start", "g", "--max-disagreement", "-1"), 2, "--max-disagreement"),
        (("rollback", "g", "--to", "x"), 2, "'x' is not one of 'newest', 'snapshot'"),
        (("plan", "g", "--bootstrap", "h"), 2, "'h' is not of the form host:port"),
        (("plan", "g", "--zookeeper", "h:x"), 2, "the port must be a number"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_refusals(
    kafka08: Commands, inspect: Inspector, arguments: tuple[str, ...], code: int, said: str
) -> None:
    """1 for what is not so now, 2 for what can never be; no journal is begun."""
    done = kafka08.refused("migrate", *arguments)
    assert code == done.code
    assert said in done.err
    assert "nobody" not in inspect.zk.children_or_empty("/kafka08/migrations")
