"""A row of `scripts/bench growth` as a bound: of the ratio between two sizes, never of a time."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.growth import DIMENSIONS, broker, exponent, measure

SIZES = (50, 1000)
EXPONENT_MAX = 0.4
"""0.65 while each row was compared with each partition. The rest is what a batch costs: of 20,000
rows each of 1,000 partitions gets a batch of twenty."""


def test_an_exponent_is_the_slope_of_the_logarithms() -> None:
    """A cost that grows like the size has the exponent 1, one that stays the same 0."""
    assert exponent([1, 10, 100], [3, 30, 300]) == pytest.approx(1)
    assert exponent([1, 10, 100], [3, 3, 3]) == pytest.approx(0)


def test_a_row_does_not_cost_more_with_more_partitions(tmp_path: Path) -> None:
    """`send_columns` with a column of partitions, on a broker: the cost of a row hardly grows with
    the number of partitions."""
    pytest.importorskip("pyarrow")
    [one] = [dimension for dimension in DIMENSIONS if dimension.name == "partitions in a column"]
    with broker(tmp_path, SIZES) as servers:
        assert exponent(SIZES, measure(servers, one, SIZES, rounds=5)) < EXPONENT_MAX
