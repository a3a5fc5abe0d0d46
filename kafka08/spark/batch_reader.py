"""A batch read: plans its ranges on the driver, and reads each in a task."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import datasource
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from kafka08.arrow.options import ReadOptions
from kafka08.arrow.ranges import OffsetRange
from kafka08.arrow.resolve import Resolver
from kafka08.spark.plain_errors import plain_errors
from kafka08.spark.tasks import RangeTasks, range_partitions

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter


class BatchReader(datasource.DataSourceReader):
    """A batch read; planning fixes its ranges. One load() plans once, so every action on the same
    DataFrame reads the same messages."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._tasks = RangeTasks(options.address, options.settings, schema)

    @plain_errors
    def partitions(self) -> list[InputPartition]:
        resolver = Resolver(self._options)
        with resolver.deadline():
            return range_partitions(resolver, self._narrowed(resolver, resolver.batch()))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._tasks.read(partition)

    def _narrowed(self, resolver: Resolver, ranges: list[OffsetRange]) -> list[OffsetRange]:
        """The ranges to read, narrowed by the filters."""
        return ranges


class FilteringReader(BatchReader):
    """A batch read that also takes filters on topic, partition, offset and timestamp (option
    `pushFilters`). It is a separate class, since Spark fails every query of a reader with filters
    unless spark.sql.python.filterPushdown.enabled is on."""

    _filters: Sequence[Filter] = ()
    _since_ms: int | None = None

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        from kafka08.spark.filters import is_exact, since_ms

        self._filters = [wanted for wanted in filters if is_exact(wanted)]
        self._since_ms = since_ms(filters)
        return [wanted for wanted in filters if not is_exact(wanted)]

    def _narrowed(self, resolver: Resolver, ranges: list[OffsetRange]) -> list[OffsetRange]:
        from kafka08.spark.filters import narrow

        kept = narrow(ranges, self._filters)
        return kept if self._since_ms is None else resolver.since(kept, self._since_ms)
