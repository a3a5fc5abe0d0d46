"""Moves between two clusters as processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

DEADLINE_S = 120.0


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


class Moves:
    """Runs `kafka08 move` of one topic. `options`: of the source and the target."""

    def __init__(self, options: Sequence[str], log: Path) -> None:
        self._options = options
        self._log = log
        self.running: subprocess.Popen[bytes] | None = None

    def start(self, *more: str) -> None:
        with self._log.open("ab") as err:
            self.running = subprocess.Popen(
                [*self._command("start"), *more], stderr=err, stdout=err, env=environment()
            )

    def end(self, number: int = signal.SIGTERM) -> int:
        """Its exit code."""
        assert self.running is not None
        running, self.running = self.running, None
        running.send_signal(number)
        return running.wait(DEADLINE_S)

    def run(self, verb: str, *more: str) -> Outcome:
        done = subprocess.run(
            [*self._command(verb), *more],
            env=environment(),
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    def _command(self, verb: str) -> list[str]:
        return [sys.executable, "-m", "kafka08.cli", "move", verb, *self._options]

    @property
    def said(self) -> str:
        return self._log.read_text() if self._log.exists() else ""


def environment() -> Mapping[str, str]:
    """Without addresses of clusters."""
    return {name: v for name, v in os.environ.items() if not name.startswith("KAFKA08_")}
