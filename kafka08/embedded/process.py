"""A child process of an embedded cluster: its log, signals and exit code."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Protocol

from kafka08.embedded.guard import Guard
from kafka08.lifecycle import ProcessBound

EXCERPT_LINES = 25
STOP_S = 20.0


class Started(Protocol):
    """A process, as `subprocess.Popen` has it."""

    pid: int

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int:
        """Raises subprocess.TimeoutExpired."""

    def send_signal(self, sig: int, /) -> None: ...


class ManagedProcess(ProcessBound):
    """A process in a session of its own, so that Ctrl-C in the terminal reaches only its parent.

    Its output is appended to `log`. It can be started again after it has ended.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        log: Path,
        guard: Guard,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.command = list(command)
        self.log = log
        self._guard = guard
        self._environ = dict(os.environ if environ is None else environ)
        self._started: Started | None = None
        self._exit_code: int | None = None
        self._stopping = False
        self.is_paused = False

    @property
    def pid(self) -> int | None:
        """The process id; None unless it runs, since the id may be reused then."""
        return self._started.pid if self._started is not None and self.running else None

    @property
    def running(self) -> bool:
        return self._started is not None and self._started.poll() is None

    @property
    def exit_code(self) -> int | None:
        """Its exit code; None while it runs or before the first start."""
        return self._exit_code if self._started is None else self._started.poll()

    def start(self) -> None:
        """Start it; returns at once."""
        assert not self.running, f"{self.name} runs already"
        if self._started is not None:
            self._reap()
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as output:
            self._started = self._launch(output)
        self.is_paused = False
        self._stopping = False
        self._guard.add(self._started.pid)

    def _launch(self, output: IO[bytes]) -> Started:
        """Start a process of its own session, whose stdout and stderr are `output`."""
        return subprocess.Popen(
            self.command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=self._environ,
        )

    def stop(self, timeout: float = STOP_S) -> int | None:
        """SIGTERM, then SIGKILL after `timeout` seconds; returns the exit code. Resumes it first if
        it is paused."""
        self.begin_stop()
        return self.finish_stop(timeout)

    def begin_stop(self) -> None:
        """Send SIGTERM, once, and return; call `finish_stop` afterwards. (A second SIGTERM ends a
        broker at once.)"""
        if self.running and not self._stopping:
            self._stopping = True
            self.send(signal.SIGTERM)
            self.send(signal.SIGCONT)

    def finish_stop(self, timeout: float = STOP_S) -> int | None:
        if self._started is None:
            return self._exit_code
        try:
            self._started.wait(timeout)
        except subprocess.TimeoutExpired:
            self.send(signal.SIGKILL)
        return self._reap()

    def kill(self) -> None:
        """SIGKILL: it ends without cleaning up."""
        if self.running:
            self.send(signal.SIGKILL)
        if self._started is not None:
            self._reap()

    def pause(self) -> None:
        """SIGSTOP: its sockets stay open, but it does not respond."""
        self.send(signal.SIGSTOP)
        self.is_paused = True

    def resume(self) -> None:
        self.send(signal.SIGCONT)
        self.is_paused = False

    def log_excerpt(self, lines: int = EXCERPT_LINES) -> str:
        """The last lines of its output."""
        return self.logged_since(0, lines) or (
            "(the log is empty)" if self.log.exists() else "(no log)"
        )

    @property
    def log_size(self) -> int:
        """The size of its output so far, in bytes."""
        return self.log.stat().st_size if self.log.exists() else 0

    def logged_since(self, position: int, lines: int = EXCERPT_LINES) -> str:
        """The last lines of its output after the first `position` bytes; "" if there is none."""
        try:
            with self.log.open("rb") as log:
                log.seek(position)
                text = log.read().decode(errors="replace")
        except FileNotFoundError:
            return ""
        return "\n".join(text.splitlines()[-lines:])

    def describe_failure(self) -> str:
        """Name, exit code and the end of its log, for an error."""
        state = "still runs" if self.running else f"ended with exit code {self.exit_code}"
        return f"{self.name} {state}; the end of {self.log}:\n{self.log_excerpt()}"

    def send(self, number: signal.Signals) -> None:
        """Send a signal; no effect if it does not run."""
        if self._started is not None:
            self._started.send_signal(number)

    def _reap(self) -> int:
        assert self._started is not None
        self._exit_code = self._started.wait()
        self._guard.drop(self._started.pid)
        self._started = None
        return self._exit_code
