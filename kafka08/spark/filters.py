"""Filters that Spark passes to the reader, applied to ranges before anything is read. Pure.

Filters on topic and partition drop ranges, comparisons of offset cut them. Both are exact, so Spark
need not apply them again. A lower bound of timestamp says where to start; as later messages may
have earlier times, Spark applies it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from kafka08.arrow.ranges import OffsetRange

Cut = Callable[[int], tuple[int, int | None]]
"""literal → offsets [from, until) that pass; None: no end."""

OFFSET_CUTS: Final[dict[type[Filter], Cut]] = {
    EqualTo: lambda value: (value, value + 1),
    EqualNullSafe: lambda value: (value, value + 1),
    GreaterThan: lambda value: (value + 1, None),
    GreaterThanOrEqual: lambda value: (value, None),
    LessThan: lambda value: (0, value),
    LessThanOrEqual: lambda value: (0, value + 1),
}
LOWER_BOUNDS: Final = (EqualTo, EqualNullSafe, GreaterThan, GreaterThanOrEqual)
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
TYPES: Final[dict[str, type]] = {"topic": str, "partition": int, "offset": int}


def is_exact(wanted: Filter) -> bool:
    """Whether `narrow` implements this filter completely."""
    column = _column(wanted)
    if column is None:
        return False
    if isinstance(wanted, In):
        return column != "offset" and all(type(value) is TYPES[column] for value in wanted.value)
    known = OFFSET_CUTS if column == "offset" else (EqualTo, EqualNullSafe)
    return type(wanted) in known and type(_literal(wanted)) is TYPES[column]


def narrow(ranges: Iterable[OffsetRange], filters: Iterable[Filter]) -> list[OffsetRange]:
    """The parts of `ranges` that pass all `filters`, each of which `is_exact`; in order, without
    empty ranges."""
    left = list(ranges)
    for wanted in filters:
        assert is_exact(wanted), wanted
        left = [kept for of_partition in left if (kept := _narrowed(of_partition, wanted)).size]
    return left


def since_ms(filters: Iterable[Filter]) -> int | None:
    """The time in ms (of 1970 or later) before which no message passes all `filters`; None if they
    do not say."""
    times = [
        (literal - EPOCH) // timedelta(milliseconds=1)
        for wanted in filters
        if type(wanted) in LOWER_BOUNDS
        and getattr(wanted, "attribute", ()) == ("timestamp",)
        and isinstance(literal := getattr(wanted, "value", None), datetime)
        and literal.tzinfo is not None
    ]
    return max((time_ms for time_ms in times if time_ms >= 0), default=None)


def _narrowed(of_partition: OffsetRange, wanted: Filter) -> OffsetRange:
    column = _column(wanted)
    if column == "offset":
        start, until = OFFSET_CUTS[type(wanted)](_literal(wanted))
        begin = max(of_partition.from_offset, start)
        end = of_partition.until_offset if until is None else min(of_partition.until_offset, until)
        return of_partition._replace(from_offset=begin, until_offset=max(begin, end))
    allowed = wanted.value if isinstance(wanted, In) else (_literal(wanted),)
    if getattr(of_partition, column or "") in allowed:
        return of_partition
    return of_partition._replace(until_offset=of_partition.from_offset)


def _column(wanted: Filter) -> str | None:
    """topic, partition or offset; None for any other column and for filters without one."""
    path: tuple[str, ...] = getattr(wanted, "attribute", ())
    return path[0] if len(path) == 1 and path[0] in TYPES else None


def _literal(wanted: Filter) -> int:
    value: int = getattr(wanted, "value", None)  # type: ignore[assignment]  # None is not exact
    return value
