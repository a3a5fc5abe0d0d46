"""`kafka08 simulate`: one line, or one JSON object, for each run."""

from __future__ import annotations

import json
import subprocess
import sys

RUN = (sys.executable, "-m", "kafka08.cli", "simulate", "--seed", "7")


def simulate(*options: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*RUN, *options], capture_output=True, timeout=120, check=False)


def test_a_run_for_machines() -> None:
    """--json: the whole outcome, with the seed that repeats it."""
    done = simulate("--json")
    outcome = json.loads(done.stdout)
    assert (7, done.returncode == 0) == (outcome["seed"], outcome["verdict"] is None)
    assert outcome["acknowledged"] > 0


def test_a_replay_is_text() -> None:
    """Line by line what happened: no JSON."""
    done = simulate("--replay", "--json")
    assert 2 == done.returncode
    assert b"use one of --replay and --json" in done.stderr
