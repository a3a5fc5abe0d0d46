"""Generated histories of a group in one partition, for the comparison with Burrow's own code.

`random()` alone is drawn, whose sequence Python promises to keep: the stored results
(tests/data/burrow_verdicts.txt) hold as long as these histories are the same. To make them again,
feed `as_json` of each to Burrow's calculatePartitionStatus (core/internal/evaluator/caching.go at
ced55ba, allowedLag 0) and write the status numbers, 100 a line.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import NamedTuple

from kafka08.exporter.verdict import HISTORY_MAX, Commit

COUNT = 10_000
NOW_MS = 1_700_000_000_000


class History(NamedTuple):
    """The arguments of `verdict_of`."""

    commits: list[Commit]
    log_ends: list[int]
    lag: int
    now_ms: int

    def as_json(self) -> str:
        commits = [list(commit) for commit in self.commits]
        return json.dumps(
            {"commits": commits, "ends": self.log_ends, "lag": self.lag, "now": self.now_ms}
        )


def histories(count: int = COUNT, seed: int = 18) -> Iterator[History]:
    """Groups that keep up, lag, stand still, stop, go back and recover, in all mixtures."""
    rng = Random(seed)

    def upto(limit: int) -> int:
        return int(rng.random() * limit)

    for _ in range(count):
        size = 1 + upto(HISTORY_MAX)
        interval = 1 + upto(60_000)
        steps = (0, 1, 5)[upto(3)]
        moves_back = rng.random() < 0.3
        lag, falls = upto(6), rng.random() < 0.5
        # Round numbers now and then, for the edges of the rules.
        age = interval * (size - 1) if rng.random() < 0.2 else upto(interval * size * 2 + 2)
        last_ms = NOW_MS + upto(1000) - age
        offset, commits = 10 + upto(10), []
        for index in range(size):
            commits.append(
                Commit(
                    offset,
                    last_ms - interval * (size - 1 - index),
                    None if rng.random() < 0.1 else lag,
                )
            )
            offset += upto(steps + 1)
            if moves_back and rng.random() < 0.4:
                offset = max(0, offset - upto(8))
            lag = max(0, lag + (upto(4) - 2 if falls else upto(3)))
        ends = [offset - 3 + upto(12) for _ in range(upto(4))]
        yield History(commits, ends, upto(4), NOW_MS + upto(1000))
