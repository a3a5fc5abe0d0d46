"""The data source `kafka08`: Spark calls it to plan and run reads and writes.

Four kinds of Python process import this module for a read, so the sink is imported only where it is
used: with pyarrow.compute it is a quarter of the import. So are streams and filters, because older
releases of PySpark lack their base classes (versions.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import datasource
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from kafka08.arrow.connections import resolved
from kafka08.arrow.option_text import OptionText
from kafka08.arrow.options import ReadOptions, parse_read_options
from kafka08.arrow.ranges import OffsetRange
from kafka08.arrow.resolve import Resolver
from kafka08.errors import ConfigError
from kafka08.spark.schema import check_schema, default_schema
from kafka08.spark.tasks import RangePartition, RangeTasks
from kafka08.spark.versions import FILTERS, STREAM_LIMITS, STREAM_SINK, require
from kafka08.spark.write_options import WriteOptions, parse_write_options

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter


class DataSource(datasource.DataSource):
    """`spark.read.format("kafka08")`. Options and columns: docs/spark.md."""

    workers_checked = False

    @classmethod
    def name(cls) -> str:
        return "kafka08"

    def schema(self) -> StructType:
        return default_schema(OptionText(self.options).take_bool("includeHeaders", False))

    def reader(self, schema: StructType) -> datasource.DataSourceReader:
        options = self._read_options(schema, streaming=False)
        if not options.push_filters:
            return BatchReader(options, schema)
        require(FILTERS, "pushFilters", "leave that option out, Spark filters the rows itself")
        return FilteringReader(options, schema)

    def streamReader(self, schema: StructType) -> datasource.DataSourceStreamReader:
        require(
            STREAM_LIMITS,
            "a stream of the format kafka08",
            "read batches from ranges_until_now, or use kafka08.spark.kafka",
        )
        from kafka08.spark.stream import StreamReader

        return StreamReader(self._read_options(schema, streaming=True), schema)

    def writer(self, schema: StructType, overwrite: bool) -> datasource.DataSourceWriter:
        from kafka08.spark.sink import BatchWriter

        return BatchWriter(self._write_options(schema, overwrite))

    def streamWriter(
        self, schema: StructType, overwrite: bool
    ) -> datasource.DataSourceStreamWriter:
        require(STREAM_SINK, "a stream into the format kafka08", "write in foreachBatch")
        from kafka08.spark.stream_sink import StreamWriter

        return StreamWriter(self._write_options(schema, overwrite))

    def _read_options(self, schema: StructType, *, streaming: bool) -> ReadOptions:
        """The checked options, with brokers in place of ZooKeeper: Spark sends the reader to the
        workers as soon as it exists."""
        options = parse_read_options(self.options, streaming=streaming)
        check_schema(schema, options.include_headers)
        self._warn_of_twin()
        return replace(options, address=resolved(options.address, options.settings))

    def _write_options(self, schema: StructType, overwrite: bool) -> WriteOptions:
        from kafka08.spark.sink import check_columns

        options = parse_write_options(self.options)
        if overwrite:
            raise ConfigError("a topic can only be appended to: use mode('append')")
        check_columns(schema, options.topic)
        self._warn_of_twin()
        return replace(options, address=resolved(options.address, options.settings))

    def _warn_of_twin(self) -> None:
        """Where nobody called `register`, this process, which plans, speaks for the workers'."""
        if not self.workers_checked:
            from kafka08.spark.worker_python import warn_of_twin_here

            warn_of_twin_here()


class CheckedDataSource(DataSource):
    """The same where `register` has looked at the workers, and logged what there is to say."""

    workers_checked = True


class BatchReader(datasource.DataSourceReader):
    """A batch read; planning fixes its ranges. One load() plans once, so every action on the same
    DataFrame reads the same messages."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._tasks = RangeTasks(options.address, options.settings, schema)

    def partitions(self) -> list[InputPartition]:
        resolver = Resolver(self._options)
        ranges = self._narrowed(resolver.batch())
        return [
            RangePartition(piece, resolver.leader(piece.topic_partition))
            for piece in resolver.tasks(ranges)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._tasks.read(partition)

    def _narrowed(self, ranges: list[OffsetRange]) -> list[OffsetRange]:
        """The ranges to read, narrowed by the filters that were accepted."""
        return ranges


class FilteringReader(BatchReader):
    """A batch read that also accepts filters on topic, partition and offset (option `pushFilters`).
    It is a separate class, since Spark fails every query of a reader with filters unless
    spark.sql.python.filterPushdown.enabled is on."""

    _filters: Sequence[Filter] = ()

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        from kafka08.spark.filters import is_exact

        self._filters = [wanted for wanted in filters if is_exact(wanted)]
        return [wanted for wanted in filters if not is_exact(wanted)]

    def _narrowed(self, ranges: list[OffsetRange]) -> list[OffsetRange]:
        from kafka08.spark.filters import narrow

        return narrow(ranges, self._filters)
