"""The demo's Spark stage: exact ranges of a topic, hashed in the workers."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kafka08.demo.ledger import MASK, Content, message_hash
from kafka08.embedded.java import find_java
from kafka08.embedded.spark_java import make_java_home
from kafka08.spark import OffsetRange, ranges_to_json

if TYPE_CHECKING:
    import pyarrow as pa

PART_SCHEMA: Final = "count long, size long, checksum string"
"""The checksum is text: Spark has no unsigned 64-bit numbers."""


def content_of_ranges(bootstrap: str, topic: str, ranges: list[tuple[int, int, int]]) -> Content:
    """What a Spark of two cores finds in `ranges` (partition, from offset, until offset) of
    `topic`. It says nothing on the terminal and is gone afterwards. Raises ConfigError (no Java),
    kafka08.spark.session.SparkFailed."""
    from kafka08.spark.session import local_session

    with tempfile.TemporaryDirectory(prefix="kafka08-spark-") as name:
        log_file = Path(name, "spark.log")
        java_home = make_java_home(Path(name, "java"), find_java(), log_file)
        with local_session("kafka08 demo", java_home, log_file) as spark:
            lines = (
                spark.read.format("kafka08")
                .option("kafka.bootstrap.servers", bootstrap)
                .option("offsetRanges", ranges_to_json(OffsetRange(topic, *r) for r in ranges))
                .schema("key binary, value binary")
                .load()
            )
            parts = lines.mapInArrow(content_of_batches, PART_SCHEMA).collect()
            return sum(
                (Content(p["count"], p["size"], int(p["checksum"])) for p in parts), Content()
            )


def content_of_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """One row, PART_SCHEMA, with the content of one task's messages; runs in a worker."""
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
