"""Columns of docstrings become lists on the site."""

from __future__ import annotations

from scripts.site.columns import with_lists

TEXT = """\
Connects at once.

zookeeper   connect string of the cluster; None: ZooKeeper groups
            cannot be read
a, b        two of them
Not a row  of a table, since it begins with a capital.
"""


def test_aligned_parameters_are_items() -> None:
    """A name and its description in a row each, with the lines that continue it; prose stays."""
    assert with_lists(TEXT).splitlines() == [
        "Connects at once.",
        "",
        "- `zookeeper`: connect string of the cluster; None: ZooKeeper groups",
        "  cannot be read",
        "- `a`, `b`: two of them",
        "",
        "Not a row  of a table, since it begins with a capital.",
    ]
