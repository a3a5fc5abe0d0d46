"""A broker that records the long turns of its event loop.

    .venv/bin/python -m benchmarks.turns [--where] FILE server.properties

A turn is what the loop runs between two looks for new events: clients, other brokers and the
ZooKeeper session wait for its end. Measured is the CPU time of its thread, so the wait for a core
that others use is left out. Each turn of more than LEAST_MS is a line of FILE:

    45.1 highwatermark-checkpoint=44.6,gc0=3.0 write_bytes<write

that is the turn and the greenlets that took most of it, in ms (`hub`: callbacks of the loop; `gc0`:
the collector, which runs within one of them, with its generation), and with `--where` the innermost
functions of a profiler's samples, the most frequent first. `--where` itself takes CPU; without it
the broker takes about 1 % more than without this module.
"""

from __future__ import annotations

import argparse
import gc
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any, Final

import gevent
import greenlet

from kafka08.broker.process.main import run
from kafka08.config import load_properties

LEAST_MS: Final = 5.0
LEAST_SHARE_MS: Final = 1.0
SAMPLE_S: Final = 0.001
FRAMES: Final = 6
STACKS: Final = 4

thread_time = time.thread_time


class Turns:
    """Watches the loop of this thread from now on."""

    def __init__(self, path: Path, *, where: bool) -> None:
        self._file = path.open("a", buffering=1)
        self._turn = self._stint = 0.0
        self._is_first = True
        """The first turn is the start of the process."""
        self._took: Counter[str] = Counter()
        self._stacks: Counter[str] = Counter()
        self._collection = 0.0
        self._hub = gevent.get_hub()
        self._watch: Any = self._hub.loop.prepare(ref=False)
        self._watch.start(self._end)
        greenlet.settrace(self._switched)
        gc.callbacks.append(self._collected)
        if where:
            signal.signal(signal.SIGPROF, self._sample)
            signal.setitimer(signal.ITIMER_PROF, SAMPLE_S, SAMPLE_S)

    def _switched(self, event: str, between: tuple[Any, Any]) -> None:
        now = thread_time()
        took, self._stint = now - self._stint, now
        if took > LEAST_SHARE_MS / 1e3:
            self._took[self._name(between[0])] += int(took * 1e6)

    def _name(self, ran: Any) -> str:
        return "hub" if ran is self._hub else str(getattr(ran, "name", "main"))

    def _collected(self, phase: str, info: dict[str, int]) -> None:
        now = thread_time()
        if phase == "start":
            self._collection = now
        else:
            self._took[f"gc{info['generation']}"] += int((now - self._collection) * 1e6)

    def _sample(self, _: int, frame: FrameType | None) -> None:
        names: list[str] = []
        while frame is not None and len(names) < FRAMES:
            names.append(frame.f_code.co_name)
            frame = frame.f_back
        self._stacks["<".join(names)] += 1

    def _end(self) -> None:
        """Runs in the hub at the end of each turn."""
        now = thread_time()
        took_ms = (now - self._turn) * 1e3
        if took_ms > LEAST_MS and not self._is_first:
            self._took["hub"] += int((now - self._stint) * 1e6)
            self._write(took_ms)
        self._is_first = False
        self._took.clear()
        self._stacks.clear()
        self._turn = self._stint = thread_time()

    def _write(self, took_ms: float) -> None:
        took = ",".join(f"{name}={us / 1e3:.1f}" for name, us in self._took.most_common(4))
        stacks = " ".join(stack for stack, _ in self._stacks.most_common(STACKS))
        self._file.write(f"{took_ms:.1f} {took.replace(' ', '-')} {stacks}\n")


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.turns")
    parser.add_argument("--where", action="store_true", help="the functions too")
    parser.add_argument("file", type=Path)
    parser.add_argument("config")
    options = parser.parse_args()
    Turns(options.file, where=options.where)
    return run(load_properties(options.config))


if __name__ == "__main__":
    sys.exit(main())
