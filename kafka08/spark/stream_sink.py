"""The sink of a stream; PySpark 4.0 lacks its base class."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from kafka08.spark.rows import counts_text
from kafka08.spark.sink import RowWriter, Written, total
from kafka08.spark.write_options import WriteOptions

logger = logging.getLogger(__name__)


class StreamWriter(DataSourceStreamArrowWriter):
    """`df.writeStream.format("kafka08")`."""

    def __init__(self, options: WriteOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        return RowWriter(self._options).write(iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        logger.info("Batch %d written: %s", batchId, counts_text(total(messages)))

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        logger.warning("Batch %d failed after writing %s", batchId, counts_text(total(messages)))
