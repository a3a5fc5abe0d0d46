"""Garbage collection in Spark's Pythons, which collect after every step."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator

import pytest

from kafka08.spark.collection import leave_modules_to_the_end
from kafka08.spark.schema import default_schema
from kafka08.spark.source import DataSource

OPTIONS = {
    "kafka.bootstrap.servers": "h:9092",
    "kafka.api.version.request": "false",  # so that no broker is asked
    "subscribe": "t",
}


@pytest.fixture
def thawed() -> Iterator[None]:
    """This process as a Python that Spark has just started, and as it was afterwards."""
    gc.unfreeze()
    leave_modules_to_the_end.cache_clear()
    yield
    gc.unfreeze()


@pytest.mark.parametrize(
    "step",
    [lambda source: source.schema(), lambda source: source.reader(default_schema(False))],
    ids=["schema", "plan"],
)
@pytest.mark.usefixtures("thawed")
def test_both_pythons_of_a_plan_leave_their_modules(step: Callable[[DataSource], object]) -> None:
    """The one that tells the schema and the one that plans do not collect their modules again."""
    assert gc.get_freeze_count() == 0
    step(DataSource(OPTIONS))
    assert gc.get_freeze_count() > 10_000
