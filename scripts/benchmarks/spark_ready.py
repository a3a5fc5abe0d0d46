"""A source that fetches one batch of each range and then yields it again and again, without Kafka:
what Spark itself costs for rows that come from Python, whatever the source."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import SparkSession, datasource
from pyspark.sql.types import StructType

from kafka08.spark.source import CheckedDataSource

NAME: Final = "ready-made"
Figures = Mapping[str, Sequence[Mapping[str, float]]]
"""Side → the figures of each round."""


class ReadyMade(CheckedDataSource):
    """Options, columns, plan and number of rows are those of `kafka08`."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def reader(self, schema: StructType) -> datasource.DataSourceReader:
        return Repeated(super().reader(schema))


class Repeated(datasource.DataSourceReader):
    """The first batch of each range of `reader`, again and again for as many rows as offsets."""

    def __init__(self, reader: datasource.DataSourceReader) -> None:
        self._reader = reader

    def partitions(self) -> Sequence[datasource.InputPartition]:
        return self._reader.partitions()

    def read(self, partition: datasource.InputPartition) -> Iterator[pa.RecordBatch]:
        left = partition.wanted.size  # type: ignore[attr-defined]
        batch = next(iter(self._reader.read(partition)))
        while left:
            part = batch.slice(0, left)
            yield part
            left -= len(part)


def register(spark: SparkSession) -> None:
    """Make the format known to `spark`, whose workers cannot import this module."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]
    spark.dataSource.register(ReadyMade)


def bound_rows(case: str, found: Figures) -> list[dict[str, object]]:
    """Print and return a row for rate and one for CPU: of each side, and beside the first one's."""
    rows: list[dict[str, object]] = []
    for figure, unit in (("rate", "M/s"), ("cpu", "s/M")):
        medians = {
            name: statistics.median(figures[figure] for figures in rounds)
            for name, rounds in found.items()
        }
        first = next(iter(medians.values()))
        shown = "  ".join(f"{name} {m:.3f} ({m / first:.2f})" for name, m in medians.items())
        print(f"{case:24} {figure:>9} {unit:>5}  {shown}", flush=True)
        rows.append({"case": case, "figure": figure, "unit": unit, **medians})
    return rows
