"""Every command and snippet of README and docs, run as it stands there, on a cluster of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.snippets import blocks, script

ROOT = Path(__file__).parent.parent.parent
PAGES = ["README.md", *sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("docs/*.md"))]
ELSEWHERE = {"docs/compose.md"}
"""Pages that other tests run: tests/compose."""
PAGE_SECONDS = "280"


@pytest.fixture
def environ(tmp_path: Path) -> Iterator[dict[str, str]]:
    """An environment in which `kafka08 up --detach` is, or becomes, the page's cluster."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    environ = {
        **inherited,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "KAFKA08_DATA_DIR": str(tmp_path / "cluster"),
    }
    yield environ
    kafka08(environ, "down")


def addresses(environ: dict[str, str]) -> tuple[str, str]:
    """ZooKeeper's and the brokers' of the cluster, which is started."""
    kafka08(environ, "up", "--detach")
    standing = json.loads(kafka08(environ, "status", "--json"))
    return standing["zookeeper"], standing["bootstrap"]


def kafka08(environ: dict[str, str], *arguments: str) -> str:
    done = subprocess.run(
        ["kafka08", *arguments], env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", [name for name in PAGES if name not in ELSEWHERE])
def test_the_page_runs(name: str, environ: dict[str, str], tmp_path: Path) -> None:
    """Its blocks, from top to end. localhost:2181 and localhost:9092 stand for the cluster's."""
    text = (ROOT / name).read_text()
    if not any(block.is_run for block in blocks(text)):
        return
    zookeeper, bootstrap = addresses(environ)
    host, port = bootstrap.split(",")[0].split(":")
    replacements = {
        "localhost:2181": zookeeper,
        "localhost:9092": f"{host}:{port}",
        '"localhost", 9092': f'"{host}", {port}',
    }
    done = subprocess.run(
        ["timeout", "--kill-after=5", PAGE_SECONDS, "bash", "-c", script(name, text, replacements)],
        cwd=tmp_path,
        env={**environ, "KAFKA08_ZOOKEEPER": zookeeper, "KAFKA08_BOOTSTRAP": bootstrap},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name: str) -> None:
    """Every relative link names a file that is there."""
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", (ROOT / name).read_text()):
        assert (ROOT / name).parent.joinpath(target).exists(), target
