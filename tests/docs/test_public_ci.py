"""The public CI file runs what is there, on the Pythons that the package names."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
WORKFLOW = (ROOT / ".github" / "workflows" / "ci.yml").read_text()


def test_actions_are_pinned() -> None:
    """To one version each, so that CI changes when the file does."""
    used = re.findall(r"uses: (\S+)", WORKFLOW)
    assert used
    assert [] == [name for name in used if not re.search(r"@v\d+\.\d+\.\d+$", name)]


def test_scripts_exist() -> None:
    """Every script that a step runs."""
    named = set(re.findall(r"\bscripts/[\w-]+", WORKFLOW))
    assert {"scripts/test", "scripts/docs"} <= named
    assert [] == [name for name in named if not (ROOT / name).is_file()]


def test_the_pythons_are_those_of_the_package() -> None:
    """The classifiers of setup.cfg."""
    pattern = re.compile(r"Python :: (3\.\d+)$", re.MULTILINE)
    [matrix] = re.findall(r"python: \[(.*)\]", WORKFLOW)
    classifiers = pattern.findall((ROOT / "setup.cfg").read_text())
    assert classifiers == [version.strip(' "') for version in matrix.split(",")]
