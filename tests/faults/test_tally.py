"""Tallies: which matches are hit."""

from __future__ import annotations

from kafka08.faults.rule import Rule
from kafka08.faults.tally import Tally


def hits(rule: Rule, matches: int) -> list[int]:
    """The numbers of the matches that are hit, from 1."""
    tally = Tally(rule)
    return [number for number in range(1, matches + 1) if tally.count()]


def test_the_third_and_fourth() -> None:
    """skip lets matches pass, and times ends the hits."""
    assert hits(Rule(skip=2, times=2), 10) == [3, 4]
    assert hits(Rule(), 3) == [1, 2, 3]


def test_draws_repeat_with_their_seed() -> None:
    """With a probability the same matches are hit each time, others with another seed, about as
    many as it says; times counts hits, not draws."""
    drawn = hits(Rule(probability=0.3, seed=1), 1000)
    assert drawn == hits(Rule(probability=0.3, seed=1), 1000)
    assert drawn != hits(Rule(probability=0.3, seed=2), 1000)
    assert 240 < len(drawn) < 360
    assert hits(Rule(probability=0.3, seed=1, times=5), 1000) == drawn[:5]
