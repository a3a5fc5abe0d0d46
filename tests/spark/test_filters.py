"""Filters that Spark pushes: exact ones narrow ranges, all others stay Spark's."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
)

from kafka08.arrow.ranges import OffsetRange
from kafka08.spark.filters import is_exact, narrow, since_ms

RANGES = [OffsetRange("t", 0, 10, 20), OffsetRange("t", 1, 0, 50), OffsetRange("u", 0, 5, 6)]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ([], RANGES),
        ([EqualTo(("topic",), "u")], RANGES[2:]),
        ([In(("topic",), ("t", "v"))], RANGES[:2]),
        ([EqualTo(("partition",), 1)], RANGES[1:2]),
        ([In(("partition",), (1, 2)), EqualNullSafe(("topic",), "u")], []),
        ([EqualTo(("offset",), 12)], [("t", 0, 12, 13), ("t", 1, 12, 13)]),
        ([GreaterThan(("offset",), 12)], [("t", 0, 13, 20), ("t", 1, 13, 50)]),
        ([GreaterThanOrEqual(("offset",), 12)], [("t", 0, 12, 20), ("t", 1, 12, 50)]),
        ([LessThan(("offset",), 6)], [("t", 1, 0, 6), ("u", 0, 5, 6)]),
        ([LessThanOrEqual(("offset",), 4)], [("t", 1, 0, 5)]),
        (
            [GreaterThan(("offset",), 11), LessThan(("offset",), 14), EqualTo(("partition",), 0)],
            [("t", 0, 12, 14)],
        ),
    ],
)
def test_narrow(filters: list[Filter], expected: list[tuple[str, int, int, int]]) -> None:
    """All filters apply together; ranges stay in order, without empty ones."""
    assert all(map(is_exact, filters))
    assert narrow(RANGES, filters) == expected


@pytest.mark.parametrize(
    "other",
    [
        EqualTo(("value",), b"x"),
        EqualTo(("topic", "x"), "t"),
        EqualTo(("partition",), "0"),
        EqualTo(("partition",), None),
        EqualTo(("partition",), True),
        GreaterThan(("partition",), 0),
        In(("offset",), (1, 2)),
        In(("partition",), (1, None)),
        Not(EqualTo(("partition",), 1)),
        IsNotNull(("partition",)),
        GreaterThanOrEqual(("timestamp",), datetime(2017, 7, 14, tzinfo=UTC)),
    ],
)
def test_other_filters_are_sparks(other: Filter) -> None:
    """Filters that the source cannot apply exactly are left to Spark."""
    assert not is_exact(other)


def at(seconds: float, zone: timezone = UTC) -> datetime:
    return datetime.fromtimestamp(seconds, zone)


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ([], None),
        ([GreaterThanOrEqual(("timestamp",), at(5))], 5000),
        ([GreaterThan(("timestamp",), at(5.0019))], 5001),
        ([EqualTo(("timestamp",), at(5)), GreaterThan(("timestamp",), at(4))], 5000),
        ([GreaterThan(("timestamp",), at(5, timezone(timedelta(hours=2))))], 5000),
        ([LessThan(("timestamp",), at(5))], None),
        ([Not(GreaterThan(("timestamp",), at(5)))], None),
        ([GreaterThan(("timestamp",), at(-5))], None),
        ([GreaterThan(("timestamp",), None)], None),
        ([GreaterThan(("timestamp",), at(5).replace(tzinfo=None))], None),
        ([GreaterThan(("offset",), 5), GreaterThan(("timestamp", "x"), at(5))], None),
    ],
)
def test_lower_bounds_of_time(filters: list[Filter], expected: int | None) -> None:
    """The latest lower bound of `timestamp` counts, rounded down to milliseconds; filters without
    one, before 1970 or without a time zone say nothing."""
    assert since_ms(filters) == expected
