"""The lag of a group by topic."""

from __future__ import annotations

from kafka08.observe.group import PartitionFacts
from kafka08.observe.lag import TopicLag, lag_by_topic
from kafka08.structs import TopicPartition


def partition(number: int, committed: int | None, end: int | None = 100) -> PartitionFacts:
    """One with a log from 10 to `end`."""
    start = None if end is None else 10
    return PartitionFacts(TopicPartition("t", number), committed, None, start, end)


def test_an_exact_lag() -> None:
    """All partitions are committed."""
    [row] = lag_by_topic([partition(0, 90), partition(1, 70)])
    assert row == TopicLag("t", 2, largest=30, lag=40)
    assert row.is_exact
    assert row.lag_text == "40"


def test_a_partition_without_an_offset_makes_it_a_lower_bound() -> None:
    """It used to be left out: a group with 24 unread messages was 0 behind."""
    [row] = lag_by_topic([partition(0, 100), partition(1, None, end=34)])
    assert (row.lag, row.largest, row.never_committed) == (24, 24, (TopicPartition("t", 1),))
    assert not row.is_exact
    assert row.lag_text == "at least 24"


def test_an_offset_beyond_the_end_hides_no_other_lag() -> None:
    """The topic was created again: how much of it the group has read is unknown."""
    [row] = lag_by_topic([partition(0, 1000), partition(1, 70)])
    assert (row.lag, row.largest, row.beyond_end) == (30, 30, (TopicPartition("t", 0),))
    assert (row.partitions, row.is_exact) == (1, False)
    [alone] = lag_by_topic([partition(0, 1000)])
    assert (alone.partitions, alone.lag_text) == (0, "unknown")


def test_a_lag_that_is_not_known_is_left_out() -> None:
    """The lag of a partition without a leader is left out; a topic with only such partitions has no
    row."""
    assert lag_by_topic([partition(0, 50, end=None)]) == []
