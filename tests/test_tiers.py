"""Every test is in a tier that CI runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.test_layout import ROOT
from tests.tiers import FAULTS, PAGES

TIERS = ("releases", "spark", "pages", "faults")
MARK = re.compile(rf"pytest\.mark\.({'|'.join(TIERS)})\b")


@pytest.mark.parametrize("prefix", PAGES + FAULTS)
def test_what_a_tier_names_exists(prefix: str) -> None:
    """A file or test that is renamed does not leave its tier."""
    path, _, name = prefix.partition("::")
    assert (ROOT / path).exists()
    assert not name or f"def {name}(" in (ROOT / path).read_text()


@pytest.mark.parametrize("tier", TIERS)
def test_ci_runs_each_tier(tier: str) -> None:
    """CI's scripts, here and on a public host, run it."""
    for ci in (".ci/run", ".github/workflows/ci.yml"):
        assert f"scripts/test-{tier}" in (ROOT / ci).read_text(), ci


def test_a_test_with_a_mark_is_in_a_folder_of_its_tiers_script() -> None:
    """scripts/test leaves a marked test out, and a tier's script looks only into its folders: a
    test that is marked elsewhere would never run."""
    scripts = "\n".join((ROOT / f"scripts/test-{tier}").read_text() for tier in TIERS)
    folders = tuple(re.findall(r"(?<= )tests/[\w/.]+", scripts)) + FAULTS

    def is_run(path: Path) -> bool:
        return str(path.relative_to(ROOT)).startswith(folders)

    marked = [path for path in (ROOT / "tests").rglob("test_*.py") if MARK.search(path.read_text())]
    assert marked
    assert [path for path in marked if not is_run(path)] == [], "in no tier"
