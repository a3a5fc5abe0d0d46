"""Refusals of what a PySpark release cannot do. scripts/spark-versions tries the releases."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from kafka08.errors import ConfigError
from kafka08.spark import register, versions
from kafka08.spark.schema import default_schema
from kafka08.spark.source import DataSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = default_schema(include_headers=False)
SERVERS = {"kafka.bootstrap.servers": "localhost:1"}
CHOSEN = {**SERVERS, "offsetRanges": '[["t", 0, 0, 1]]', "kafka.api.version.request": "false"}


def use_release(monkeypatch: pytest.MonkeyPatch, release: tuple[int, int]) -> None:
    """Let this process have a `release` of PySpark, one before 4.2, without what came with that."""
    monkeypatch.setattr(versions, "PYSPARK", release)
    monkeypatch.setitem(sys.modules, "pyspark.sql.streaming.datasource", None)
    for name in ("stream", "refused_stream", "stream_sink"):
        monkeypatch.delitem(sys.modules, f"kafka08.spark.{name}", raising=False)


def register_the_format() -> None:
    register(cast("SparkSession", SimpleNamespace()))


def read_with_filters() -> None:
    DataSource({**CHOSEN, "pushFilters": "true"}).reader(SCHEMA)


def write_a_stream() -> None:
    DataSource({**SERVERS, "topic": "t"}).streamWriter(SCHEMA, overwrite=False)


@pytest.mark.parametrize(
    ("release", "ask", "what", "least", "instead"),
    [
        ((3, 5), register_the_format, "the format kafka08", "4.0", "read_ranges"),
        ((4, 3), read_with_filters, "pushFilters", "4.4", "where.* startingTimestamp"),
        ((4, 0), write_a_stream, "a stream into the format kafka08", "4.1", "foreachBatch"),
    ],
)
def test_a_release_that_cannot_is_told(
    monkeypatch: pytest.MonkeyPatch,
    release: tuple[int, int],
    ask: Callable[[], None],
    what: str,
    least: str,
    instead: str,
) -> None:
    """The error names the feature, the first release that has it, and an alternative."""
    use_release(monkeypatch, release)
    with pytest.raises(ConfigError, match=f"^{what} needs PySpark {least} or later, .*{instead}"):
        ask()


def test_a_stream_that_the_release_cannot_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark gets a reader, which refuses when it is asked: PySpark hides an error of streamReader
    behind one of its own. None of this needs a module that the release lacks."""
    use_release(monkeypatch, (4, 1))
    reader = DataSource({**SERVERS, "subscribe": "t"}).streamReader(SCHEMA)
    with pytest.raises(ConfigError, match=r"^a stream .* needs PySpark 4\.2 .*ranges_until_now"):
        reader.initialOffset()
