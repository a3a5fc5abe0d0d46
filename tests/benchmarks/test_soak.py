"""A soak's log is complete, however the soak ends."""

from __future__ import annotations

import re
import signal
import subprocess
import sys

PROGRAM = """
import sys
from benchmarks.soak import Outcome, announced, soak, soak_parser

options = soak_parser("soak-test", None).parse_args()

def run_round(number, rng):
    sys.stdin.readline()
    return Outcome("fine", [])

with announced(options):
    soak(options, run_round)
"""


def test_a_soak_that_is_stopped_says_so() -> None:
    """Its first line has the pid and the seed, its last one the signal. Each is written at once,
    also to a file."""
    command = [sys.executable, "-c", PROGRAM, "--seed", "7"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        first = process.stdout.readline()
        assert f"begins: pid {process.pid}," in first
        assert "seed=7" in first
        process.stdin.write("\n")
        process.stdin.flush()
        assert "round 1:" in process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        last = process.stdout.read().splitlines()[-1]
    assert re.search(r"ends after .* min: SystemExit\('stopped by SIGTERM'\)", last)
    assert process.returncode == 1
