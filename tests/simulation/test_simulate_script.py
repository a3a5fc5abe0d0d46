"""`scripts/simulate` says by its exit code whether all its processes have passed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.test_layout import ROOT

FAILED = "FAILED seed 7: 1 s\n    lost: b'1'\n    kafka08 simulate --seed 7 --replay"


@pytest.mark.parametrize(
    ("said", "ends_with", "expected"),
    [
        ("ok     seed 7: 1 s", 0, 0),
        (FAILED, 1, 1),
        ('{"seed": 7, "verdict": "lost"}', 1, 1),
        ("Traceback (most recent call last):", 1, 1),
        ("Usage: kafka08 simulate [OPTIONS]", 2, 1),
    ],
    ids=["passed", "failing seed", "failing seed in JSON", "crash", "misuse"],
)
def test_it_fails_if_one_of_its_processes_fails(
    tmp_path: Path, said: str, ends_with: int, expected: int
) -> None:
    """Also if the process prints no line that begins with FAILED. Only such lines, each with its
    two next ones, go to the file."""
    script = tmp_path / "scripts" / "simulate"
    command = tmp_path / ".venv" / "bin" / "kafka08"
    for file in (script, command):
        file.parent.mkdir(parents=True)
    shutil.copy(ROOT / "scripts" / "simulate", script)
    command.write_text(f"#!/bin/sh\ncat <<'SAID'\n{said}\nSAID\nexit {ends_with}\n")
    command.chmod(0o755)
    done = subprocess.run([script, "1"], capture_output=True, text=True, check=False)
    assert expected == done.returncode, done.stderr
    kept = (tmp_path / "simulate-failures.txt").read_text()
    assert (said in kept) == (said == FAILED)
