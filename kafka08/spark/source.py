"""The data source `kafka08`: what Spark calls to plan and run reads and writes.

A read imports it in four kinds of Python process, so the sink is imported where it is used: with
pyarrow.compute it is a quarter of the whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import datasource
from pyspark.sql.datasource import Filter, InputPartition
from pyspark.sql.types import StructType

from kafka08.arrow.access import resolved
from kafka08.arrow.option_text import OptionText
from kafka08.arrow.options import ReadOptions, parse_read_options
from kafka08.arrow.resolve import Resolver
from kafka08.errors import ConfigError
from kafka08.spark.filters import is_exact, narrow
from kafka08.spark.schema import check_schema, default_schema
from kafka08.spark.stream import StreamReader
from kafka08.spark.tasks import RangePartition, RangeTasks
from kafka08.spark.write_options import WriteOptions, parse_write_options


class DataSource(datasource.DataSource):
    """`spark.read.format("kafka08")`. Options and columns: docs/spark.md."""

    @classmethod
    def name(cls) -> str:
        return "kafka08"

    def schema(self) -> StructType:
        return default_schema(OptionText(self.options).take_bool("includeHeaders", False))

    def reader(self, schema: StructType) -> datasource.DataSourceReader:
        options = self._read_options(schema, streaming=False)
        return (FilteringReader if options.push_filters else BatchReader)(options, schema)

    def streamReader(self, schema: StructType) -> datasource.DataSourceStreamReader:
        return StreamReader(self._read_options(schema, streaming=True), schema)

    def writer(self, schema: StructType, overwrite: bool) -> datasource.DataSourceWriter:
        from kafka08.spark.sink import BatchWriter

        return BatchWriter(self._write_options(schema, overwrite))

    def streamWriter(
        self, schema: StructType, overwrite: bool
    ) -> datasource.DataSourceStreamWriter:
        from kafka08.spark.sink import StreamWriter

        return StreamWriter(self._write_options(schema, overwrite))

    def _read_options(self, schema: StructType, *, streaming: bool) -> ReadOptions:
        """The options, checked, with brokers for ZooKeeper: the reader is sent to the workers as
        soon as it is made."""
        options = parse_read_options(self.options, streaming=streaming)
        check_schema(schema, options.include_headers)
        return replace(options, address=resolved(options.address))

    def _write_options(self, schema: StructType, overwrite: bool) -> WriteOptions:
        from kafka08.spark.sink import check_columns

        options = parse_write_options(self.options)
        if overwrite:
            raise ConfigError("a topic can only be appended to: use mode('append')")
        check_columns(schema, options.topic)
        return replace(options, address=resolved(options.address))


class BatchReader(datasource.DataSourceReader):
    """A batch: its ranges are fixed when it is planned. One load() plans once, so every action on
    the same DataFrame sees the same messages."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._tasks = RangeTasks(options.address, options.settings, schema)
        self._filters: list[Filter] = []

    def partitions(self) -> list[InputPartition]:
        resolver = Resolver(self._options)
        ranges = narrow(resolver.batch(), self._filters)
        return [
            RangePartition(piece, resolver.leader(piece.topic_partition))
            for piece in resolver.tasks(ranges)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._tasks.read(partition)


class FilteringReader(BatchReader):
    """A batch that also takes filters on topic, partition and offset (option `pushFilters`). A
    class of its own, since Spark fails any query of a reader that can, unless
    spark.sql.python.filterPushdown.enabled is on."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        self._filters = [wanted for wanted in filters if is_exact(wanted)]
        return [wanted for wanted in filters if not is_exact(wanted)]
