"""Writes by a real Spark to a real broker, read back by a SimpleConsumer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException
from pyspark.sql.functions import current_timestamp

from kafka08.hashing import murmur2
from kafka08.kernel.types import NO_TIMESTAMP_TYPE
from kafka08.structs import EARLIEST_OFFSET, TopicPartition
from tests.spark.filling import Topics, collected, rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Message = tuple[bytes | None, bytes | None]


def stored(brokers: Topics, topic: str, partition: int) -> list[Message]:
    tp = TopicPartition(topic, partition)
    with brokers.simple_consumer() as consumer:
        start = consumer.earliest_or_latest(tp, EARLIEST_OFFSET)
        return [(m.key, m.value) for m in consumer.read_range(tp, start)]


def save(frame: DataFrame, brokers: Topics, **options: str) -> None:
    writer = frame.write.format("kafka08").mode("append")
    writer.option("kafka.bootstrap.servers", brokers.bootstrap).options(**options).save()


@pytest.mark.parametrize("codec", ["none", "snappy"])
def test_batch(spark: SparkSession, brokers: Topics, codec: str) -> None:
    """Each row is written once, by the hash of its key, also null values and strings. Brokers of
    0.8 get magic 0: they would store timestamps without knowing them."""
    topic = brokers.new_topic(3)
    frame = spark.createDataFrame(
        [(f"k{at}", None if at % 10 == 3 else f"värde {at}") for at in range(200)],
        "key string, value string",
    ).withColumn("timestamp", current_timestamp())
    save(frame, brokers, topic=topic, **{"kafka.compression.type": codec})
    for partition in range(3):
        expected = [
            (key, None if at % 10 == 3 else f"värde {at}".encode())
            for at in range(200)
            if (murmur2(key := b"k%d" % at) & 0x7FFFFFFF) % 3 == partition
        ]
        assert sorted(stored(brokers, topic, partition)) == sorted(expected)
        with brokers.simple_consumer() as consumer:
            read = consumer.read_range(TopicPartition(topic, partition), 0)
            assert {message.timestamp_type for message in read} == {NO_TIMESTAMP_TYPE}


def test_a_copy_is_the_same(spark: SparkSession, brokers: Topics) -> None:
    """Rows that were read can be written: keys, nulls, partitions and their order stay."""
    topic = brokers.filled([300, 200], codec=-1)
    copy = brokers.new_topic(2)
    source = brokers.read(spark, subscribe=topic)
    save(source.select("partition", "key", "value"), brokers, topic=copy)
    assert collected(brokers.read(spark, subscribe=copy)) == rows_of(0, 0, 300) + rows_of(1, 0, 200)


def test_topics_by_column(spark: SparkSession, brokers: Topics) -> None:
    """Each row goes to the topic in its column, with small sets and acks 1."""
    first, second = brokers.new_topic(1), brokers.new_topic(1)
    rows = [(first if at % 2 else second, f"{at}") for at in range(20)]
    frame = spark.createDataFrame(rows, "topic string, value string").coalesce(1)
    save(frame, brokers, **{"kafka.batch.size": "60", "kafka.acks": "1"})
    assert stored(brokers, first, 0) == [(None, b"%d" % at) for at in range(1, 20, 2)]
    assert stored(brokers, second, 0) == [(None, b"%d" % at) for at in range(0, 20, 2)]


def test_stream(spark: SparkSession, brokers: Topics, tmp_path: Path) -> None:
    """A stream copies one topic into another."""
    topic = brokers.filled([50])
    copy = brokers.new_topic(1)
    query = (
        spark.readStream.format("kafka08")
        .options(
            **{
                "kafka.bootstrap.servers": brokers.bootstrap,
                "subscribe": topic,
                "startingOffsets": "earliest",
            }
        )
        .load()
        .select("key", "value")
        .writeStream.format("kafka08")
        .option("kafka.bootstrap.servers", brokers.bootstrap)
        .option("topic", copy)
        .option("checkpointLocation", str(tmp_path))
        .queryName(f"copy-of-{topic}")
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(60)
    assert stored(brokers, copy, 0) == [(key, value) for *_, key, value in rows_of(0, 0, 50)]


@pytest.mark.parametrize("brokers", ["ours"], indirect=True)
def test_brokers_are_found_through_zookeeper(spark: SparkSession, brokers: Topics) -> None:
    """`zookeeper.connect` alone is enough to write, and to read the rows again."""
    topic = brokers.new_topic(1)
    found = {"zookeeper.connect": brokers.zookeeper}
    frame = spark.createDataFrame([("k", "v")], "key string, value string")
    frame.write.format("kafka08").mode("append").options(topic=topic, **found).save()
    read = spark.read.format("kafka08").options(subscribe=topic, **found).load()
    assert collected(read) == [(0, 0, b"k", b"v")]


@pytest.mark.parametrize("brokers", ["ours"], indirect=True)
def test_refusals(spark: SparkSession, brokers: Topics) -> None:
    """Wrong columns, modes and rows are errors."""
    topic = brokers.new_topic(1)
    value = spark.sql("SELECT 'x' AS value")
    with pytest.raises(PySparkException, match="there is no column value among key"):
        save(spark.sql("SELECT 'x' AS key"), brokers, topic=topic)
    with pytest.raises(PySparkException, match="value must be string or binary, not int"):
        save(spark.sql("SELECT 1 AS value"), brokers, topic=topic)
    timed = spark.sql("SELECT 'x' AS value, 5L AS timestamp")
    with pytest.raises(PySparkException, match="timestamp must be timestamp, not bigint"):
        save(timed, brokers, topic=topic, includeTimestamp="true")
    with pytest.raises(PySparkException, match="no topic: set the option topic"):
        save(value, brokers)
    with pytest.raises(PySparkException, match=r"partition 7 of topic .* which has 0 to 0"):
        save(spark.sql("SELECT 'x' AS value, 7 AS partition"), brokers, topic=topic)
    with pytest.raises(PySparkException, match="a topic can only be appended to"):
        value.write.format("kafka08").mode("overwrite").options(
            **{"kafka.bootstrap.servers": brokers.bootstrap, "topic": topic}
        ).save()
    large = spark.sql("SELECT repeat('x', 2000000) AS value")
    with pytest.raises(PySparkException, match=r"MessageSizeTooLarge \(10\): \[.*,0\]"):
        save(large, brokers, topic=topic)
    assert stored(brokers, topic, 0) == []
