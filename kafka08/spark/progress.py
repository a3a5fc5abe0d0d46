"""How far a stream is behind and what it lost, out of the progress that Spark reports: Spark gives
sources written in Python no metrics of their own."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener

from kafka08.spark.stream_offsets import StreamOffset, offset_in_progress, offsets_between

logger = logging.getLogger(__name__)

Tell = Callable[[Any, Mapping[str, float]], None]
"""Told a query's progress and the metrics of one of its sources."""

BEHIND: Final = "OffsetsBehindLatest"
WITHOUT_ROWS: Final = "offsetsWithoutRows"


def offsets_behind_latest(source: Any) -> dict[str, float]:
    """minOffsetsBehindLatest, maxOffsetsBehindLatest and avgOffsetsBehindLatest, as Spark's own
    connector names them, over the partitions of one source: `query.lastProgress.sources[0]`.

    {} where there is nothing to compare: another source, no batch yet, or PySpark before 4.2.
    """
    consumed, latest = (offset_in_progress(source, name) for name in ("endOffset", "latestOffset"))
    if consumed is None or latest is None:
        return {}
    read = consumed.ends
    behind = [max(0, end - read[tp]) for tp, end in latest.ends.items() if tp in read]
    if not behind:
        return {}
    return {
        f"min{BEHIND}": min(behind),
        f"max{BEHIND}": max(behind),
        f"avg{BEHIND}": sum(behind) / len(behind),
    }


def offsets_without_rows(source: Any) -> int:
    """How many offsets of the last batch of one source gave no row: messages that were lost, which
    failOnDataLoss=false accepts, while it was planned or in its tasks; and those that compaction
    removed. 0 for other sources, and if the query reads the source twice (rows count twice)."""
    start, end = (offset_in_progress(source, name) for name in ("startOffset", "endOffset"))
    if end is None:
        return 0
    rows: int = source.numInputRows
    return max(0, offsets_between(start or StreamOffset({}), end) - rows)


class BehindListener(StreamingQueryListener):
    """Tells after every batch how far each source of a query is behind, and what it lost. It is
    added to `spark` at once.

        BehindListener(spark)    # a log line each, level INFO of this module
        BehindListener(spark, lambda progress, behind: gauge.set(behind["maxOffsetsBehindLatest"]))

    tell   called in Spark's listener thread with the progress of a query, and of one of its sources
           `offsets_behind_latest` and offsetsWithoutRows (`offsets_without_rows`); an error in it
           is logged
    """

    def __init__(self, spark: SparkSession, tell: Tell | None = None) -> None:
        self._tell = tell or _log
        spark.streams.addListener(self)

    def onQueryStarted(self, event: Any) -> None:
        pass

    def onQueryProgress(self, event: Any) -> None:
        for source in event.progress.sources:
            behind = offsets_behind_latest(source)
            if behind:
                lost = {WITHOUT_ROWS: offsets_without_rows(source)}
                self._tell(event.progress, behind | lost)

    def onQueryIdle(self, event: Any) -> None:
        pass

    def onQueryTerminated(self, event: Any) -> None:
        pass


def _log(progress: Any, behind: Mapping[str, float]) -> None:
    logger.info(
        "query %s, batch %d: %d rows at %.0f a second; behind the log ends by %d to %d offsets a "
        "partition, %.0f on average; %d offsets gave no row",
        *(progress.name or progress.id, progress.batchId, progress.numInputRows),
        *(progress.processedRowsPerSecond or 0.0, *behind.values()),
    )
