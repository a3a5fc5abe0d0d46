"""The programs in docs/, to be run as they stand there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"


def program_of(page: str) -> str:
    """The one ```python block of docs/<page>."""
    text = (DOCS / page).read_text()
    (program,) = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return str(program)


def run_program(
    page: str, directory: Path, *args: str, bootstrap: str, zookeeper: str
) -> list[str]:
    """The lines that the program of a page prints on that cluster; it must end with 0."""
    script = directory / "program.py"
    script.write_text(program_of(page))
    done = subprocess.run(
        [sys.executable, str(script), *args],
        env={**os.environ, "KAFKA08_BOOTSTRAP": bootstrap, "KAFKA08_ZOOKEEPER": zookeeper},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
