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
from tests.docs.test_tools import options_of

ROOT = Path(__file__).parent.parent.parent
PAGES = [
    "README.md",
    "examples/README.md",
    *sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("docs/**/*.md")),
]
ELSEWHERE = {"docs/compose.md"}
"""Pages that other tests run: tests/compose."""
PAGE_S = "280"
OF_A_CLUSTER = ("localhost:", "KAFKA08_", "kafka08 ", "examples/")
"""A page has a cluster if one of these stands in a block that is run."""


@pytest.fixture
def environ(tmp_path: Path) -> Iterator[dict[str, str]]:
    """An environment in which `kafka08 up --detach` is, or becomes, the page's cluster."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    environ = {
        **inherited,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "XDG_STATE_HOME": str(tmp_path / "state"),
    }
    environ.pop("KAFKA08_DATA_DIR", None)
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
    run = [block for block in blocks(text) if block.is_run]
    if not run:
        return
    replacements = {}
    if any(word in "".join([*block.before, block.code]) for block in run for word in OF_A_CLUSTER):
        zookeeper, bootstrap = addresses(environ)
        host, port = bootstrap.split(",")[0].split(":")
        environ |= {"KAFKA08_ZOOKEEPER": zookeeper, "KAFKA08_BOOTSTRAP": bootstrap}
        replacements = {
            "localhost:2181": zookeeper,
            "localhost:9092": f"{host}:{port}",
            '"localhost", 9092': f'"{host}", {port}',
        }
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    done = subprocess.run(
        ["timeout", "--kill-after=5", PAGE_S, "bash", "-c", script(name, text, replacements)],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name: str) -> None:
    """Every relative link names a file that is there, or a package: the site has no page for other
    directories."""
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", (ROOT / name).read_text()):
        path = (ROOT / name).parent / target
        assert path.is_file() or (path / "__init__.py").is_file(), target


def headings_of(path: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    text = re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", PAGES)
def test_anchors_name_headings(name: str) -> None:
    """Every relative link with an anchor names a heading of its page."""
    page = ROOT / name
    for target, anchor in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", page.read_text()):
        assert anchor in headings_of(page.parent / target if target else page), (target, anchor)


@pytest.mark.parametrize("name", PAGES)
def test_commands_named_in_prose_exist(name: str) -> None:
    """Every `kafka08 noun verb --option` between backquotes exists."""
    for text in re.findall(r"`kafka08 ([^`]+)`", (ROOT / name).read_text()):
        command, options = options_of(text)
        assert command in text.split(), text
        assert set() == set(re.findall(r"(?<!\S)--[a-z-]+", text)) - options, text
