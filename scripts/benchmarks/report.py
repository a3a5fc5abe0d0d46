"""One row of figures: the JVM's, ours, their ratio, and whether the goal is met."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Goal:
    """A figure and what it must reach: ours / JVM at least `bound`, or at most if not `higher`."""

    figure: str
    unit: str
    bound: float
    higher: bool

    def is_met(self, ratio: float) -> bool:
        return ratio >= self.bound if self.higher else ratio <= self.bound


def report(
    case: str, goal: Goal, *, jvm: float, ours: float, other: str = "jvm"
) -> dict[str, object]:
    """Print one row and return it. `other`: whose figure `jvm` is, if not the JVM's."""
    ratio = ours / jvm if jvm else float("inf")
    met = goal.is_met(ratio)
    print(
        f"{case:24} {goal.figure:>9} {goal.unit:>5}  {other} {jvm:10.2f}  ours {ours:10.2f}"
        f"  ratio {ratio:6.2f} (goal {'>=' if goal.higher else '<='} {goal.bound:.2g})"
        f" {'ok' if met else 'MISSED'}",
        flush=True,
    )
    return {
        "case": case,
        "figure": goal.figure,
        "unit": goal.unit,
        other: jvm,
        "ours": ours,
        "ratio": ratio,
        "goal": goal.bound,
        "met": met,
    }
