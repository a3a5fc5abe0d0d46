"""Timestamps of magic 1 in Spark: DataFrames, streams, the old API, and reads by time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql.datasource import GreaterThanOrEqual, LessThan

from kafka08.client.requests import produce_request
from kafka08.embedded.cluster import EmbeddedCluster
from kafka08.errors import ConfigError
from kafka08.kernel.types import CREATE_TIME, LOG_APPEND_TIME, NO_TIMESTAMP_TYPE
from kafka08.protocol import message_set
from kafka08.spark import read_ranges, versions
from kafka08.spark.filters import EPOCH
from kafka08.spark.kafka import KafkaMessageAndMetadata, KafkaUtils, OffsetRange
from kafka08.spark.source import DataSource
from kafka08.structs import TopicPartition
from tests.spark.filling import Topics
from tests.spark.test_stream import Job

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

START_MS = 1_500_000_000_123
STEP_MS = 1000


@pytest.fixture(scope="module")
def timed() -> Iterator[Topics]:
    """Brokers of level 0.10.2."""
    config = {"num.partitions": "2", "log.retention.ms": "-1"}  # the messages are of 2017
    with EmbeddedCluster(1, config, level="0.10.2") as cluster:
        topics = Topics(cluster.bootstrap, cluster.zookeeper.connect_string)
        yield topics
        topics.close()


def filled(topics: Topics, count: int = 10, **config: str) -> str:
    """A topic of one partition: message n was made at START_MS + n * STEP_MS, and one behind them
    has no timestamp."""
    topic = topics.new_topic(1, {name.replace("_", "."): value for name, value in config.items()})
    append(topics, topic, [START_MS + n * STEP_MS for n in range(count)])
    append(topics, topic, [-1])
    return topic


def append(topics: Topics, topic: str, times: list[int]) -> None:
    tp = TopicPartition(topic, 0)
    data = message_set.encode([(None, b"v")] * len(times), 0, 0, 1, times)
    request = produce_request({tp: data}, required_acks=1, timeout_ms=10_000)
    request.version = 2  # magic 1
    topics.client.at_leader(tp, lambda connection: connection.send(request))


def stamps(frame: DataFrame) -> list[tuple[int, int | None, int]]:
    """(offset, timestamp in ms, its type) of each row."""
    columns = ("offset", "unix_millis(timestamp) AS ms", "timestampType")
    rows = frame.selectExpr(*columns).collect()
    return sorted((row.offset, row.ms, row.timestampType) for row in rows)


def expected(start: int, until: int) -> list[tuple[int, int | None, int]]:
    return [(n, START_MS + n * STEP_MS, CREATE_TIME) for n in range(start, until)]


UNTIMED = [(10, None, CREATE_TIME)]


def test_every_way_of_reading(spark: SparkSession, timed: Topics, tmp_path: Path) -> None:
    """A batch, a stream, read_ranges and the old API return the producer's timestamps to the
    millisecond, null for none."""
    topic = filled(timed)
    assert stamps(timed.read(spark, subscribe=topic)) == expected(0, 10) + UNTIMED
    options = {"kafka.bootstrap.servers": timed.bootstrap, "subscribe": topic}
    assert stamps(read_ranges(spark, options)) == expected(0, 10) + UNTIMED
    job = Job(spark, timed, tmp_path, subscribe=topic, startingOffsets="earliest")
    job.run()
    assert stamps(spark.read.parquet(str(job.output))) == expected(0, 10) + UNTIMED

    def stamp(message: KafkaMessageAndMetadata) -> Any:
        return message.offset, message.timestamp, message.timestampType

    rdd = KafkaUtils.createRDD(
        spark.sparkContext,
        {"metadata.broker.list": timed.bootstrap},
        [OffsetRange(topic, 0, 8, 11)],
        messageHandler=stamp,
    )
    assert rdd.collect() == [*expected(8, 10), (10, -1, CREATE_TIME)]


def test_by_time_to_the_message(spark: SparkSession, timed: Topics, tmp_path: Path) -> None:
    """startingTimestamp is the first message at or after a time, endingTimestamp the one before
    which a read ends; a stream starts there too. A time behind all messages is an error, or the log
    end."""
    topic = filled(timed)
    at_3, at_6 = (str(START_MS + n * STEP_MS) for n in (3, 6))
    behind_3 = str(START_MS + 3 * STEP_MS + 1)
    exact = timed.read(spark, subscribe=topic, startingTimestamp=at_3, endingTimestamp=at_6)
    assert stamps(exact) == expected(3, 6)
    by_partition = f'{{"{topic}":{{"0":{behind_3}}}}}'
    later = timed.read(spark, subscribe=topic, startingOffsetsByTimestamp=by_partition)
    assert stamps(later) == expected(4, 10) + UNTIMED
    job = Job(spark, timed, tmp_path, subscribe=topic, startingTimestamp=behind_3)
    job.run()
    assert stamps(spark.read.parquet(str(job.output))) == expected(4, 10) + UNTIMED
    end = str(START_MS + 99 * STEP_MS)
    assert len(stamps(timed.read(spark, subscribe=topic, endingTimestamp=end))) == 11
    with pytest.raises(PySparkException, match=r"no message is later than the starting time"):
        timed.read(spark, subscribe=topic, startingTimestamp=end).collect()


def test_conditions_narrow_the_ranges(monkeypatch: pytest.MonkeyPatch, timed: Topics) -> None:
    """With pushFilters a bound of `offset` cuts the range, and a lower bound of `timestamp` skips
    the messages in front of the first that passes; Spark applies that again, since later messages
    may have earlier times. A topic without timestamps is read whole. Without Spark, whose releases
    up to 4.3 are refused."""
    monkeypatch.setattr(versions, "PYSPARK", versions.FILTERS)
    topic = filled(timed)
    append(timed, topic, [START_MS, START_MS + 20 * STEP_MS])

    def since(step: int, topic: str) -> list[OffsetRange]:
        options = {"kafka.bootstrap.servers": timed.bootstrap, "subscribe": topic}
        source = DataSource({**options, "pushFilters": "true"})
        reader = source.reader(source.schema())
        at = EPOCH + timedelta(milliseconds=START_MS + step * STEP_MS)
        by_time = GreaterThanOrEqual(("timestamp",), at)
        assert list(reader.pushFilters([by_time, LessThan(("offset",), 12)])) == [by_time]
        return [OffsetRange(*p.value) for p in reader.partitions()]

    assert since(7, topic) == [OffsetRange(topic, 0, 7, 12)]
    assert since(99, topic) == []
    untimed = filled(timed, message_format_version="0.9.0")
    assert since(7, untimed) == [OffsetRange(untimed, 0, 0, 11)]


def test_log_append_time(spark: SparkSession, timed: Topics) -> None:
    """The type is 1 and the timestamp the broker's, also of a message without one."""
    topic = filled(timed, message_timestamp_type="LogAppendTime")
    found = stamps(timed.read(spark, subscribe=topic))
    assert [kind for _, _, kind in found] == [LOG_APPEND_TIME] * 11
    assert all(time_ms is not None and time_ms > START_MS + 11 * STEP_MS for _, time_ms, _ in found)


@pytest.mark.parametrize("codec", ["none", "snappy"])
def test_writing(spark: SparkSession, timed: Topics, codec: str) -> None:
    """Rows keep the time in their column `timestamp`, to the millisecond; without one they have
    that of sending. In a topic with LogAppendTime all have the broker's."""
    topic = timed.new_topic(1)
    by_broker = timed.new_topic(1, {"message.timestamp.type": "LogAppendTime"})
    times = [*(ms for _, ms, _ in expected(0, 5)), None]
    rows = [*((topic, ms) for ms in times * 2), *[(by_broker, START_MS)] * 2]
    frame = spark.createDataFrame(rows, "topic string, ms long").coalesce(1)
    before_ms = round(time.time() * 1000)
    frame = frame.selectExpr("topic", "'v' AS value", "timestamp_millis(ms) AS timestamp")
    write(frame, timed, codec, includeTimestamp="true")
    after_ms = round(time.time() * 1000)
    found = stamps(timed.read(spark, subscribe=topic))
    assert [found[n] for n in (*range(5), *range(6, 11))] == expected(0, 5) + [
        (n + 6, ms, kind) for n, ms, kind in expected(0, 5)
    ]
    by_us = [*stamps(timed.read(spark, subscribe=by_broker)), found[5], found[11]]
    assert [kind for *_, kind in by_us] == [LOG_APPEND_TIME] * 2 + [CREATE_TIME] * 2
    assert all(ms is not None and before_ms <= ms <= after_ms for _, ms, _ in by_us)


def write(frame: DataFrame, topics: Topics, codec: str, **options: str) -> None:
    writer = frame.write.format("kafka08").mode("append").options(**options)
    writer.option("kafka.compression.type", codec)
    writer.option("kafka.bootstrap.servers", topics.bootstrap).save()


def test_a_stream_keeps_timestamps(spark: SparkSession, timed: Topics, tmp_path: Path) -> None:
    """A stream keeps them from topic to topic; a message without one gets the time of sending."""
    topic, copy = filled(timed), timed.new_topic(1)
    job = Job(spark, timed, tmp_path, subscribe=topic, startingOffsets="earliest")
    query = (
        job.source.select("value", "timestamp")
        .writeStream.format("kafka08")
        .option("kafka.bootstrap.servers", timed.bootstrap)
        .option("topic", copy)
        .option("includeTimestamp", "true")
        .option("checkpointLocation", str(job.checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(60)
    *timestamped, (_, last_ms, kind) = stamps(timed.read(spark, subscribe=copy))
    assert timestamped == expected(0, 10)
    assert kind == CREATE_TIME
    assert last_ms is not None
    assert last_ms > START_MS + 100 * STEP_MS


def test_topics_without_timestamps(spark: SparkSession, timed: Topics) -> None:
    """A topic in the format of 0.9 gives null, -1, and reads by time with the grain of segments.
    With api.version.request=false any topic does."""
    topic = filled(timed, message_format_version="0.9.0")
    nothing = [(n, None, NO_TIMESTAMP_TYPE) for n in range(11)]
    assert stamps(timed.read(spark, subscribe=topic)) == nothing
    with pytest.raises(PySparkException, match="timestampGranularity=segment"):
        timed.read(spark, subscribe=topic, startingTimestamp="5").collect()
    timeless = {"subscribe": filled(timed), "kafka.api.version.request": "false"}
    assert stamps(timed.read(spark, **timeless)) == nothing


def test_brokers_of_0_8(spark: SparkSession, brokers: Topics) -> None:
    """They close connections that send ApiVersions; reads continue without timestamps, and reads by
    time are refused."""
    topic = brokers.filled([5])
    nothing = [(n, None, NO_TIMESTAMP_TYPE) for n in range(5)]
    assert stamps(brokers.read(spark, subscribe=topic)) == nothing
    with pytest.raises(ConfigError, match=r"startingTimestamp: .*timestampGranularity=segment"):
        read_ranges(
            spark,
            {
                "kafka.bootstrap.servers": brokers.bootstrap,
                "subscribe": topic,
                "startingTimestamp": "5",
            },
        )
