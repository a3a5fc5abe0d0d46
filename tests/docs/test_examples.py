"""The programs of examples/, typed wrongly and without a cluster. Their page runs them as it says:
tests/docs/test_pages.py."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
PROGRAMS = sorted(path.name for path in EXAMPLES.glob("*.py"))
NOWHERE = {"KAFKA08_ZOOKEEPER": "127.0.0.1:1", "KAFKA08_BOOTSTRAP": "127.0.0.1:1"}


def start(*words: str, **variables: str) -> subprocess.Popen[str]:
    environ = {key: value for key, value in os.environ.items() if key not in NOWHERE}
    return subprocess.Popen(
        [sys.executable, str(EXAMPLES / words[0]), *words[1:]],
        env=environ | variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "failover.py"])
def test_a_missing_argument_is_answered_with_the_usage(name: str) -> None:
    """Exit code 2 and the usage, as of other commands. failover.py takes no arguments."""
    with start(name) as process:
        said, complained = process.communicate(timeout=60)
    assert (2, "") == (process.returncode, said)
    assert complained.startswith(f"usage: {name} ")
    assert "Traceback" not in complained


@pytest.mark.parametrize(
    "words",
    [("columns.py", "t"), ("lag_alarm.py", "g"), ("migrate.py", "g"), ("worker.py", "t", "g")],
)
def test_a_cluster_that_is_not_there_is_an_error_of_one_line(words: tuple[str, ...]) -> None:
    """The error names the address, and the exit code is 1."""
    with start(*words, **NOWHERE) as process:
        _, complained = process.communicate(timeout=60)
    assert 1 == process.returncode
    last = complained.splitlines()[-1]
    assert last.startswith("Error: ")
    assert "127.0.0.1:1" in last
    assert "Traceback" not in complained


def test_ctrl_c_ends_a_program_that_waits_for_a_cluster() -> None:
    """dead_letters.py leaves its loop and its blocks, with exit code 0."""
    with start("dead_letters.py", "t", "g", **NOWHERE) as process:
        assert process.stderr is not None
        assert any(
            "[group g] no broker responded" in line for line in process.stderr
        )  # in its loop
        process.send_signal(signal.SIGINT)
        _, complained = process.communicate(timeout=60)
    assert "Traceback" not in complained
    assert 0 == process.returncode
