"""Verdicts: equal to Burrow's own code, and each rule by itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from kafka08.exporter.verdict import (
    Commit,
    Verdict,
    has_stopped,
    verdict_on_commits,
    was_at_end,
    worst,
)
from tests.exporter.burrow_histories import COUNT, NOW_MS, histories

ANSWERS = Path(__file__).parent.parent / "data" / "burrow_verdicts.txt"
MINUTE = 60_000


def verdict_of(
    commits: Sequence[Commit], log_ends: Sequence[int], lag: int, now_ms: int
) -> Verdict:
    """The verdict on a partition, by the rules in Burrow's order.

    commits    the last HISTORY_MAX commits, oldest first
    log_ends   recent log ends, in any order
    lag        messages to the log end now
    """
    if lag <= 0 or not commits:
        return Verdict.OK
    if has_stopped(commits, now_ms) and not was_at_end(commits, min(log_ends, default=None)):
        return Verdict.STOP
    return verdict_on_commits(commits)


def test_every_generated_history_is_judged_as_burrow_judges_it() -> None:
    """10,000 histories get Burrow's verdict; burrow_histories.py says how Burrow's were
    recorded."""
    responses = [int(digit) for digit in ANSWERS.read_text().replace("\n", "")]
    assert COUNT == len(responses)
    ours = [int(verdict_of(*history)) for history in histories()]
    wrong = [
        number
        for number, pair in enumerate(zip(ours, responses, strict=True))
        if pair[0] != pair[1]
    ]
    assert [] == wrong
    occurring = {Verdict(response) for response in responses}
    assert set(Verdict) - occurring == {Verdict.WATCHING, Verdict.BEYOND}, "which it does not have"


def commits(*offsets: int, lags: tuple[int | None, ...] = (5, 5, 5)) -> list[Commit]:
    """One a minute, the last one now."""
    start = NOW_MS - (len(offsets) - 1) * MINUTE
    return [
        Commit(offset, start + number * MINUTE, lag)
        for number, (offset, lag) in enumerate(zip(offsets, lags, strict=True))
    ]


@pytest.mark.parametrize(
    ("history", "verdict"),
    [
        (commits(1, 2, 3), Verdict.WARN),
        (commits(1, 2, 3, lags=(5, 4, 9)), Verdict.OK),
        (commits(1, 2, 3, lags=(5, 0, 9)), Verdict.OK),
        (commits(3, 3, 3), Verdict.STALL),
        (commits(3, 1, 2), Verdict.REWIND),
        (commits(3, 1, 3), Verdict.WARN),
    ],
)
def test_a_rule(history: list[Commit], verdict: Verdict) -> None:
    """A history with lag now has the verdict of its rule; without lag the group is OK."""
    assert verdict is verdict_of(history, [100], 5, NOW_MS)
    assert Verdict.OK is verdict_of(history, [100], 0, NOW_MS)


def test_a_group_has_stopped_when_it_is_silent_for_longer_than_its_history() -> None:
    """It has not if it was at the end of the log a moment ago."""
    history = commits(1, 2, 3)
    later = NOW_MS + 2 * MINUTE + 1000
    assert Verdict.STOP is verdict_of(history, [100], 5, later)
    assert Verdict.STOP is not verdict_of(history, [100, 3], 5, later)
    assert Verdict.STOP is not verdict_of(history, [100], 5, NOW_MS + 2 * MINUTE)


def test_the_worst_verdict_of_a_group_counts() -> None:
    """A group without partitions is OK."""
    assert Verdict.OK is worst([])
    assert Verdict.STALL is worst([Verdict.OK, Verdict.STALL, Verdict.WARN])
