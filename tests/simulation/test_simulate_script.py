"""`scripts/simulate`: its exit code says whether all its processes have passed, and half of them
run the source of rules that are compiled."""

from __future__ import annotations

import os
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
    script, command = scripts_in(tmp_path)
    command.write_text(f"#!/bin/sh\ncat <<'SAID'\n{said}\nSAID\nexit {ends_with}\n")
    command.chmod(0o755)
    done = subprocess.run([script, "1"], capture_output=True, text=True, check=False)
    assert expected == done.returncode, done.stderr
    kept = (tmp_path / "simulate-failures.txt").read_text()
    assert (said in kept) == (said == FAILED)


def test_half_of_the_processes_run_the_rules_of_replicas_from_their_source(tmp_path: Path) -> None:
    """The source and its build judge each other: a rule that only one of them keeps is broken in
    half of the runs."""
    script, command = scripts_in(tmp_path)
    command.write_text('#!/bin/sh\necho "rules: $KAFKA08_RULES"\n')
    cores = tmp_path / "nproc"
    cores.write_text("#!/bin/sh\necho 4\n")
    for file in (command, cores):
        file.chmod(0o755)
    environ = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run([script, "1"], capture_output=True, text=True, check=True, env=environ)
    assert sorted(done.stdout.splitlines()) == ["rules: "] * 2 + ["rules: source"] * 2


def scripts_in(directory: Path) -> tuple[Path, Path]:
    """The script, and the command that it runs, in a directory of their own."""
    script = directory / "scripts" / "simulate"
    command = directory / ".venv" / "bin" / "kafka08"
    for file in (script, command):
        file.parent.mkdir(parents=True)
    shutil.copy(ROOT / "scripts" / "simulate", script)
    return script, command
