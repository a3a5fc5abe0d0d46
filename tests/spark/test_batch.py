"""Batch reads by a real Spark from a real broker: rows as sets of (partition, offset, key, value).

A count alone would not tell a message that is missing from another that came twice.
"""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException

from kafka08.client.requests import StorageName
from kafka08.spark import OffsetRange, ranges_to_json
from kafka08.structs import TopicPartition
from tests.spark.filling import Topics, collected, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_spark_finds_the_source_by_itself(spark: SparkSession) -> None:
    """A session without `register` finds the source by the name of the package pyspark_kafka08."""
    seen = subprocess.run(
        [sys.executable, "-c", "import pkgutil; print([m.name for m in pkgutil.iter_modules()])"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    if "pyspark_kafka08" not in seen:
        pytest.skip("installed with -e, which Spark's search does not see: run in the checkout")
    frame = spark.newSession().read.format("kafka08").option("subscribe", "t").load()
    assert "timestampType" in frame.columns


def test_exact_ranges(spark: SparkSession, brokers: Topics) -> None:
    """offsetRanges over sets of every codec gives the rows of the ranges, one task each, a
    partition as often as it is listed; an empty range needs no task."""
    topic = brokers.filled([400, 300], codec=-1)
    ranges = [
        OffsetRange(topic, 0, 3, 3),
        OffsetRange(topic, 0, 5, 128),
        OffsetRange(topic, 1, 0, 300),
        OffsetRange(topic, 0, 131, 132),
    ]
    frame = brokers.read(spark, offsetRanges=ranges_to_json(ranges))
    assert frame.rdd.getNumPartitions() == 3
    assert collected(frame) == sorted(
        rows_of(0, 5, 128) + rows_of(0, 131, 132) + rows_of(1, 0, 300)
    )


def test_columns(spark: SparkSession, brokers: Topics) -> None:
    """A frame has all columns with the names and types of Spark's connector; timestamps are null,
    of type -1."""
    topic = brokers.filled([2])
    frame = brokers.read(spark, subscribe=topic, includeHeaders="true")
    assert frame.schema.simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,"
        "timestamp:timestamp,timestampType:int,"
        "headers:array<struct<key:string,value:binary>>>"
    )
    assert all(field.nullable for field in frame.schema)
    row = frame.where("offset = 1").first()
    assert row is not None
    assert row.asDict() == {
        "key": bytearray(b"key-1"),
        "value": bytearray(b"0-1"),
        "topic": topic,
        "partition": 0,
        "offset": 1,
        "timestamp": None,
        "timestampType": -1,
        "headers": None,
    }


def test_schema_prunes(spark: SparkSession, brokers: Topics) -> None:
    """A user's schema leaves columns out; a wrong name or type is a ConfigError."""
    topic = brokers.filled([5])
    reader = spark.read.format("kafka08").options(
        **{"kafka.bootstrap.servers": brokers.bootstrap, "subscribe": topic}
    )
    frame = reader.schema("offset long, value binary").load()
    assert [(row.offset, row.value) for row in frame.collect()] == [
        (offset, value) for _, offset, _, value in rows_of(0, 0, 5)
    ]
    with pytest.raises(PySparkException, match="there is no column valu"):
        reader.schema("valu binary").load().collect()
    with pytest.raises(PySparkException, match="value is binary, not string"):
        reader.schema("value string").load().collect()


@pytest.mark.parametrize("how", ["subscribe", "subscribePattern", "assign"])
def test_subscriptions(spark: SparkSession, brokers: Topics, how: str) -> None:
    """By name, pattern or partition, from the earliest to the latest offset by default."""
    topic = brokers.filled([20, 30])
    what = {
        "subscribe": topic,
        "subscribePattern": f"{topic[:-1]}[{topic[-1]}]",
        "assign": f'{{"{topic}":[0,1]}}',
    }
    frame = brokers.read(spark, **{how: what[how]})
    assert collected(frame) == rows_of(0, 0, 20) + rows_of(1, 0, 30)


def test_start_and_end(spark: SparkSession, brokers: Topics) -> None:
    """Offsets are given for each partition, -2 and -1 for the ends; the map must be complete."""
    topic = brokers.filled([20, 30])
    frame = brokers.read(
        spark,
        subscribe=topic,
        startingOffsets=f'{{"{topic}":{{"0":5,"1":-2}}}}',
        endingOffsets=f'{{"{topic}":{{"0":-1,"1":7}}}}',
    )
    assert collected(frame) == rows_of(0, 5, 20) + rows_of(1, 0, 7)
    with pytest.raises(PySparkException, match="startingOffsets must name exactly"):
        brokers.read(spark, subscribe=topic, startingOffsets=f'{{"{topic}":{{"0":5}}}}').collect()


def test_cluster_by_zookeeper(spark: SparkSession, brokers: Topics) -> None:
    """zookeeper.connect replaces the brokers' addresses."""
    topic = brokers.filled([3])
    reader = spark.read.format("kafka08").option("zookeeper.connect", brokers.zookeeper)
    assert collected(reader.option("subscribe", topic).load()) == rows_of(0, 0, 3)


def test_splitting(spark: SparkSession, brokers: Topics) -> None:
    """minPartitions and maxRecordsPerPartition change the tasks, not the rows."""
    topic = brokers.filled([300, 30], codec=-1)
    frame = brokers.read(spark, subscribe=topic, minPartitions="7")
    assert frame.rdd.getNumPartitions() >= 7
    assert collected(frame) == rows_of(0, 0, 300) + rows_of(1, 0, 30)
    frame = brokers.read(spark, subscribe=topic, maxRecordsPerPartition="50")
    assert frame.rdd.getNumPartitions() == 7
    assert collected(frame) == rows_of(0, 0, 300) + rows_of(1, 0, 30)


def test_a_frame_is_a_snapshot(spark: SparkSession, brokers: Topics) -> None:
    """One load() plans once, and does not read later messages."""
    topic = brokers.filled([10])
    frame = brokers.read(spark, subscribe=topic)
    assert frame.count() == 10
    brokers.append(topic, 0, 5)
    assert frame.count() == 10
    assert brokers.read(spark, subscribe=topic).count() == 15


def test_queries_of_one_frame_do_not_mix(spark: SparkSession, brokers: Topics) -> None:
    """A frame that is filtered, united with itself, and read as a whole gives each query its own
    rows."""
    topic = brokers.filled([100, 7])
    frame = brokers.read(spark, subscribe=topic)
    first, second = frame.where("partition = 0"), frame.where("partition = 1")
    assert collected(first) == rows_of(0, 0, 100)
    assert collected(frame) == rows_of(0, 0, 100) + rows_of(1, 0, 7)
    assert collected(first.union(second)) == rows_of(0, 0, 100) + rows_of(1, 0, 7)


def test_large_messages(spark: SparkSession, brokers: Topics) -> None:
    """Messages larger than a fetch are read whole."""
    topic = brokers.filled([5])
    values = [b"x" * 200_000, b"y", b"z" * 300_000]
    for value in values:
        brokers.produce(TopicPartition(topic, 0), [(None, value)])
    options = {"subscribe": topic, "kafka.fetch.message.max.bytes": "1000"}
    rows = collected(brokers.read(spark, **options))
    assert rows[:5] == rows_of(0, 0, 5)
    assert [row[3] for row in rows[5:]] == values
    with pytest.raises(PySparkException, match=r"offset 5 has 200026 bytes, more than the 1500"):
        brokers.read(spark, maxFetchBytes="1500", **options).collect()


def test_missing_ranges_and_topics(spark: SparkSession, brokers: Topics) -> None:
    """A range beyond the log is an error that lists all of it, or is cut; reading a missing topic
    does not create it."""
    topic = brokers.filled([10])
    ranges = ranges_to_json([OffsetRange(topic, 0, 5, 50)])
    with pytest.raises(PySparkException, match=r"\[5, 50\): only \[0, 10\) is there"):
        brokers.read(spark, offsetRanges=ranges).collect()
    lenient = brokers.read(spark, offsetRanges=ranges, failOnDataLoss="false")
    assert collected(lenient) == rows_of(0, 5, 10)
    with pytest.raises(PySparkException, match=f"{topic}-no"):
        brokers.read(spark, subscribe=f"{topic}-no").collect()
    assert f"{topic}-no" not in brokers.client.refresh().topics


@pytest.mark.parametrize("storage", ["zookeeper", "kafka"])
def test_committed_offsets(spark: SparkSession, brokers: Topics, storage: StorageName) -> None:
    """startingOffsets=committed starts at a group's offsets, in either store."""
    topic = brokers.filled([20, 20])
    group = f"group-of-{topic}"
    with brokers.simple_consumer() as consumer:
        consumer.commit_offsets(group, {TopicPartition(topic, 0): 7}, storage=storage)
    options = {
        "subscribe": topic,
        "startingOffsets": "committed",
        "kafka.group.id": group,
        "kafka.offsets.storage": storage,
    }
    with pytest.raises(PySparkException, match=r"has no committed offset in .* for \[.*,1\]"):
        brokers.read(spark, **options).collect()
    frame = brokers.read(spark, committedFallback="earliest", **options)
    assert collected(frame) == rows_of(0, 7, 20) + rows_of(1, 0, 20)


def test_sql_view(spark: SparkSession, brokers: Topics) -> None:
    """A temporary view carries its options; a permanent table's do not arrive, and the error says
    what to write."""
    topic = brokers.filled([4])
    view = f"view_{topic.replace('-', '_')}"
    spark.sql(
        f"CREATE TEMPORARY VIEW {view} USING kafka08 OPTIONS "
        f"('kafka.bootstrap.servers' '{brokers.bootstrap}', 'subscribe' '{topic}')"
    )
    assert spark.sql(f"SELECT count(*) FROM {view}").first() == (4,)
    with pytest.raises(PySparkException, match="CREATE TEMPORARY VIEW"):
        spark.read.format("kafka08").load().collect()


def test_unknown_options_are_refused(spark: SparkSession, brokers: Topics) -> None:
    """A misspelt limit is an error instead of reading everything."""
    with pytest.raises(PySparkException, match="unknown option minpartition;"):
        brokers.read(spark, subscribe="t", minPartition="5").collect()
