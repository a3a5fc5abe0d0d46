"""What brokers answer to drawn requests, and what becomes of it, is as it was recorded
(recorded_history): by the fast ways and by the handlers, on the compiled kernel and on its twin."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kafka08.levels import Level
from tests.broker.requests.recorded_history import HISTORIES, LEVELS, first_difference

ROOT = Path(__file__).parents[3]
WAYS = pytest.mark.parametrize("handlers", [False, True], ids=["fast", "handlers"])


@WAYS
@pytest.mark.parametrize("level", LEVELS)
def test_a_history_repeats(level: Level, handlers: bool) -> None:
    """The first recorded history of a level comes out the same."""
    assert "" == first_difference(level, 0, handlers=handlers)


@WAYS
@pytest.mark.parametrize("level", LEVELS)
def test_every_history_repeats(level: Level, handlers: bool) -> None:
    """All recorded histories of a level come out the same."""
    for number in range(HISTORIES):
        assert "" == first_difference(level, number, handlers=handlers)


def test_a_history_repeats_on_the_twin() -> None:
    """A process with the kernel in Python plays the first histories to the same end."""
    assert "" == check_on_twin(1)


def test_every_history_repeats_on_the_twin() -> None:
    """A process with the kernel in Python plays all histories to the same end."""
    assert "" == check_on_twin(HISTORIES)


def check_on_twin(count: int) -> str:
    command = [sys.executable, "-m", "tests.broker.requests.recorded_history", "--check"]
    run = subprocess.run(
        [*command, str(count)],
        cwd=ROOT,
        env={**os.environ, "KAFKA08_KERNEL": "python"},
        capture_output=True,
        text=True,
        check=False,
    )
    return run.stdout + run.stderr
