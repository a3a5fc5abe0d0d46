"""The missing and the remaining part of a range."""

from __future__ import annotations

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.arrow.data_loss import DataLost, Loss, clamp, report
from kafka08.arrow.ranges import OffsetRange
from kafka08.structs import TopicPartition

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
numbers = st.integers(0, 60)


@given(numbers, numbers, numbers, numbers)
def test_kept_and_missing_are_the_range(a: int, b: int, c: int, d: int) -> None:
    """`kept` is the intersection of the range and the log, and `missing` counts the rest."""
    start, until = sorted((a, b))
    earliest, latest = sorted((c, d))
    loss = Loss(OffsetRange("t", 0, start, until), earliest, latest)
    there = set(range(start, until)) & set(range(earliest, latest))
    kept = loss.kept()
    assert set(range(kept.from_offset, kept.until_offset)) == there
    assert loss.missing == until - start - len(there)


def test_clamp_lists_every_loss() -> None:
    """Ranges keep their order and are cut to the log; each loss has the requested and the available
    offsets; an empty range has no loss."""
    wanted = [
        OffsetRange("t", 0, 0, 10),
        OffsetRange("t", 0, 90, 120),
        OffsetRange("t", 0, 20, 30),
        OffsetRange("t", 1, 0, 5),
        OffsetRange("t", 1, 3, 3),
    ]
    kept, losses = clamp(wanted, {T0: 5}, {T0: 100})
    assert kept == [
        OffsetRange("t", 0, 5, 10),
        OffsetRange("t", 0, 90, 100),
        OffsetRange("t", 0, 20, 30),
        OffsetRange("t", 1, 0, 0),
        OffsetRange("t", 1, 3, 3),
    ]
    assert [str(loss) for loss in losses] == [
        "[t,0] [0, 10): only [5, 100) is there",
        "[t,0] [90, 120): only [5, 100) is there",
        "[t,1] [0, 5): the partition is gone",
    ]
    assert [loss.missing for loss in losses] == [5, 20, 5]


def test_report(caplog: pytest.LogCaptureFixture) -> None:
    """All losses make one error; accepted losses make a log line each."""
    losses = [Loss(OffsetRange("t", p, 0, 9), 5, 9) for p in (0, 1)]
    with pytest.raises(DataLost, match=r"\[t,0\] .*; \[t,1\] .*failOnDataLoss"):
        report(losses, fail=True)
    with caplog.at_level(logging.WARNING):
        report(losses, fail=False)
    assert [r.getMessage() for r in caplog.records] == [
        f"5 offsets are missing and passed over: [t,{p}] [0, 9): only [5, 9) is there"
        for p in (0, 1)
    ]
    report([], fail=True)
