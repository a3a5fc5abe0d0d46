"""Spark on 0.8: a source and sink `kafka08`, and the old streaming API in `kafka08.spark.kafka`.

Only this package imports pyspark. Spark calls `source`; kafka08.arrow plans and reads the ranges.
Users: docs/spark.md. Start reading at `source.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka08.arrow.ranges import OffsetRange, ranges_from_json, ranges_to_json
from kafka08.arrow.unread_ranges import ranges_until_now
from kafka08.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kafka08.spark.frames import read_ranges
    from kafka08.spark.listener import GroupCommitListener
    from kafka08.spark.progress import (
        BehindListener,
        offsets_behind_latest,
        offsets_without_rows,
    )
    from kafka08.spark.source import DataSource
else:  # ranges and options work without pyspark
    __getattr__ = lazy_exports(
        __name__,
        {
            "frames": ("read_ranges",),
            "listener": ("GroupCommitListener",),
            "progress": ("BehindListener", "offsets_behind_latest", "offsets_without_rows"),
            "source": ("DataSource",),
        },
        extra="spark",
    )

__all__ = [
    "BehindListener",
    "DataSource",
    "GroupCommitListener",
    "OffsetRange",
    "offsets_behind_latest",
    "offsets_without_rows",
    "ranges_from_json",
    "ranges_to_json",
    "ranges_until_now",
    "read_ranges",
    "register",
]


def register(spark: SparkSession) -> None:
    """Make the format `kafka08` known to `spark`. Not needed where kafka08 is installed by pip:
    Spark finds `pyspark_kafka08` by itself. Needed with an editable install (pip install -e),
    whose packages Spark's search does not see.

    ConfigError if PySpark is older than 4.0, or if workers run a Python that cannot run our tasks:
    a cluster's are asked by a small job, once. Logs a warning if they lack the compiled kernel."""
    from pyspark.errors import AnalysisException

    from kafka08.spark.versions import DATA_SOURCES, require
    from kafka08.spark.worker_python import check_planner, check_workers

    require(DATA_SOURCES, "the format kafka08", "use kafka08.spark.read_ranges")
    from kafka08.spark.source import CheckedDataSource

    context = getattr(spark, "_sc", None)  # None with Spark Connect, whose driver is elsewhere
    check_workers(context)
    if context is not None:
        check_planner(context.pythonExec)
    try:
        spark.dataSource.register(CheckedDataSource)
    except AnalysisException as error:  # PySpark 4.0: it has found the package by itself
        if "DATA_SOURCE_ALREADY_EXISTS" not in str(error):
            raise
