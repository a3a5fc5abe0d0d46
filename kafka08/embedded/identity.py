"""Identifies a process beyond its id.

When a process has ended, the system may give its id to another one. A stored id therefore has the
start time of its process with it, which is compared before a signal is sent.
"""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import NamedTuple

from kafka08.errors import KafkaError

_PROC = Path("/proc")


class ProcessIdentity(NamedTuple):
    """A process id with the start time of its process, from `started_at`."""

    pid: int
    started: str

    @classmethod
    def of_this_process(cls) -> ProcessIdentity:
        return cls(os.getpid(), started_at(os.getpid()) or "")

    @property
    def is_alive(self) -> bool:
        return started_at(self.pid) == self.started

    def send(self, number: signal.Signals) -> bool:
        """Send a signal to the process. False if it has ended, even when another process has its
        id. KafkaError if it belongs to another user."""
        if not self.is_alive:
            return False
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            return False
        except PermissionError as error:
            raise KafkaError(f"process {self.pid} belongs to another user") from error
        return True


def started_at(pid: int) -> str | None:
    """The start time of the process, as text without blanks to compare for equality. None if there
    is no such process, or if it is a zombie.

    On Linux these are clock ticks since boot (field 22 of /proc/PID/stat), elsewhere the second
    that ps prints. guard.py compares the same text in a shell.
    """
    if (_PROC / "self" / "stat").exists():
        try:
            stat = (_PROC / str(pid) / "stat").read_text(errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            return None
        # Field 2, the program's name in parentheses, may contain blanks.
        state, *fields = stat.rpartition(") ")[2].split()
        return None if state in "ZX" else fields[18]
    state, *started = subprocess.run(
        ["ps", "-o", "stat=", "-o", "lstart=", "-p", str(pid)],
        capture_output=True,
        text=True,
        check=False,
    ).stdout.split() or [""]
    return None if state.startswith("Z") else "_".join(started) or None
