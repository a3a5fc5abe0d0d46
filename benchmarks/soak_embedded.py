"""Starts and stops embedded clusters, one after the other, and looks for what they leave behind.

Clusters differ in brokers, level, relay and directory as chance has it. Most are used and stopped;
some are started by another process that is killed with SIGKILL, at any moment. After each there
must be no process, no file, no thread and no open descriptor that was not there before. Exits 1 if
anything else was seen.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from benchmarks.soak import announced, say, soak_parser
from kafka08.embedded import EmbeddedCluster
from kafka08.levels import LEVELS

MARK: Final = "KAFKA08_SOAK_EMBEDDED"
"""A variable that all processes inherit from this one."""
LEFT_S: Final = 20.0
"""How long what ends by itself may take: the guard after a SIGKILL."""
KILLED: Final = 0.2
"""The share of clusters whose process is killed."""
SHOWN_EVERY: Final = 20
KILLED_WITHIN_S: Final = 2.0
PROGRAM: Final = """
import sys, tempfile, time
tempfile.tempdir = sys.argv[1]
from kafka08.embedded import EmbeddedCluster
with EmbeddedCluster(int(sys.argv[2]), level=sys.argv[3]) as cluster:
    cluster.create_topic("t")
    time.sleep(100)
"""


def main() -> int:
    parser = soak_parser("soak-embedded", __doc__)
    parser.set_defaults(minutes=0.0)
    parser.add_argument("--starts", type=int, default=20, help="at least so many; 10000 by hand")
    parser.add_argument(
        "--killed", type=float, default=KILLED, help=f"share of programs killed; default {KILLED}"
    )
    options = parser.parse_args()
    os.environ[MARK] = str(os.getpid())
    rng = random.Random(options.seed)
    stop_at = time.monotonic() + options.minutes * 60
    number = problems = 0
    took: list[float] = []
    with announced(options), tempfile.TemporaryDirectory(prefix="soak-embedded-") as directory:
        tempfile.tempdir = directory
        with EmbeddedCluster(1):  # from now on there are fork servers
            pass
        while number < options.starts or time.monotonic() < stop_at:
            number += 1
            with leftovers(Path(directory)) as found:
                took.append(run_one(Path(directory), rng, options.killed))
            for problem in found:
                say(f"PROBLEM after start {number}: {problem}")
            problems += len(found)
            if number % SHOWN_EVERY == 0:
                recent = sorted(took[-SHOWN_EVERY:])
                say(f"start {number}: {recent[0]:.2f} to {recent[-1]:.2f} s, {problems} problems")
        tempfile.tempdir = None
    return 1 if problems else 0


def run_one(directory: Path, rng: random.Random, killed: float) -> float:
    """Start one cluster and end it; the seconds that the start took. killed: how likely it is that
    its program is killed."""
    brokers, level = rng.randint(1, 3), rng.choice(list(LEVELS))
    began = time.monotonic()
    if rng.random() < killed:
        command = [sys.executable, "-c", PROGRAM, str(directory), str(brokers), level]
        with subprocess.Popen(command) as program:
            time.sleep(rng.uniform(0, KILLED_WITHIN_S))
            program.kill()
        return time.monotonic() - began
    data_dir = None
    if rng.random() < 0.2:
        data_dir = Path(tempfile.mkdtemp())
    with EmbeddedCluster(
        brokers, level=level, data_dir=data_dir, zookeeper="embedded", cuttable=rng.random() < 0.3
    ) as cluster:
        took = time.monotonic() - began
        cluster.create_topic("t", rng.randint(1, 4), rng.randint(1, brokers))
        if rng.random() < 0.3:
            cluster.kill(rng.randrange(brokers))
        if rng.random() < 0.3:
            cluster.reset()
    if data_dir is not None:
        subprocess.run(["rm", "-r", data_dir], check=True)
    return took


@contextmanager
def leftovers(directory: Path) -> Iterator[list[str]]:
    """Fills the list, at the end of the block, with what is there and was not before."""
    looks: tuple[tuple[str, Callable[[], set[str]]], ...] = (
        ("process", processes),
        ("file", lambda: set(map(str, directory.iterdir()))),
        ("thread", lambda: {thread.name for thread in threading.enumerate()}),
        ("descriptor", descriptors),
    )
    before = [look() for _, look in looks]
    found: list[str] = []
    yield found
    for (kind, look), known in zip(looks, before, strict=True):
        give_up_at = time.monotonic() + LEFT_S
        while (left := look() - known) and time.monotonic() < give_up_at:
            time.sleep(0.01)
        found += [f"{kind} {one}" for one in sorted(left)]


def processes() -> set[str]:
    """Those that come from this one, with their command lines; also if their parents have ended."""
    mark = f"{MARK}={os.getpid()}".encode()
    found = set()
    for path in Path("/proc").iterdir():
        if path.name.isdecimal():
            try:
                if mark in (path / "environ").read_bytes().split(b"\0"):
                    command = (path / "cmdline").read_bytes().replace(b"\0", b" ")
                    found.add(f"{path.name} {command.decode(errors='replace')}")
            except OSError:  # it has ended, or is another user's
                continue
    return found


def descriptors(process: int | str | None = "self") -> set[str]:
    """Open descriptors of a process: the number and what it is."""
    found = set()
    for path in Path(f"/proc/{process}/fd").iterdir():
        try:
            found.add(f"{path.name} {path.readlink()}")
        except OSError:  # that of this listing, or just closed
            continue
    return found


if __name__ == "__main__":
    sys.exit(main())
