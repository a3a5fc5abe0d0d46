"""Kill a Spark at an exact step: its log is a pipe, and it cannot go on before we have read.

Each line of the log is padded to more than the pipe holds (stream_driver.LINE_BYTES), so the thread
that logs waits until we have read on. When a line that we look for has begun, the rest of it is not
read: Spark stands still right there, and kill -9 strikes it there and nowhere else.
"""

from __future__ import annotations

import fcntl
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.spark.stream_driver import LINE_BYTES, LOG

DRIVER: Final = "tests.spark.stream_driver"
ROOT: Final = Path(__file__).parent.parent.parent
PIPE_BYTES: Final = 4096
READ_BYTES: Final = 512
"""The text to find must be in the first LINE_BYTES - PIPE_BYTES - READ_BYTES bytes of a line."""
assert LINE_BYTES - PIPE_BYTES - READ_BYTES > 1000
DEADLINE_S: Final = 300.0
"""Between two lines."""
STACKS_S: Final = 5.0


class LockstepDriver:
    """stream_driver as a process that goes on only while `run` reads its log.

    environ   of the process
    options   further arguments of stream_driver
    steps     the first line of each step that was logged, in order, for messages and for soaks
    """

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        directory: Path,
        environ: Mapping[str, str],
        *options: str,
    ) -> None:
        self.steps: list[str] = []
        pipe = directory / LOG
        if not pipe.exists():
            os.mkfifo(pipe)
        self._log = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        fcntl.fcntl(self._log, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        self._output = directory / "standard-output"
        with self._output.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", DRIVER, bootstrap, topic, str(directory), *options],
                cwd=ROOT,
                env=dict(environ),
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def run(self, kill_at: Sequence[str] = (), lines_max: int = sys.maxsize) -> bool:
        """Until the job has ended, or until lines that match `kill_at` (regular expressions) have
        come one after the other, or `lines_max` lines; then Java and Python die at once, by
        SIGKILL. Returns whether it was killed. Fails DEADLINE_S after the last line, when the job
        failed, and when it ended before `kill_at`."""
        waited = list(kill_at)
        deadline = time.monotonic() + DEADLINE_S
        line = ""
        try:
            while self._process.poll() is None:
                if time.monotonic() > deadline:
                    raise AssertionError(f"it hangs after {self.steps[-5:]}: {self._stacks()}")
                line += self._read()
                if waited and re.search(waited[0], line):
                    waited.pop(0)
                    if not waited:
                        self.steps.append(line.strip())
                        return True
                if len(self.steps) + bool(line.strip()) > lines_max:
                    return True
                *whole, line = line.split("\n")
                if whole:
                    deadline = time.monotonic() + DEADLINE_S
                self.steps += filter(None, map(str.strip, whole))
            assert self._process.returncode == 0, self.steps[-5:]
            assert not waited, f"never logged: {waited}"
            return False
        finally:
            self._kill()

    def _read(self) -> str:
        """Up to READ_BYTES; nothing when nothing comes for a moment."""
        if not select.select([self._log], [], [], 0.05)[0]:
            return ""
        try:
            data = os.read(self._log, READ_BYTES)
        except BlockingIOError:  # select saw nobody, but now somebody has it open
            return ""
        if not data:
            time.sleep(0.01)  # nobody has it open, yet or any more
        return data.decode(errors="replace")

    def _stacks(self) -> str:
        """Where the threads of Java and of the driver's Python are."""
        os.killpg(self._process.pid, signal.SIGQUIT)
        found, end = "", time.monotonic() + STACKS_S
        while time.monotonic() < end:
            found += self._read()
        return found + self._output.read_text()

    def _kill(self) -> None:
        if self._process.returncode is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        os.close(self._log)
