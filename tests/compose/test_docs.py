"""docs/compose.md, every command of it, on a real engine."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from tests.docs.snippets import script

if TYPE_CHECKING:
    from tests.compose.project import ComposeProject

DOCS = Path(__file__).parent.parent.parent / "docs"
PAGE_S = "300"


def test_the_page_runs(project: ComposeProject, tmp_path: Path) -> None:
    """From build to down, with the ports and the project of this run."""
    ports = {
        "localhost:2181": project.zookeeper,
        "docker-compose ": f"{' '.join(project.command)} ",
    }
    for number, port in enumerate(project.ports.values()):
        ports[f"localhost:{9092 + number}"] = f"localhost:{port}"
    page = script("compose.md", (DOCS / "compose.md").read_text(), ports)
    done = subprocess.run(
        ["timeout", "--kill-after=5", PAGE_S, "bash", "-c", page],
        cwd=tmp_path,
        env=project.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert done.stdout.splitlines().count("120") == 2
