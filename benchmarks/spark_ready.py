"""The bounds of a source in Python. Both sources here yield the first batch of a range repeatedly:

ready-made   without Kafka: what Spark itself costs for rows that come from Python
received     one row for each message that it has fetched, and whose CRC it has checked: what any
             source costs that reads Kafka, before it makes columns of the messages
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, Final

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import SparkSession, datasource
from pyspark.sql.types import StructType

from kafka08.arrow.batches import BatchBuilder
from kafka08.spark.source import CheckedDataSource
from kafka08.spark.task_reader import range_reader
from kafka08.spark.versions import arrow_schema

READY_MADE: Final = "ready-made"
RECEIVED: Final = "received"
NAMES: Final = (READY_MADE, RECEIVED)
Figures = Mapping[str, Sequence[Mapping[str, float]]]
"""Side → the figures of each round."""


class ReadyMade(CheckedDataSource):
    """Options, columns, plan and number of rows are those of `kafka08`."""

    @classmethod
    def name(cls) -> str:
        return READY_MADE

    def reader(self, schema: StructType) -> datasource.DataSourceReader:
        return Repeated(super().reader(schema))


class Received(ReadyMade):
    @classmethod
    def name(cls) -> str:
        return RECEIVED

    def reader(self, schema: StructType) -> datasource.DataSourceReader:
        return Fetched(CheckedDataSource.reader(self, schema))


class Repeated(datasource.DataSourceReader):
    """The first batch of each range of `reader`, again and again for as many rows as offsets."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader

    def partitions(self) -> Sequence[datasource.InputPartition]:
        partitions: Sequence[datasource.InputPartition] = self._reader.partitions()
        return partitions

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        with closing(self._reader.read(partition)) as batches:
            batch = next(batches)
        yield from repeated(batch, partition.wanted.size)


class Fetched(Repeated):
    """As many rows of the first batch as have been fetched and checked."""

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        tasks, wanted = self._reader._tasks, partition.wanted
        sets = range_reader(tasks.address, tasks.settings, wanted, partition.leader)
        position, batch = wanted.from_offset, None
        for fetched in sets:
            if batch is None:
                builder = BatchBuilder(arrow_schema(tasks.schema), wanted)
                batch = next(builder.batches([fetched]))
            yield from repeated(batch, sets.position - position)  # for the set before this one
            position = sets.position
        if batch is not None:
            yield from repeated(batch, wanted.until_offset - position)


def repeated(batch: pa.RecordBatch, rows: int) -> Iterator[pa.RecordBatch]:
    """So many rows, all from `batch`."""
    while rows:
        part = batch.slice(0, rows)
        yield part
        rows -= len(part)


def register(spark: SparkSession) -> None:
    """Make the formats known to `spark`, whose workers cannot import this module."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]
    for source in (ReadyMade, Received):
        spark.dataSource.register(source)


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
