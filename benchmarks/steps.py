"""Steps of a benchmark: seconds, CPU of the brokers and of ZooKeeper, and the longest turn of a
broker's event loop."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from benchmarks.subjects import cpu_seconds


class Process(Protocol):
    @property
    def pid(self) -> int | None: ...


class Turn(NamedTuple):
    """A turn of an event loop that turns.py has recorded: its CPU time, and what ran in it."""

    ms: float
    ran: str

    def __str__(self) -> str:
        return f"{self.ms:.0f} ms {self.ran}".rstrip()


@dataclass(frozen=True, slots=True)
class Step:
    """cpu: of all brokers together, zookeeper: of the ZooKeeper; longest: None unless recorded."""

    seconds: float
    cpu: float
    zookeeper: float
    longest: Turn | None

    def __str__(self) -> str:
        text = f"{self.seconds:8.2f} s {self.cpu:8.2f} CPU s, ZooKeeper {self.zookeeper:6.2f} CPU s"
        return text if self.longest is None else f"{text}, longest turn {self.longest}"


class Meter:
    """Measures steps of these brokers. Processes may end and start within a step, if this process
    is their parent and no other child of it ends meanwhile."""

    def __init__(self, brokers: Sequence[Process], zookeeper: Process) -> None:
        self._brokers = brokers
        self._zookeeper = zookeeper
        self.steps: dict[str, Step] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Measure the block as this step."""
        used, ended = self._used(), ended_seconds()
        zookeeper, began = cpu_seconds(self._zookeeper.pid), time.monotonic()
        files = [file for one in self._brokers if (file := getattr(one, "turns", None))]
        sizes = [file.stat().st_size if file.exists() else 0 for file in files]
        yield
        seconds, now = time.monotonic() - began, self._used()
        cpu = sum(now.values()) - sum(used.values()) + ended_seconds() - ended
        turns = [t for f, size in zip(files, sizes, strict=True) for t in turns_since(f, size)]
        longest = max(turns, default=Turn(0.0, "")) if files else None
        self.steps[name] = Step(seconds, cpu, cpu_seconds(self._zookeeper.pid) - zookeeper, longest)
        print(f"{name:12} {self.steps[name]}", flush=True)

    def _used(self) -> dict[int, float]:
        return {pid: cpu_seconds(pid) for one in self._brokers if (pid := one.pid) is not None}


def ended_seconds() -> float:
    """CPU of all children of this process that have ended."""
    of_children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return of_children.ru_utime + of_children.ru_stime


def turns_since(file: Path, position: int) -> Iterator[Turn]:
    """The turns in a file of turns.py after its first `position` bytes."""
    with file.open("rb") as lines:
        lines.seek(position)
        for line in lines.read().decode().splitlines():
            ms, _, ran = line.partition(" ")
            yield Turn(float(ms), ran)
