"""A row of `scripts/bench growth` as a bound: of the ratio between two sizes, never of a time."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

import pytest

from benchmarks.growth import DIMENSIONS, ROWS_EACH, broker, columns, exponent, measure
from benchmarks.growth_place import Place

SIZES = (50, 1000)
EXPONENT_MAX = 0.2
"""Each partition gets a batch of as many rows, so this is the cost of more partitions alone: from
-0.05 to 0.1."""
BATCH_ROWS_MAX = 80
"""A batch costs as much as 40 to 50 rows: 150 while Arrow took the rows of each partition."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    pytest.importorskip("pyarrow")
    with broker(tmp_path_factory.mktemp("growth"), SIZES) as found:
        yield found


def test_an_exponent_is_the_slope_of_the_logarithms() -> None:
    """A cost that grows like the size has the exponent 1, one that stays the same 0."""
    assert exponent([1, 10, 100], [3, 30, 300]) == pytest.approx(1)
    assert exponent([1, 10, 100], [3, 3, 3]) == pytest.approx(0)


def test_a_row_does_not_cost_more_with_more_partitions(place: Place) -> None:
    """`send_columns` with a column of partitions, on a broker: the cost of a row does not grow with
    the number of partitions."""
    [one] = [dimension for dimension in DIMENSIONS if dimension.name == "partitions in a column"]
    assert exponent(SIZES, measure(place, one, SIZES, rounds=7)) < EXPONENT_MAX


def test_a_partition_costs_like_few_rows(place: Place) -> None:
    """The work for each partition of a column: with few rows in each it is most of the cost."""
    many = 20 * ROWS_EACH
    costs = [
        statistics.median(columns(place, SIZES[0], rows) for _ in range(7))
        for rows in (ROWS_EACH, many)
    ]
    batch = (costs[0] - costs[1]) / (1 / ROWS_EACH - 1 / many)
    assert batch / (costs[1] - batch / many) < BATCH_ROWS_MAX
