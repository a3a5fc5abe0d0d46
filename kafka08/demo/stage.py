"""The progress and the result of a stage of the demo."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from kafka08.demo.ledger import Content


@dataclass(frozen=True, slots=True)
class StageResult:
    """One row of the demo's table. `fault` is empty if the stage was exactly right; `files` are the
    files that it leaves."""

    name: str
    content: Content
    seconds: float
    verdict: str
    fault: str = ""
    files: tuple[Path, ...] = ()

    @property
    def megabytes_per_second(self) -> float:
        return self.content.size / 1e6 / self.seconds if self.seconds else 0.0


class Progress(Protocol):
    """Reports the demo's progress; the command line draws bars."""

    def stage(self, title: str, total: int | None) -> Callable[[int], None]:
        """Begin a stage of `total` messages; the caller calls the result with the count so far."""

    def happened(self, what: str) -> None:
        """Say what the demo has just done to the cluster or the group."""


def differences(what: str, seen: dict[int, int], expected: dict[int, int]) -> str:
    """The differences of two maps partition → offset, as text; empty if they are equal."""
    return "; ".join(
        f"partition {p}: {what} {seen.get(p)} instead of {expected.get(p)}"
        for p in sorted(seen.keys() | expected.keys())
        if seen.get(p, 0) != expected.get(p, 0)
    )
