"""Splitting and rate limits, against tables worked by hand from the rules of Spark's connector
(KafkaOffsetRangeCalculator.getRanges, KafkaMicroBatchStream.rateLimit)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.arrow.plan import rate_limit, split
from kafka08.arrow.ranges import OffsetRange
from kafka08.errors import ConfigError
from kafka08.structs import TopicPartition

Pairs = list[tuple[int, int]]


def ranges_of(*pairs: tuple[int, int]) -> list[OffsetRange]:
    """A range in each of partitions 0, 1, …"""
    return [OffsetRange("t", p, start, until) for p, (start, until) in enumerate(pairs)]


@pytest.mark.parametrize(
    ("end", "min_partitions", "max_records"),
    [(2**62, None, 1000), (2**62, 10**9, None), (10**9, 10**7, None)],
)
def test_a_plan_of_endless_tasks_is_refused(
    end: int, min_partitions: int | None, max_records: int | None
) -> None:
    """A log end that a broker made up, or an option with three zeros too many: an error that names
    both, where a list of all tasks would fill the driver's memory."""
    with pytest.raises(ConfigError, match=r"tasks, the most is 1000000: check minPartitions"):
        split(ranges_of((0, end)), min_partitions, max_records)


def test_more_parts_than_offsets_cost_nothing() -> None:
    """There is at most one task for each offset."""
    assert len(split(ranges_of((0, 3)), 10**12)) == 3


@pytest.mark.parametrize(
    ("pairs", "min_partitions", "max_records", "expected"),
    [
        # One task per range; an empty one is dropped.
        ([(0, 10), (5, 5)], None, None, [(0, 0, 10)]),
        # Fewer than 4 ranges of 4 offsets: one offset each.
        ([(1, 5)], 4, None, [(0, 1, 2), (0, 2, 3), (0, 3, 4), (0, 4, 5)]),
        # Enough ranges already.
        ([(0, 9), (0, 9)], 2, None, [(0, 0, 9), (1, 0, 9)]),
        # 10 of 10 into 3: 10//3=3, 7//2=3, 4.
        ([(0, 10)], 3, None, [(0, 0, 3), (0, 3, 6), (0, 6, 10)]),
        # Shares of 4: 100/120*4=3.33 → 3 and 20/120*4=0.67 → 1; the latter leaves: total 100,
        # parts 3 → round(3.0)=3: 33, 33, 34.
        (
            [(0, 100), (0, 20)],
            4,
            None,
            [(0, 0, 33), (0, 33, 66), (0, 66, 100), (1, 0, 20)],
        ),
        # Shares of 3 for equal halves: 1.5 rounds up to 2 each, so 4 tasks.
        ([(0, 4), (0, 4)], 3, None, [(0, 0, 2), (0, 2, 4), (1, 0, 2), (1, 2, 4)]),
        # More parts than offsets: empty parts are dropped.
        ([(0, 2)], 5, None, [(0, 0, 1), (0, 1, 2)]),
        # ceil(10/4)=3 parts: 3, 3, 4.
        ([(0, 10)], None, 4, [(0, 0, 3), (0, 3, 6), (0, 6, 10)]),
        ([(0, 4), (0, 5)], None, 4, [(0, 0, 4), (1, 0, 2), (1, 2, 5)]),
        # First by records (2 parts of 4), then 3 wanted: 8/2*3... each 1.5 → 2.
        ([(0, 8)], 3, 4, [(0, 0, 2), (0, 2, 4), (0, 4, 6), (0, 6, 8)]),
        # By records alone there are enough.
        ([(0, 8)], 2, 2, [(0, 0, 2), (0, 2, 4), (0, 4, 6), (0, 6, 8)]),
        ([], 5, 5, []),
    ],
)
def test_split(
    pairs: Pairs,
    min_partitions: int | None,
    max_records: int | None,
    expected: list[tuple[int, int, int]],
) -> None:
    """Ranges are cut where Spark's connector cuts them."""
    parts = split(ranges_of(*pairs), min_partitions, max_records)
    assert [(r.partition, r.from_offset, r.until_offset) for r in parts] == expected


sizes = st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 500)), max_size=6)


@given(sizes, st.none() | st.integers(1, 40), st.none() | st.integers(1, 300))
def test_split_keeps_every_offset_once(
    starts_and_sizes: Pairs, min_partitions: int | None, max_records: int | None
) -> None:
    """For any limits the parts follow each other and together are the ranges."""
    ranges = ranges_of(*((start, start + size) for start, size in starts_and_sizes))
    parts = split(ranges, min_partitions, max_records)
    assert all(part.size for part in parts)
    assert _offsets(parts) == _offsets(ranges)
    if max_records is not None:
        assert all(part.size <= max_records for part in parts)


@pytest.mark.parametrize(
    ("new", "limit", "expected"),
    [
        # Proportional shares of 10, rounded down: 10*30/40=7.5, 10*10/40=2.5.
        ([30, 10], 10, [7, 2]),
        # Below one it is rounded up: 5*1/1001 → 1, 5*1000/1001=4.99 → 4.
        ([1000, 1], 5, [4, 1]),
        # More than there is.
        ([3, 4], 100, [3, 4]),
        ([0, 0], 5, [0, 0]),
        ([0, 10], 5, [0, 5]),
    ],
)
def test_rate_limit(new: list[int], limit: int, expected: list[int]) -> None:
    """Partitions share a limit in proportion to their new offsets."""
    start = {TopicPartition("t", p): 100 for p in range(len(new))}
    latest = {TopicPartition("t", p): 100 + size for p, size in enumerate(new)}
    ends = rate_limit(start, latest, limit)
    assert [end - 100 for end in ends.values()] == expected


def _offsets(ranges: list[OffsetRange]) -> list[tuple[int, int]]:
    return [(r.partition, o) for r in ranges for o in range(r.from_offset, r.until_offset)]
