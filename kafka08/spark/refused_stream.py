"""RefusedStream: the reader of a query that cannot start. It needs no more than PySpark 4.0."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka08.errors import KafkaError


class RefusedStream(DataSourceStreamReader):
    """Raises `error`, whatever Spark asks first. Spark must be given a reader to ask: if there is
    none, its log and its error end with a failure of PySpark's own instead."""

    def __init__(self, error: KafkaError) -> None:
        self._error = error.with_traceback(None)

    def getDefaultReadLimit(self) -> NoReturn:
        raise self._error

    def initialOffset(self) -> NoReturn:
        raise self._error

    def latestOffset(self, start: Any = None, limit: Any = None) -> NoReturn:
        """PySpark before 4.2 gives no arguments."""
        raise self._error

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        raise self._error

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        raise self._error
