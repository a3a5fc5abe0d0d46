"""Whole runs: fixed seeds, and what makes a seed worth something."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from kafka08.profile import CLASSIC, SAFE
from kafka08.simulation.plan import Fault, draw_plan, with_faults
from kafka08.simulation.run import simulate

SEEDS = [1, 5, 9, 13, 17, 18, 2080]
FOUND = [
    (110, SAFE),  # A partition that refuses a follower does not hold up the others
    (144, SAFE),  # A delete that a disk error interrupts leaves no log without its first messages
    (3000237, SAFE),  # The last read waits for the HW of a new leader
    (3000436, SAFE),  # A log may be extended during the last reads
    (3000453, SAFE),  # A commit that was not acknowledged may be read later, and then be overtaken
]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_run_breaks_no_rule(seed: int) -> None:
    """The cluster of this seed keeps its promises under its faults, and comes right after them."""
    assert simulate(seed).verdict is None


@pytest.mark.parametrize("seed", [5, 13])
def test_a_run_under_the_classic_profile_comes_right(seed: int) -> None:
    """Messages may be lost there, but everything works in the end."""
    assert simulate(seed, profile=CLASSIC).verdict is None


@pytest.mark.parametrize(("seed", "profile"), FOUND, ids=str)
def test_what_was_found_stays_mended(seed: int, profile: str) -> None:
    """Runs that found a defect of this project, each with the commit that mended it."""
    assert simulate(seed, profile=profile).verdict is None


def test_brokers_stop_when_late_requests_are_appended() -> None:
    """An async producer with acks 0 fills the buffers of a broker that syncs each message; a
    follower that stops before their end has a shorter log."""
    plan = with_faults(draw_plan(112, SAFE), 112, [Fault.SUSPEND, Fault.ELECT, Fault.KILL])
    assert simulate(112, plan=replace(plan, replication_factor=2)).verdict is None


@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_a_seed_means_one_run(hash_seed: str) -> None:
    """All that happens is the same in another process whose hashes of texts differ."""
    seed = SEEDS[0]
    program = f"from kafka08.simulation.run import simulate; print(simulate({seed}).digest)"
    result = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    )
    assert simulate(seed).digest == result.stdout.strip()
