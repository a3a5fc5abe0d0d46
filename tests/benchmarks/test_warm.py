"""When a side of a benchmark counts as warm, and who plays when."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest

from benchmarks.report import Goal
from benchmarks.warm import ROUNDS_MIN, WARM_S_MAX, WarmUp, fair_rounds

RATE = Goal("rate", "MB/s", 2, True)
P50 = Goal("p50", "µs", 1, False)


def warmed(goal: Goal, values: Sequence[float]) -> WarmUp:
    warm_up = WarmUp(goal)
    for value in values:
        warm_up.note(value, 1.0)
    return warm_up


@pytest.mark.parametrize(
    ("goal", "values", "is_warm"),
    [
        (RATE, [20, 33, 42, 48, 42, 46, 44], True),
        (RATE, [20, 33, 42, 48, 42, 46], False),
        (RATE, [20, 20.5, 20.4, 20.5], True),
        (RATE, [20, 20, 20, 21], False),
        (P50, [94, 56, 43, 44, 43.5, 42.9], True),
        (P50, [94, 56, 43, 44, 41, 41], False),
    ],
)
def test_warm_is_three_rounds_that_rise_by_at_most_three_percent(
    goal: Goal, values: Sequence[float], is_warm: bool
) -> None:
    """Of the best round so far, in whichever direction is better."""
    assert is_warm == warmed(goal, values).is_warm


def test_a_side_that_never_settles_is_warmed_for_a_minute() -> None:
    """The counted rounds begin then, and the report says that the rate was still rising."""
    values = itertools.count(1)
    clock = itertools.count(0.0, 5.0)
    measured = fair_rounds(
        ["ours"], lambda side, number: {"rate": 2.0 ** next(values)}, RATE, 5, lambda: next(clock)
    )
    assert WARM_S_MAX / 5 == measured["ours"].warm_up.rounds
    assert not measured["ours"].warm_up.is_warm


def test_sides_take_turns_once_both_are_warm() -> None:
    """The slow one to warm holds the other up; no counted round comes before; there are five."""
    played: list[str] = []
    rates = {"jvm": iter([10, 20, 30, 40, *[40] * 20]), "ours": iter([50] * 20)}

    def play(side: str, number: int) -> dict[str, float]:
        played.append(side)
        return {"rate": float(next(rates[side]))}

    measured = fair_rounds(["jvm", "ours"], play, RATE, 3, lambda: 0.0)
    assert 7 == measured["jvm"].warm_up.rounds
    assert 4 == measured["ours"].warm_up.rounds
    assert 10.0 == measured["jvm"].warm_up.first
    counted = played[7 + 4 :]
    assert ["ours", "jvm", "jvm", "ours"] == counted[:4]
    assert ROUNDS_MIN * 2 == len(counted)
    assert 40.0 == measured["jvm"].side("rate").median
