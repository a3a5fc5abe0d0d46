"""Defects planted by another hand, which knew the promises and not the rules: runs find them.

Each is a patch of the code, in `planted/other_hand`; its README.md has the promise that it breaks,
and the number of drawn runs that found it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PATCHES = sorted((Path(__file__).parent / "planted" / "other_hand").glob("*.patch"))
ROW = re.compile(r"^\| (\d\d) \|.*\| (\d+) \|$", re.MULTILINE)
README = (PATCHES[0].parent / "README.md").read_text()
RUNS = {number: int(runs) for number, runs in ROW.findall(README)}
"""Number of a defect → the drawn runs until one found it."""
SEED = 860_000_000
OFTEN = [patch for patch in PATCHES if RUNS.get(patch.name[:2], 100) <= 8]
PROGRAM = """
import logging, sys
from kafka08.cli.simulate import _draw
from kafka08.profile import CLASSIC, SAFE
from kafka08.simulation.run import simulate
logging.getLogger().setLevel(logging.CRITICAL + 1)
for seed in range(int(sys.argv[1]), int(sys.argv[1]) + 40):
    profile = CLASSIC if seed % 4 == 3 else SAFE
    verdict = simulate(seed, plan=_draw(seed, profile, None, coordinated=seed % 4 == 2)).verdict
    if verdict is not None:
        sys.exit(f"{seed}: {verdict}")
"""


def planted(patch: Path, directory: Path) -> Path:
    """A copy of the code with the defect."""
    shutil.copytree(ROOT / "kafka08", directory / "kafka08")
    subprocess.run(["patch", "-p1", "-s", "-f", "-i", patch], cwd=directory, check=True)
    return directory


@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.stem)
def test_a_patch_fits(patch: Path, tmp_path: Path) -> None:
    """The code that a patch changes still exists; README.md has a row for it."""
    planted(patch, tmp_path)
    assert f"| {patch.name[:2]} | " in README


@pytest.mark.parametrize("patch", OFTEN, ids=lambda patch: patch.stem)
def test_drawn_runs_find_it(patch: Path, tmp_path: Path) -> None:
    """One of the runs that the first seeds draw breaks a rule."""
    env = {**os.environ, "KAFKA08_RULES": "source", "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(SEED)],
        cwd=planted(patch, tmp_path),
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert re.match(r"\d+: ", done.stderr), done.stderr
