"""The demo's Spark jobs: workers hash exact ranges of a topic, or make a table of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kafka08.demo.identifiers import COUNT_SCHEMA, Counts, count_in_table
from kafka08.demo.ledger import MASK, Content, message_hash
from kafka08.embedded.guard import Guard
from kafka08.embedded.java import find_java
from kafka08.embedded.spark_java import make_java_home
from kafka08.spark import OffsetRange, ranges_to_json

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

Range = tuple[int, int, int]
"""partition, from offset, until offset"""
PART_SCHEMA: Final = "count long, size long, checksum string"
"""The checksum is a string: Spark has no unsigned 64-bit integers."""


class SparkReader:
    """The demo's jobs on a topic. Failures raise kafka08.spark.session.SparkFailed."""

    def __init__(self, spark: SparkSession, bootstrap: str, topic: str) -> None:
        self._spark = spark
        self._bootstrap = bootstrap
        self._topic = topic

    def content(self, ranges: Sequence[Range]) -> Content:
        """The content of the ranges."""
        lines = self._read(ranges, "key binary, value binary")
        parts = lines.mapInArrow(content_of_batches, PART_SCHEMA).collect()
        return sum((Content(p["count"], p["size"], int(p["checksum"])) for p in parts), Content())

    def count_identifiers(self, ranges: Sequence[Range], path: Path) -> None:
        """Count the identifiers of the files whose lines are in the ranges, by module, and write
        them as Parquet to `path`, the most frequent first. Replaces existing files."""
        lines = self._read(ranges, "key binary, value binary, offset long")
        by_file = lines.groupBy("key").applyInArrow(count_in_table, COUNT_SCHEMA)
        by_module = by_file.groupBy("module", "identifier").agg({"occurrences": "sum"})
        named = by_module.withColumnRenamed("sum(occurrences)", "occurrences")
        in_order = named.coalesce(1).sortWithinPartitions(
            "module", "occurrences", "identifier", ascending=[True, False, True]
        )
        in_order.write.mode("overwrite").parquet(str(path.absolute()))

    def _read(self, ranges: Sequence[Range], schema: str) -> DataFrame:
        return (
            self._spark.read.format("kafka08")
            .option("kafka.bootstrap.servers", self._bootstrap)
            .option("offsetRanges", ranges_to_json(OffsetRange(self._topic, *r) for r in ranges))
            .schema(schema)
            .load()
        )


@contextmanager
def spark_reader(bootstrap: str, topic: str, scratch: Path, guard: Guard) -> Iterator[SparkReader]:
    """A SparkReader for the block. It prints nothing to the terminal; its log and temporary files
    are in `scratch`, which must not exist yet and which the caller removes. `guard` gets the id of
    its Java process. ConfigError without Java."""
    from kafka08.spark.session import local_session

    log_file = scratch / "spark.log"
    java_home = make_java_home(scratch / "java", find_java(), log_file)
    conf = {"spark.local.dir": str(scratch / "local")}
    with ExitStack() as stack:

        def on_java(pid: int) -> None:
            guard.add(pid)
            stack.callback(guard.drop, pid)

        spark = stack.enter_context(
            local_session("kafka08 demo", java_home, log_file, conf=conf, on_java=on_java)
        )
        yield SparkReader(spark, bootstrap, topic)


def read_counts(path: Path) -> Counts:
    """The counts that count_identifiers has written."""
    from pyarrow import parquet

    columns = parquet.read_table(path).to_pydict()
    keys = zip(columns["module"], columns["identifier"], strict=True)
    return dict(zip(keys, columns["occurrences"], strict=True))


def content_of_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """One row of PART_SCHEMA with the content of one task's messages; runs in a worker."""
    import pyarrow as pa

    count = size = checksum = 0
    for batch in batches:
        keys, values = (batch.column(name).to_pylist() for name in ("key", "value"))
        for key, value in zip(keys, values, strict=True):
            size += len(key or b"") + len(value or b"")
            checksum += message_hash(key, value)
        count += batch.num_rows
    row = {"count": count, "size": size, "checksum": str(checksum & MASK)}
    yield pa.RecordBatch.from_pylist([row])
