"""A stream from a topic into another with the exactly-once sink, as a program of its own.

    python -m tests.spark.sink_driver BOOTSTRAP FROM TO DIRECTORY

It copies all that is available now. It can be held at steps of its driver, and its workers killed,
by files in DIRECTORY (points.py): `journal`, `first-end`, `between-ends` and `ended` in the end of
a batch; `written` in a task that has written and not yet said so.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import datasource
from pyspark.sql.types import StructType

from kafka08.embedded.java import find_java
from kafka08.embedded.spark_java import make_java_home
from kafka08.spark.batch_commits import BatchCommits
from kafka08.spark.batch_journal import JournaledBatch
from kafka08.spark.session import session
from kafka08.spark.source import DataSource
from kafka08.spark.stream_sink import StreamWriter
from kafka08.spark.transaction_options import OpenTransaction, TransactionOptions
from kafka08.spark.written import Written
from tests.spark.points import reach


class PointsCommits(BatchCommits):
    points: Path

    def commit(self, *given: Any, **named: Any) -> None:
        reach(self.points, "journal")
        super().commit(*given, **named)
        reach(self.points, "ended")

    def _commit_all(self, journaled: JournaledBatch) -> None:
        reach(self.points, "first-end")
        super()._commit_all(journaled)

    def _end_all(self, opened: Sequence[OpenTransaction], *, commits: bool) -> list[Any]:
        failed: list[Any] = []
        for one in opened:
            failed += super()._end_all([one], commits=commits)
            reach(self.points, "between-ends")
        return failed


class PointsWriter(StreamWriter):
    def __init__(self, points: Path, *given: Any) -> None:
        self._points = points
        super().__init__(*given)

    def _commits(self, transactions: TransactionOptions) -> BatchCommits:
        made = super()._commits(transactions)
        made.__class__ = PointsCommits
        vars(made)["points"] = self._points
        return made

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        written = super().write(iterator)
        if written.transaction is not None:
            reach(self._points, "written")
        return written


class PointsSink(DataSource):
    def __init__(self, options: dict[str, str]) -> None:
        rest = dict(options)
        self._points = Path(rest.pop("points"))
        super().__init__(rest)

    @classmethod
    def name(cls) -> str:
        return "kafka08-points"

    def streamWriter(
        self, schema: StructType, overwrite: bool
    ) -> datasource.DataSourceStreamWriter:
        return PointsWriter(self._points, self._write_options(schema))


def main() -> None:
    bootstrap, source, target, name = sys.argv[1:]
    directory = Path(name)
    own = Path(tempfile.mkdtemp(dir=directory))
    conf = {
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.local.dir": str(own),
    }
    log = directory / "spark.log"
    java_home = make_java_home(own / "java", find_java(), log)
    with session("sink", "local[2,4]", java_home, log, conf=conf) as spark:
        cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]
        cloudpickle.register_pickle_by_value(sys.modules[reach.__module__])  # type: ignore[no-untyped-call]
        spark.dataSource.register(PointsSink)
        cluster = {"kafka.bootstrap.servers": bootstrap}
        query = (
            spark.readStream.format("kafka08")
            .options(subscribe=source, startingOffsets="earliest", **cluster)
            .load()
            .select("value")
            .writeStream.format("kafka08-points")
            .options(topic=target, points=name, **cluster)
            .option("transactional.id.prefix", "copy")
            .option("checkpointLocation", str(directory / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()


if __name__ == "__main__":
    main()
