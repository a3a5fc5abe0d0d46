"""The suites of examples/other-languages, as their first lines say: each breaks a cluster of
`kafka08 up` with the standard library of its language."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.cli.test_up import Commands
from tests.interop.foreign_clients import POM_3_9_1, PROGRAMS, needed, node_modules
from tests.interop.jvm import TOOL_FLAGS, command, compiled

SUITES = Path(__file__).parent.parent.parent / "examples" / "other-languages"


@pytest.fixture(scope="module")
def environ(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, str]]:
    """The variables that `kafka08 status --env` sets, of a cluster with a control server."""
    kafka08 = Commands(tmp_path_factory.mktemp("state"))
    kafka08("up", "--detach", "--control", "127.0.0.1:0")
    try:
        lines = kafka08("status", "--env").stdout.splitlines()
        assigned = dict(line.removeprefix("export ").split("=", 1) for line in lines)
        assert "KAFKA08_CONTROL_TOKEN_FILE" in assigned
        yield {**os.environ, **assigned}
    finally:
        kafka08("down")


def run(line: list[str], environ: Mapping[str, str], directory: Path) -> str:
    """The output of a suite, which passes."""
    done = subprocess.run(
        line, env=environ, cwd=directory, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_node(environ: Mapping[str, str], tmp_path: Path) -> None:
    """kafkajs, by node's own test runner."""
    with needed("kafkajs"):
        modules = node_modules()
    said = run(["node", "--test", str(SUITES / "faults.test.js")], {**environ, **modules}, tmp_path)
    assert "# pass 3" in said


def test_go(environ: Mapping[str, str], tmp_path: Path) -> None:
    """franz-go, by go test."""
    if shutil.which("go") is None:
        pytest.skip("no go in PATH")
    for name in ("go.mod", "go.sum"):
        shutil.copy(PROGRAMS / "franz_go" / name, tmp_path)
    shutil.copy(SUITES / "faults_test.go", tmp_path)
    said = run(["go", "test", "-v", "-count=1", "./..."], environ, tmp_path)
    assert said.count("    --- PASS") == 3


def test_java(environ: Mapping[str, str], tmp_path: Path) -> None:
    """Kafka's own client."""
    with needed("java"):
        classes = compiled(SUITES / "FaultsTest.java", POM_3_9_1)
        line = command("FaultsTest", flags=TOOL_FLAGS, classes=classes, pom=POM_3_9_1)
    assert run(line, environ, tmp_path) == "3 tests passed\n"
