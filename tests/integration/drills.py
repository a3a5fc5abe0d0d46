"""The views of a cluster as processes, beside each other: what they say, and when."""

from __future__ import annotations

import gzip
import json
import os
import pty
import re
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Final, NamedTuple

TOPIC: Final = "t"
GROUP: Final = "readers"
COMMANDS: Final[Mapping[str, tuple[str, ...]]] = {
    "doctor": ("doctor",),
    "top --once": ("top", "--once"),
    "report": ("report", "--seconds", "1", "--output", "-"),
    "metrics": ("metrics",),
    "topic describe": ("topic", "describe"),
    "topic offsets": ("topic", "offsets"),
    "group list": ("group", "list"),
    "group describe": ("group", "describe", GROUP),
    "group explain": ("group", "explain", GROUP),
    "offsets lag": ("offsets", "lag", GROUP),
    "broker list": ("broker", "list"),
}
LIVE: Final = ("top", "console")
"""Views that are open before something breaks."""
VIEWS: Final = (*COMMANDS, *LIVE)
LIVE_S: Final = 30.0
SIDE_BY_SIDE: Final = 4
CONTROL: Final = "control"
"""A command that asks nobody, beside the views: what the machine takes for a process now."""
CONTROL_S: Final = 0.6
"""What it takes beside the others on two cores that do nothing else."""
ESCAPES: Final = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[=>]|\r")


class Said(NamedTuple):
    """What a view said.

    code     exit code; None of a live one
    text     stdout and stderr
    at_s     seconds until it ended, or until it said what was expected of a live one
    quiet_s  the longest time without a byte
    """

    code: int | None
    text: str
    at_s: float
    quiet_s: float


def environment() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if not key.startswith("KAFKA08_")} | {
        "TERM": "xterm",
        "COLUMNS": "300",
        "LINES": "100",
    }


def run(name: str, zookeeper: str) -> Said:
    """A command to its end."""
    began = last = time.monotonic()
    quiet_s, parts = 0.0, []
    command = [sys.executable, "-m", "kafka08.cli"]
    command += ["doctor", "--checks"] if name == CONTROL else COMMANDS[name]
    command += ["--zookeeper", zookeeper]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment()
    ) as process:
        assert process.stdout is not None
        while part := os.read(process.stdout.fileno(), 1 << 16):
            now = time.monotonic()
            quiet_s, last = max(quiet_s, now - last), now
            parts.append(part)
    now = time.monotonic()
    text = b"".join(parts).decode(errors="replace")
    return Said(process.returncode, text, now - began, max(quiet_s, now - last))


def output(zookeeper: str, *words: str) -> tuple[int, str]:
    """The exit code and stdout of any command."""
    done = subprocess.run(
        [sys.executable, "-m", "kafka08.cli", *words, "--zookeeper", zookeeper],
        capture_output=True, text=True, check=False, env=environment(),
    )  # fmt: skip
    return done.returncode, done.stdout


class Live:
    """A view that is open. `text`: everything that it shows at this moment."""

    def __init__(self, name: str, zookeeper: str) -> None:
        self._name = name
        self._written: list[bytes] = []
        command = [sys.executable, "-m", "kafka08.cli", name, "--interval", "1"]
        command += ["--zookeeper", zookeeper]
        if name == "top":
            self._master, slave = pty.openpty()
            source = slave
        else:
            self._master, slave = os.pipe()
            source = subprocess.DEVNULL
            command += ["--listen", "0"]
        self._process = subprocess.Popen(
            command, stdin=source, stdout=slave, stderr=slave, env=environment()
        )
        os.close(slave)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        with suppress(OSError):
            while part := os.read(self._master, 1 << 16):
                self._written.append(part)

    @property
    def printed(self) -> str:
        return ESCAPES.sub("", b"".join(self._written).decode(errors="replace"))

    @property
    def text(self) -> str:
        if self._name == "top":
            screen = b"".join(self._written).decode(errors="replace").rpartition("\x1b[H")[2]
            return "\n".join(filter(None, map(str.strip, ESCAPES.sub("", screen).split("\n"))))
        found = re.search(r"http://\S+:\d+", self.printed)
        if found is None:
            return self.printed
        try:
            with urllib.request.urlopen(f"{found[0]}/api/state", timeout=2) as response:
                state = json.loads(gzip.decompress(response.read()))
        except OSError as error:
            return str(error)
        return json.dumps(state, ensure_ascii=False)

    def await_said(self, pattern: str, seconds: float = LIVE_S) -> Said:
        began = time.monotonic()
        while True:
            text = self.text
            at_s = time.monotonic() - began
            if re.search(pattern, text) or at_s > seconds:
                return Said(None, text, at_s, 0.0)
            time.sleep(0.1)

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        with suppress(OSError):
            os.close(self._master)


@contextmanager
def opened(zookeeper: str) -> Iterator[dict[str, Live]]:
    """The live views."""
    live = {name: Live(name, zookeeper) for name in LIVE}
    try:
        yield live
    finally:
        for view in live.values():
            view.end()


def ask_all(
    zookeeper: str, live: Mapping[str, Live], expected: Mapping[str, str | None]
) -> dict[str, Said]:
    """Every view of `expected`, beside each other."""
    with ThreadPoolExecutor(SIDE_BY_SIDE + len(LIVE)) as pool:
        began = {
            name: pool.submit(live[name].await_said, pattern)
            for name, pattern in expected.items()
            if name in live and pattern is not None
        }
        began |= {name: pool.submit(run, name, zookeeper) for name in (*COMMANDS, CONTROL)}
        return {name: future.result() for name, future in began.items()}
