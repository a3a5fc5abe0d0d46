"""The data source `kafka08`: Spark calls it to plan and run reads and writes.

Spark starts a Python to learn the schema of a read, and another to plan it. The first needs no more
than this module, so readers and writers are imported where they are used. Older releases of PySpark
also lack the base classes of some (versions.py).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import datasource
from pyspark.sql.types import StructType

from kafka08.arrow.option_text import OptionText
from kafka08.errors import ConfigError, KafkaError
from kafka08.spark.collection import leave_modules_to_the_end
from kafka08.spark.plain_errors import plain_errors, plain_write_errors
from kafka08.spark.schema import check_schema, default_schema
from kafka08.spark.versions import FILTERS, STREAM_LIMITS, STREAM_SINK, require

if TYPE_CHECKING:
    from kafka08.arrow.options import ReadOptions
    from kafka08.spark.write_options import WriteOptions


class DataSource(datasource.DataSource):
    """`spark.read.format("kafka08")`. Options and columns: docs/spark.md."""

    workers_checked = False

    @classmethod
    def name(cls) -> str:
        return "kafka08"

    def schema(self) -> StructType:
        leave_modules_to_the_end()
        return default_schema(OptionText(self.options).take_bool("includeHeaders", False))

    @plain_errors
    def reader(self, schema: StructType) -> datasource.DataSourceReader:
        from kafka08.spark.batch_reader import BatchReader, FilteringReader

        options = self._read_options(schema, streaming=False)
        if not options.push_filters:
            return BatchReader(options, schema)
        require(
            FILTERS,
            "pushFilters",
            "earlier releases read the ranges of one query for another query of the same "
            "DataFrame. Leave the option out and filter with where(), or give startingTimestamp "
            "or startingOffsetsByTimestamp",
        )
        return FilteringReader(options, schema)

    def streamReader(self, schema: StructType) -> datasource.DataSourceStreamReader:
        try:
            require(
                STREAM_LIMITS,
                "a stream of the format kafka08",
                "read batches from ranges_until_now, or use kafka08.spark.kafka",
            )
            from kafka08.spark.stream import StreamReader

            return StreamReader(self._stream_options(schema), schema)
        except KafkaError as error:
            from kafka08.spark.refused_stream import RefusedStream

            return RefusedStream(error)

    @plain_write_errors
    def writer(self, schema: StructType, overwrite: bool) -> datasource.DataSourceWriter:
        from kafka08.spark.sink import BatchWriter

        if overwrite:
            raise ConfigError("a topic can only be appended to: use mode('append')")
        return BatchWriter(self._write_options(schema))

    @plain_write_errors
    def streamWriter(
        self, schema: StructType, overwrite: bool
    ) -> datasource.DataSourceStreamWriter:
        require(STREAM_SINK, "a stream into the format kafka08", "write in foreachBatch")
        from kafka08.spark.stream_sink import StreamWriter

        # `overwrite` is output mode complete: each batch appends the whole result, as Spark's own
        # sink does.
        return StreamWriter(self._write_options(schema))

    @plain_errors
    def _stream_options(self, schema: StructType) -> ReadOptions:
        return self._read_options(schema, streaming=True)

    def _read_options(self, schema: StructType, *, streaming: bool) -> ReadOptions:
        """The checked options, with brokers in place of ZooKeeper: Spark sends the reader to the
        workers as soon as it exists."""
        from kafka08.arrow.connections import resolved
        from kafka08.arrow.options import parse_read_options

        options = parse_read_options(self.options, streaming=streaming)
        check_schema(schema, options.include_headers)
        self._warn_of_twin()
        leave_modules_to_the_end()
        address = resolved(options.address, options.settings, options.topic_filter())
        return replace(options, address=address)

    def _write_options(self, schema: StructType) -> WriteOptions:
        from kafka08.spark.sink import check_columns, planned
        from kafka08.spark.write_options import parse_write_options

        options = parse_write_options(self.options)
        check_columns(schema, options.topic, keeps_times=options.keeps_times)
        self._warn_of_twin()
        leave_modules_to_the_end()
        return planned(options)

    def _warn_of_twin(self) -> None:
        """Without a call of `register`, this planning process speaks for those of the workers."""
        if not self.workers_checked:
            from kafka08.spark.worker_python import warn_of_twin_here

            warn_of_twin_here()


class CheckedDataSource(DataSource):
    """The data source where `register` has looked at the workers, and logged what it found."""

    workers_checked = True
