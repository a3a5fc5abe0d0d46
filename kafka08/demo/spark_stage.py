"""The demo's Spark stage: exact ranges of a topic, hashed in the workers."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from kafka08.demo.ledger import MASK, Content, message_hash
from kafka08.embedded.java import find_java
from kafka08.embedded.spark_java import make_java_home
from kafka08.spark import OffsetRange, ranges_to_json


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
            return sum(lines.rdd.mapPartitions(content_of_rows).collect(), Content())


def content_of_rows(rows: Iterable[tuple[bytes | None, bytes | None]]) -> Iterator[Content]:
    """The content of one task's messages, each a (key, value); runs in a worker."""
    count = size = checksum = 0
    for key, value in rows:
        count += 1
        size += len(key or b"") + len(value or b"")
        checksum += message_hash(key, value)
    yield Content(count, size, checksum & MASK)
