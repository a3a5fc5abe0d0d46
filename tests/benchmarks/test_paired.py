"""Paired turns show a small difference on a machine whose speed changes."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable

import pytest

from benchmarks.paired import Difference, difference, order, over_cases, ratio

SIDES = ("plain", "scraped", "control")
OTHERS = ("plain", "control")


def block(cost: Callable[[str, int], float]) -> dict[str, list[float]]:
    """The figures of one block; `cost` is of a side at the time of its turn."""
    played: dict[str, list[float]] = {side: [] for side in SIDES}
    for time, side in enumerate(order(SIDES)):
        played[side].append(cost(side, time))
    return played


@pytest.mark.parametrize("more", [0.0, 0.01])
def test_a_machine_that_gets_steadily_slower_changes_no_ratio(more: float) -> None:
    """A machine that slows by a tenth within a block changes no ratio."""
    costs = dict.fromkeys(SIDES, 1.0) | {"scraped": 1 + more}
    found = ratio(block(lambda side, time: costs[side] * (1 + 0.02 * time)), "scraped", OTHERS)
    assert found == pytest.approx(more, abs=1e-4)


def test_the_interval_has_the_truth_nineteen_times_of_twenty() -> None:
    """Of brokers that differ by 1 % from start to start, in blocks that differ by 3 %."""
    rng = random.Random(7)
    hits = 0
    for _ in range(400):
        starts = []
        for _ in range(5):
            own = rng.gauss(0, 0.01)
            starts.append([0.004 + own + rng.gauss(0, 0.03) for _ in range(3)])
        found = difference(starts)
        hits += found.low <= 0.004 <= found.high
    assert 0.92 <= hits / 400 <= 0.98


@pytest.mark.parametrize(
    ("starts", "t"), [(2, 12.71), (13, 2.179), (14, 2.160), (21, 2.086), (61, 2.000)]
)
def test_the_interval_is_students_for_any_number_of_starts(starts: int, t: float) -> None:
    """Its half width is t standard errors, also beyond the table of t."""
    values = [float(number % 2) for number in range(starts)]
    found = difference([[value] for value in values])
    error = statistics.stdev(values) / math.sqrt(starts)
    assert t == pytest.approx((found.high - found.mean) / error, rel=0.001)


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (Difference(0.004, -0.001, 0.009), "ok"),
        (Difference(0.004, -0.003, 0.011), "not shown"),
        (Difference(0.02, 0.012, 0.028), "MISSED"),
    ],
)
def test_the_verdict_goes_by_the_whole_interval(found: Difference, verdict: str) -> None:
    """A mean below the limit is not enough, nor is one above it."""
    assert verdict == found.verdict(0.01)


def test_one_start_is_no_evidence() -> None:
    """This holds however equal its blocks are."""
    assert "not shown" == difference([[0.0, 0.0, 0.0]]).verdict(0.01)


def test_many_cases_are_known_better_than_one() -> None:
    """The mean of all cases has their mean difference, each case counts once, whatever its number
    of blocks, and the interval is narrower than that of a single case."""
    rng = random.Random(8)
    cases = [
        [[0.004 + rng.gauss(0, 0.02) for _ in range(1 + number % 3)] for _ in range(5)]
        for number in range(16)
    ]
    found, single = over_cases(cases), [difference(case) for case in cases]
    assert found.mean == pytest.approx(sum(one.mean for one in single) / 16)
    assert found.high - found.low < min(one.high - one.low for one in single)
