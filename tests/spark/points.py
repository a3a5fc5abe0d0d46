"""The data source with points at which a test stops it, in whichever process it is there.

    register_points(spark)
    spark.read.format("kafka08-points").option("points", str(directory))...

A file `kill-STEP` in the directory: the process that reaches that step dies there by kill -9, and
the file is gone. A file `hold-STEP`: it leaves a file `held-STEP-` and its id, and waits until
`hold-STEP` is gone. Steps of a driver's process: `initialOffset`, `latestOffset` and `partitions`,
when the response is known and not yet given; of a worker: `read`, after the first batch of rows.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import datasource
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from kafka08.spark.batch_reader import BatchReader
from kafka08.spark.source import DataSource
from kafka08.spark.stream import Position, StreamReader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOLD_S = 60.0


def register_points(spark: SparkSession) -> None:
    """Make the format `kafka08-points` known; workers need not find this module."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]
    spark.dataSource.register(PointsSource)


def reach(directory: Path, step: str) -> None:
    """Do what the test wants at `step`, in this process."""
    kill, hold = directory / f"kill-{step}", directory / f"hold-{step}"
    if kill.exists():
        kill.unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    if hold.exists():
        (directory / f"held-{step}-{os.getpid()}").touch()
        deadline = time.monotonic() + HOLD_S
        while hold.exists():
            assert time.monotonic() < deadline, f"held for ever at {step}"
            time.sleep(0.01)


class PointsSource(DataSource):
    """The source with the option `points`, the directory."""

    def __init__(self, options: dict[str, str]) -> None:
        rest = dict(options)
        self._points = Path(rest.pop("points"))
        super().__init__(rest)

    @classmethod
    def name(cls) -> str:
        return "kafka08-points"

    def reader(self, schema: StructType) -> datasource.DataSourceReader:
        options = self._read_options(schema, streaming=False)
        return PointsBatchReader(self._points, options, schema)

    def streamReader(self, schema: StructType) -> datasource.DataSourceStreamReader:
        options = self._read_options(schema, streaming=True)
        return PointsStreamReader(self._points, options, schema)


def stopping(points: Path, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """`batches`, with the step `read` after the first of them."""
    for number, batch in enumerate(batches):
        yield batch
        if number == 0:
            reach(points, "read")


class PointsBatchReader(BatchReader):
    def __init__(self, points: Path, *given: Any) -> None:
        super().__init__(*given)
        self._points = points

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return stopping(self._points, super().read(partition))


class PointsStreamReader(StreamReader):
    def __init__(self, points: Path, *given: Any) -> None:
        super().__init__(*given)
        self._points = points

    def __getstate__(self) -> dict[str, object]:
        return {**super().__getstate__(), "_points": self._points}

    def initialOffset(self) -> Position:
        offset = super().initialOffset()
        reach(self._points, "initialOffset")
        return offset

    def latestOffset(self, start: Position, limit: Any) -> Position:
        end = super().latestOffset(start, limit)
        reach(self._points, "latestOffset")
        return end

    def partitions(self, start: Position, end: Position) -> list[InputPartition]:
        planned = super().partitions(start, end)
        reach(self._points, "partitions")
        return planned

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return stopping(self._points, super().read(partition))
