"""scripts/coverage counts lines and branches, and fails if a package has less than its minimum."""

from __future__ import annotations

from typing import Final

import pytest

from scripts.coverage_report import MINIMUM, report, shortfalls
from tests.test_layout import ROOT


def summary(statements: int, missing: int, branches: int = 0, taken: int = 0) -> dict[str, int]:
    """coverage.py's figures of one file."""
    return {
        "num_statements": statements,
        "covered_lines": statements - missing,
        "missing_lines": missing,
        "num_branches": branches,
        "covered_branches": taken,
    }


FILES: Final = {
    "kafka08/log/log.py": summary(60, 10, branches=20, taken=10),
    "kafka08/zk/store.py": summary(15, 0),
    "kafka08/errors.py": summary(5, 0),
}
"""100 lines and branches, of which 80 ran."""


def test_packages_and_gaps() -> None:
    """All, then each package by name; modules of no package are one row; files without a gap are
    left out."""
    rows = [line.split() for line in report(FILES)]
    assert [row[:2] for row in rows[:4]] == [
        ["all", "80.0"],
        ["(modules)", "100.0"],
        ["log", "75.0"],
        ["zk", "100.0"],
    ]
    assert rows[5:] == [["10", "kafka08/log/log.py"]]


@pytest.mark.parametrize(("least", "falls_short"), [(0, False), (75, False), (76, True)])
def test_less_than_the_minimum_is_an_error(least: int, falls_short: bool) -> None:
    """It names the package and both figures. The minimum itself is enough."""
    found = shortfalls(FILES, {"zk": 100, "log": least})
    assert len(found) == falls_short
    if falls_short:
        assert found[0].startswith("log: 75.0 % of lines and branches ran, less than 76 %")


def test_a_package_that_was_not_measured_falls_short() -> None:
    """Renamed or left out, it cannot pass."""
    assert len(shortfalls(FILES, {"former": 50})) == 1


def test_each_minimum_is_for_a_package_that_exists() -> None:
    """A package that is renamed keeps its minimum."""
    assert [] == [name for name in MINIMUM if not (ROOT / "kafka08" / name).is_dir()]
