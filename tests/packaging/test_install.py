"""`scripts/install` installs again after changes, and only then."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.test_layout import ROOT

LATER = 4_000_000_000
"""Seconds since 1970: a time after the first installation."""


@pytest.mark.parametrize(
    ("changed", "again"),
    [
        ("setup.cfg", True),
        ("requirements-dev.lock", True),
        ("kafka08/kernel/_native.pyx", True),
        ("kafka08/broker/replica/replica_state.py", True),
        ("kafka08/kernel/__pycache__/_python.cpython-311.pyc", False),
    ],
)
def test_only_a_changed_source_is_installed_again(
    tmp_path: Path, changed: str, again: bool
) -> None:
    """The first import after an installation writes compiled files, which are no change."""
    script, python = tmp_path / "scripts" / "install", tmp_path / ".venv" / "bin" / "python"
    calls = tmp_path / "calls"
    for name in ("setup.cfg", "setup.py", "pyproject.toml", "requirements-dev.lock", changed):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    for directory in (script.parent, python.parent, tmp_path / "kafka08" / "kernel"):
        directory.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "scripts" / "install", script)
    python.write_text(f"#!/bin/sh\necho pip >> {calls}\n")
    python.chmod(0o755)
    counts = []
    for _ in range(2):
        subprocess.run([script, "all"], check=True, env={**os.environ, "PYTHON": "python3"})
        counts.append(calls.read_text().count("pip"))
        os.utime(tmp_path / changed, (LATER, LATER))
    assert counts[0] > 0
    assert again == (counts[1] > counts[0])
