"""`kafka08 simulate` prints one line, or one JSON object, per run."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from kafka08.cli.simulate import KINDS
from kafka08.profile import SAFE
from kafka08.simulation.plan import draw_plan

RUN = (sys.executable, "-m", "kafka08.cli", "simulate")
SEED = ("--seed", "7")


def simulate(*options: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*RUN, *options], capture_output=True, timeout=120, check=False)


def test_a_run_for_machines() -> None:
    """--json has the whole outcome, with the seed that repeats the run."""
    done = simulate(*SEED, "--json")
    outcome = json.loads(done.stdout)
    assert (7, done.returncode == 0) == (outcome["seed"], outcome["verdict"] is None)
    assert outcome["acknowledged"] > 0


def test_a_plan_is_run_and_shown(tmp_path: Path) -> None:
    """--plan and --replay run a file of --shrink, --replay with its events, or say what is wrong
    with it. --timeline writes a page."""
    plan, page = tmp_path / "plan.json", tmp_path / "run.html"
    plan.write_text(replace(draw_plan(7, SAFE), faults=(), faults_seconds=1.0).to_json(7))
    done = simulate("--plan", str(plan), "--timeline", str(page))
    assert (0, True) == (done.returncode, b"ok     seed 7: " in done.stdout)
    assert b"topic made" not in done.stdout
    assert "<canvas" in page.read_text()
    again = simulate("--replay", str(plan))
    assert b"topic made" in again.stdout
    assert done.stdout.split()[-1] == again.stdout.split()[-1], "the same hash"
    for given in (SEED, ("--profile", SAFE)):
        assert 2 == simulate(*given, "--plan", str(plan)).returncode, "it is in the file"
    plan.write_text("{}")
    done = simulate("--replay", str(plan))
    assert 1 == done.returncode
    assert b"plan.json: it does not contain the plan of a run" in done.stderr


def test_a_group_with_a_coordinator() -> None:
    """With --coordinated the group reads by KafkaConsumer, at a level with a coordinator."""
    done = simulate(*SEED, "--coordinated", "--replay")
    assert done.returncode == 0
    assert b"coordinated=True" in done.stdout
    assert b"level='0.9.0'" in done.stdout


def test_a_replay_is_text() -> None:
    """A replay prints the events as text, not as JSON."""
    done = simulate(*SEED, "--replay", "--json")
    assert 2 == done.returncode
    assert b"Give only one of --replay and --json." in done.stderr


def test_faults_are_chosen_by_name() -> None:
    """--faults with an unknown kind is misuse, and the error lists the known kinds."""
    done = simulate(*SEED, "--faults", "kill,nosuch")
    assert 2 == done.returncode
    assert f"'nosuch' is not one of {', '.join(sorted(KINDS))}\n".encode() in done.stderr


def test_a_page_that_cannot_be_written_is_misuse(tmp_path: Path) -> None:
    """The command refuses a missing directory before it runs anything."""
    done = simulate(*SEED, "--timeline", str(tmp_path / "nosuch" / "run.html"))
    assert (2, b"") == (done.returncode, done.stdout)
    assert b"nosuch does not exist" in done.stderr
