"""Installing needs no C compiler."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of what setup.py reads."""
    pytest.importorskip("Cython", reason="building needs Cython, which the extra dev brings")
    kernel = tmp_path / "kafka08" / "kernel"
    shutil.copytree(ROOT / "kafka08" / "kernel", kernel, ignore=shutil.ignore_patterns("*.so"))
    replica = tmp_path / "kafka08" / "broker" / "replica"
    shutil.copytree(
        ROOT / "kafka08" / "broker" / "replica", replica, ignore=shutil.ignore_patterns("*.so")
    )
    for name in ("setup.py", "README.md", "kafka08/__init__.py"):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def build(project: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """Where every C compiler fails."""
    return subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext", "--inplace"],
        cwd=project,
        env={**os.environ, "CC": "/bin/false", **environ},
        check=False,
        capture_output=True,
        text=True,
    )


def test_a_missing_compiler_is_no_error(project: Path) -> None:
    """The build succeeds without a compiled kernel; the twin runs then (test_choice)."""
    done = build(project)
    assert done.returncode == 0, done.stderr
    assert list(project.rglob("*.so")) == []


def test_a_release_is_never_built_without_the_kernel(project: Path) -> None:
    """With KAFKA08_NATIVE=1, which scripts/release and the public CI set, a missing compiler is an
    error."""
    assert build(project, KAFKA08_NATIVE="1").returncode
