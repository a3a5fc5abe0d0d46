"""The sink of a stream; PySpark 4.0 lacks its base class."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from kafka08.spark.rows import counts_text
from kafka08.spark.sink import RowWriter
from kafka08.spark.written import WriterCommits, Written

logger = logging.getLogger(__name__)


class StreamWriter(WriterCommits, DataSourceStreamArrowWriter):
    """`df.writeStream.format("kafka08")`."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        return RowWriter(self.options).write(iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        counts = self.commit_written(messages)
        logger.info("Batch %d written: %s", batchId, counts_text(counts))

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        counts = self.abort_written(messages)
        logger.warning("Batch %d failed after writing %s", batchId, counts_text(counts))
