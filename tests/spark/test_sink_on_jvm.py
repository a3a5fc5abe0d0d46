"""The sink's tasks send to a JVM broker of 0.10.2.2, without Spark around them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pytest

from kafka08.arrow import scan
from kafka08.arrow.connections import resolved
from kafka08.clock import SystemClock
from kafka08.kernel.types import CREATE_TIME
from kafka08.spark.sink import RowWriter
from kafka08.spark.write_options import parse_write_options
from tests.interop.jvm import POM_0_10_2, JvmBroker, JvmKafka, require_jvm

START_MS = 1_700_000_000_123


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JvmBroker]:
    require_jvm()
    keys = {"log.retention.ms": "-1"}
    directory = tmp_path_factory.mktemp("kafka-0.10.2.2")
    with JvmKafka(directory, keys, pom=POM_0_10_2) as kafka:
        yield kafka.brokers[0]


class StandingTime(SystemClock):
    """Waits are real, since the broker creates the topics; rows get one time."""

    @staticmethod
    def time_ms() -> int:
        return START_MS


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4"])
def test_timestamps(broker: JvmBroker, codec: str) -> None:
    """The broker takes every codec's sets, and a reader finds the rows' times, those of sending
    where a row has none, and keys and values as they were."""
    topic = f"rows-{codec}"
    options = parse_write_options(
        {
            "kafka.bootstrap.servers": broker.address,
            "kafka.compression.type": codec,
            "kafka.batch.size": "300",
            "topic": topic,
            "includeTimestamp": "true",
        }
    )
    options = replace(options, address=resolved(options.address, options.settings))
    times = [None if n % 7 == 3 else START_MS + n for n in range(50)]
    rows = pa.record_batch(
        {
            "key": pa.array([b"k%d" % n if n % 3 else None for n in range(50)], pa.binary()),
            "value": pa.array([b"v%d" % n for n in range(50)], pa.binary()),
            "timestamp": pa.array(times, pa.timestamp("ms", "UTC")),
        }
    )
    clock = StandingTime()
    sent = pa.scalar(clock.time_ms(), pa.int64()).cast(pa.timestamp("ms", "UTC"))
    written = RowWriter(options, clock).write(iter([rows]))
    assert written.counts[topic][0] == 50
    columns = ["key", "value", "timestamp", "timestampType"]
    with scan(broker.address, topic, columns=columns) as found:
        read = pa.table(found)
    assert read.select(["key", "value"]).equals(pa.table(rows).select(["key", "value"]))
    assert read["timestamp"].combine_chunks() == rows["timestamp"].fill_null(sent)
    assert set(read["timestampType"].to_pylist()) == {CREATE_TIME}
