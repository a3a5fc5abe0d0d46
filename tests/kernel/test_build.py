"""Installing needs no C compiler."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


def test_a_missing_compiler_is_no_error(tmp_path: Path) -> None:
    """The build of a copy ends well, with nothing compiled; the twin runs then (test_choice)."""
    pytest.importorskip("Cython", reason="building needs Cython, which the extra dev brings")
    kernel = tmp_path / "kafka08" / "kernel"
    shutil.copytree(ROOT / "kafka08" / "kernel", kernel, ignore=shutil.ignore_patterns("*.so"))
    shutil.copy(ROOT / "setup.py", tmp_path)
    subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext", "--inplace"],
        cwd=tmp_path,
        env={**os.environ, "CC": "/bin/false"},
        check=True,
        capture_output=True,
    )
    assert list(kernel.glob("*.so")) == []
