"""One row of figures: the JVM's, ours, their ratio, and whether the goal is met."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

GENERATOR: Final = "generator"
"""A figure of a side that has no goal: the part of one core that the load generator took. It has
one thread, so near 1 it is the generator that is measured."""


@dataclass(frozen=True, slots=True)
class Goal:
    """A figure and what it must reach: ours / JVM at least `bound`, or at most if not `higher`."""

    figure: str
    unit: str
    bound: float
    higher: bool

    def is_met(self, ratio: float) -> bool:
        return ratio >= self.bound if self.higher else ratio <= self.bound


@dataclass(frozen=True, slots=True)
class Side:
    """A figure of one side over several rounds."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:10.2f} [{self.low:.2f}..{self.high:.2f}]"


def report(
    case: str, goal: Goal, *, jvm: float | Side, ours: float | Side, other: str = "jvm"
) -> dict[str, object]:
    """Print one row and return it. `other`: the side of the figure `jvm`, if not the JVM."""
    sides = [side if isinstance(side, Side) else Side(side, side, side) for side in (jvm, ours)]
    theirs, mine = (side.median for side in sides)
    ratio = mine / theirs if theirs else float("inf")
    met = goal.is_met(ratio)
    shown = [str(s) if s.low != s.high else f"{s.median:10.2f}" for s in sides]
    print(
        f"{case:24} {goal.figure:>9} {goal.unit:>5}  {other} {shown[0]}  ours {shown[1]}"
        f"  ratio {ratio:6.2f} (goal {'>=' if goal.higher else '<='} {goal.bound:.2g})"
        f" {'ok' if met else 'MISSED'}",
        flush=True,
    )
    return {
        "case": case,
        "figure": goal.figure,
        "unit": goal.unit,
        other: theirs,
        "ours": mine,
        "spread": {other: [sides[0].low, sides[0].high], "ours": [sides[1].low, sides[1].high]},
        "ratio": ratio,
        "goal": goal.bound,
        "met": met,
    }
