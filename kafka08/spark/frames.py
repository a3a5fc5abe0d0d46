"""A batch as a DataFrame without a data source: for PySpark 3.5, which has none in Python."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from kafka08.arrow.batches import BatchBuilder
from kafka08.arrow.connections import resolved
from kafka08.arrow.options import parse_read_options
from kafka08.arrow.ranges import OffsetRange
from kafka08.arrow.resolve import Resolver
from kafka08.arrow.settings import ClusterAddress, ReadSettings
from kafka08.spark.collection import leave_modules_to_the_end
from kafka08.spark.schema import check_schema, default_schema
from kafka08.spark.task_reader import range_reader
from kafka08.spark.versions import arrow_schema
from kafka08.spark.worker_python import check_workers
from kafka08.structs import Broker

_PLAN: Final = (
    "topic string, partition int, start long, until long, leader int, host string, port int"
)
"""Columns of the plan: a row for each task."""


def read_ranges(
    spark: SparkSession, options: Mapping[str, str], schema: StructType | None = None
) -> DataFrame:
    """The same DataFrame as `spark.read.format("kafka08").options(...).load()`, but also on
    PySpark 3.5.

    options   of a batch, by the same names: docs/spark.md. This call fixes the ranges
    schema    the columns to read, in order; None: all

    Raises what `load()` does: ConfigError, DataLost, the errors of brokers. `pushFilters` has no
    effect.
    """
    context = getattr(spark, "_sc", None)
    check_workers(context)
    parsed = parse_read_options(options)
    schema = schema or default_schema(parsed.include_headers)
    check_schema(schema, parsed.include_headers)
    address = resolved(parsed.address, parsed.settings, parsed.topic_filter())
    parsed = replace(parsed, address=address)
    resolver = Resolver(parsed)
    with resolver.deadline():
        plan = [
            (*piece, *_address(resolver.leader(piece.topic_partition)))
            for piece in resolver.tasks(resolver.batch())
        ]
    tasks = max(1, len(plan))
    if context is None:  # Spark Connect, which has no RDDs
        frame = spark.createDataFrame(plan, _PLAN).repartition(tasks)
    else:
        frame = spark.createDataFrame(context.parallelize(plan, tasks), _PLAN)
    return frame.mapInArrow(_Tasks(parsed.address, parsed.settings, schema), schema)


def _address(leader: Broker | None) -> tuple[int, str, int]:
    return (-1, "", 0) if leader is None else (leader.id, leader.host, leader.port)


@dataclass(frozen=True)
class _Tasks:
    """A function for the workers: reads the ranges of a partition of the plan, usually one."""

    address: ClusterAddress
    settings: ReadSettings
    schema: StructType

    def __call__(self, plan: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        leave_modules_to_the_end()
        columns = arrow_schema(self.schema)
        for batch in plan:
            for topic, partition, start, until, *leader in zip(
                *(column.to_pylist() for column in batch.columns), strict=True
            ):
                wanted = OffsetRange(topic, partition, start, until)
                led_by = Broker(*leader) if leader[0] >= 0 else None
                reader = range_reader(self.address, self.settings, wanted, led_by)
                yield from BatchBuilder(columns, wanted, in_place=True).batches(reader)
