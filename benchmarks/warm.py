"""Fair rounds: each side is warmed until it gets no faster, then all take turns.

A JVM compiles for many rounds: measured cold it once looked five times slower than it is. So each
side plays until its main figure has not improved by more than 3 % for three rounds in a row, or for
a minute, and only then do the counted rounds begin. How it began is a figure of its own, because a
cold start matters too.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from benchmarks.report import GENERATOR, Goal, Side, report

RISE_MAX: Final = 0.03
STEADY_ROUNDS: Final = 3
WARM_S_MAX: Final = 60.0
ROUNDS_MIN: Final = 5

Figures = dict[str, float]
Play = Callable[[str, int], Figures]
"""(side, number of the round) → its figures."""


@dataclass(slots=True)
class WarmUp:
    """The warm-up of one side, by its main figure.

    first     the first round
    rounds    how many it took
    seconds   how long they took; `is_warm` is False if that was not enough
    """

    goal: Goal
    first: float = 0.0
    best: float = 0.0
    rounds: int = 0
    seconds: float = 0.0
    steady: int = 0

    def note(self, value: float, seconds: float) -> None:
        """Take in one more round."""
        if not self.rounds:
            self.first = self.best = value
        elif self._rise(value) > RISE_MAX:
            self.best, self.steady = value, 0
        else:
            self.steady += 1
        self.rounds += 1
        self.seconds += seconds

    def _rise(self, value: float) -> float:
        """The relative gain over the best round so far."""
        if not (self.best and value):
            return 0.0
        return (value / self.best if self.goal.higher else self.best / value) - 1

    @property
    def is_warm(self) -> bool:
        return self.steady >= STEADY_ROUNDS

    @property
    def is_over(self) -> bool:
        return self.is_warm or self.seconds >= WARM_S_MAX


@dataclass(slots=True)
class Measured:
    """One side of one case: how it got warm, and its counted rounds."""

    warm_up: WarmUp
    rounds: list[Figures] = field(default_factory=list)

    def side(self, figure: str) -> Side:
        """Median and range of a figure."""
        values = [figures[figure] for figures in self.rounds]
        return Side(statistics.median(values), min(values), max(values))

    def generator(self) -> str:
        """The end of a line: the load generator's CPU. Nothing if it was not measured."""
        if GENERATOR not in self.rounds[0]:
            return ""
        return f", load generator {self.side(GENERATOR).median:.2f} of a core"


def fair_rounds(
    sides: Sequence[str],
    play: Play,
    main: Goal,
    rounds: int,
    monotonic: Callable[[], float],
) -> dict[str, Measured]:
    """Warm each side, then let them take turns `rounds` times; the order changes each time."""
    measured = {side: Measured(WarmUp(main)) for side in sides}
    number = 0
    while cold := [side for side in sides if not measured[side].warm_up.is_over]:
        for side in cold:
            began = monotonic()
            value = play(side, number)[main.figure]
            measured[side].warm_up.note(value, monotonic() - began)
        number += 1
    for counted in range(max(rounds, ROUNDS_MIN)):
        for side in sides if counted % 2 else reversed(sides):
            measured[side].rounds.append(play(side, number))
        number += 1
    return measured


def report_case(
    name: str, goals: Sequence[Goal], measured: dict[str, Measured]
) -> list[dict[str, object]]:
    """Print and return a row for each goal of two sides: "ours" and the other one."""
    [other] = measured.keys() - {"ours"}
    rows = [
        report(
            name,
            goal,
            jvm=measured[other].side(goal.figure),
            ours=measured["ours"].side(goal.figure),
            other=other,
        )
        for goal in goals
    ]
    for side, found in measured.items():
        warm_up = found.warm_up
        print(
            f"{name:24} {'warm-up':>9} {warm_up.goal.unit:>5}  {side}: first {warm_up.first:.2f}, "
            f"best {warm_up.best:.2f} after {warm_up.rounds} rounds, {warm_up.seconds:.0f} s"
            + ("" if warm_up.is_warm else ", STILL RISING")
            + found.generator(),
            flush=True,
        )
    rows[0]["warm_up"] = {
        side: {"first": m.warm_up.first, "best": m.warm_up.best, "rounds": m.warm_up.rounds}
        for side, m in measured.items()
    }
    return rows
