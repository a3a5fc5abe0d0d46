"""How many places does a new message format take? One module, and one row of FORMATS."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def test_a_new_format_is_a_class_and_a_row(tmp_path: Path) -> None:
    """A log stores, reads, recovers, truncates, checks and dumps batches of a toy format."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.format.toy", str(tmp_path)],
        cwd=ROOT,
        env=os.environ | {"KAFKA08_KERNEL": "python"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
