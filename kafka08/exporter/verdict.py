"""The verdict on a group in one partition, from changes of its offset and lag, without thresholds.

    OK      it keeps up: its lag was 0 at some time, or falls
    WARN    it commits and advances, but its lag never falls
    STALL   it commits the same offset again and again, and has lag
    STOP    it has not committed for longer than the whole history
    REWIND  it committed a lower offset than before, and has not reached it again

Burrow does not have

    WATCHING  it has lag, and was not watched for long enough
    BEYOND    its offset lies beyond the log's end: the topic was created again, or the log cut

Pure. The rules, their order and edge cases are those of linkedin/Burrow (core/internal/evaluator,
caching.go): `tests/exporter/burrow` compares with Burrow's own code over generated histories.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

HISTORY_MAX: Final = 10
"""Number of commits kept per partition: Burrow's `intervals`."""


class Verdict(enum.IntEnum):
    """Numbered as Burrow's from 1 to 6, and from OK on sorted by severity."""

    WATCHING = 0
    OK = 1
    WARN = 2
    STOP = 4
    STALL = 5
    REWIND = 6
    BEYOND = 7


class Commit(NamedTuple):
    """A committed offset.

    time_ms   time of the commit
    lag       messages to the log end at that time; None: unknown
    """

    offset: int
    time_ms: int
    lag: int | None


def verdict_on_commits(commits: Sequence[Commit]) -> Verdict:
    """The rules that need the commits alone; for a group with lag that has not stopped."""
    if _is_rewound(commits):
        return Verdict.REWIND
    if any(commit.lag == 0 for commit in commits):
        return Verdict.OK
    if len({commit.offset for commit in commits}) == 1:
        return Verdict.STALL
    return Verdict.OK if _lag_fell(commits) else Verdict.WARN


def has_stopped(commits: Sequence[Commit], now_ms: int) -> bool:
    """Whether the time since the last commit is longer than the time from the first to the last."""
    first, last = commits[0].time_ms, commits[-1].time_ms
    # Burrow's clock has whole seconds.
    return now_ms // 1000 * 1000 - last > last - first


def was_at_end(commits: Sequence[Commit], lowest_end: int | None) -> bool:
    """Whether it had read everything a moment ago: then a missing commit means nothing yet.
    `lowest_end`: of the recent log ends; None: unknown."""
    return lowest_end is not None and lowest_end <= commits[-1].offset


def _is_rewound(commits: Sequence[Commit]) -> bool:
    """Whether it rewound in the history, and has not reached the old offset again."""
    for index in range(1, len(commits)):
        before = commits[index - 1].offset
        if commits[index].offset < before:
            return all(commit.offset < before for commit in commits[index:])
    return False


def _lag_fell(commits: Sequence[Commit]) -> bool:
    """Whether the lag fell at least once between consecutive commits with a known lag."""
    known = [commit.lag for commit in commits if commit.lag is not None]
    return any(after < before for before, after in pairwise(known))


def worst(verdicts: Sequence[Verdict]) -> Verdict:
    """The worst of a group's verdicts, WATCHING being worse than OK; OK without partitions."""
    found = max(verdicts, default=Verdict.OK)
    return Verdict.WATCHING if found is Verdict.OK and Verdict.WATCHING in verdicts else found
