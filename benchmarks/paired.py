"""Differences of 1 % on a machine whose speed changes by 20 %: brokers that take short turns.

The figures of two brokers in one block of turns meet the same machine, so what is looked at is
their ratio. In a block every broker plays twice, in mirrored order (A B C C B A): a machine that
gets steadily slower or faster changes no ratio.

A process has a speed of its own, by where its memory lies and how its hash tables are filled: two
equal brokers may differ by a percent for as long as they run. So brokers are started again several
times, each start gives one value (the median of its blocks), and the interval is Student's over the
starts. More blocks do not make it narrower; more starts do.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

STUDENT: Final = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18)
"""Student's t of a two-sided interval of 95 %, by degrees of freedom from 1 on."""
NORMAL: Final = 1.96
"""Its limit."""


def order(sides: Sequence[str]) -> list[str]:
    """The turns of a block: each side twice."""
    return [*sides, *reversed(sides)]


def ratio(block: Mapping[str, Sequence[float]], side: str, others: Sequence[str]) -> float:
    """The logarithm of a side's figure in a block by the mean of others', each the mean of its
    turns: 0.01 is 1 % more."""
    logs = {name: math.log(statistics.fmean(block[name])) for name in (side, *others)}
    return logs[side] - statistics.fmean(logs[name] for name in others)


@dataclass(frozen=True, slots=True)
class Difference:
    """The relative difference of a figure, with the bounds of its 95 % interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:+6.2%} [{self.low:+.2%} .. {self.high:+.2%}]"

    def verdict(self, limit: float) -> str:
        """Whether it is at most `limit`: ok, MISSED, or not shown by these measurements."""
        if self.high <= limit:
            return "ok"
        return "MISSED" if self.low > limit else "not shown"


def difference(starts: Sequence[Sequence[float]]) -> Difference:
    """The difference from the ratios of several starts' blocks. One start alone shows nothing."""
    values = [statistics.median(blocks) for blocks in starts]
    mean = statistics.fmean(values)
    if len(values) < 2:
        return Difference(mean, -math.inf, math.inf)
    freedom = len(values) - 1
    reach = student(freedom) * statistics.stdev(values) / math.sqrt(len(values))
    return Difference(mean, mean - reach, mean + reach)


def student(freedom: int) -> float:
    """Student's t by degrees of freedom. Beyond the table: the first terms of its expansion."""
    if freedom <= len(STUDENT):
        return STUDENT[freedom - 1]
    z = NORMAL
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


def over_cases(cases: Sequence[Sequence[Sequence[float]]]) -> Difference:
    """The mean difference of all cases, each with its starts' blocks: known better than that of one
    case, because the chances of several cases at one start cancel out."""
    starts = zip(*cases, strict=True)
    return difference([[statistics.fmean(map(statistics.median, start))] for start in starts])
