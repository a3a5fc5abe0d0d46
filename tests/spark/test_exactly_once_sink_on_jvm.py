"""The sink with transactional.id.prefix on JVM brokers, without Spark around it."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from tests.interop.releases import RELEASES, broker_of
from tests.spark.write_tasks import (
    STEPS,
    Query,
    attempts_that_do_not_count,
    killed_at,
    late_driver,
    lost_responses,
)


@pytest.mark.parametrize("release", RELEASES)
def test_each_row_is_there_once(release: str, tmp_path: Path) -> None:
    """On brokers of each release: drivers are killed at every step, attempts fail or do not count,
    responses are lost, a driver is away too long."""
    numbers = count()
    with broker_of(release, tmp_path) as running:

        def query() -> Query:
            number = next(numbers)
            return Query(running.address, f"written-{number}", tmp_path / str(number))

        for step in STEPS:
            killed_at(query(), step)
        attempts_that_do_not_count(query())
        lost_responses(query())
        late_driver(query())
