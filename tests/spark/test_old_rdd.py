"""createRDD as streaming-kafka-0-8 had it (pyspark.streaming.kafka 2.4), one import changed."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from kafka08.arrow.data_loss import DataLost
from kafka08.arrow.log_offsets import LogOffsets
from kafka08.arrow.ranges import OffsetRange as Range
from kafka08.client.bootstrap import parse_bootstrap
from kafka08.errors import ConfigError
from kafka08.spark.kafka import (
    Broker,
    KafkaMessageAndMetadata,
    KafkaUtils,
    OffsetRange,
    TopicAndPartition,
    utf8_decoder,
)
from kafka08.spark.old_cluster import OldCluster
from kafka08.structs import TopicPartition
from tests.arrow.logs import SETTINGS, T0, LogCluster
from tests.spark.filling import Topics, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def text(field: bytes | None) -> str | None:
    return None if field is None else field.decode()


def expected(partition: int, start: int, until: int) -> list[tuple[str | None, str | None]]:
    return [(text(key), text(value)) for _, _, key, value in rows_of(partition, start, until)]


def test_values() -> None:
    """OffsetRange is equal by its four fields, TopicAndPartition hashable, utf8_decoder keeps
    None."""
    wanted = OffsetRange("t", 1, 5, 9)
    assert wanted == OffsetRange("t", 1, fromOffset=5, untilOffset=9)
    assert wanted != OffsetRange("t", 1, 5, 8)
    assert (wanted.topic, wanted.partition, wanted.fromOffset, wanted.untilOffset) == (
        "t",
        1,
        5,
        9,
    )
    assert {TopicAndPartition("t", 0): 1}[TopicAndPartition("t", 0)] == 1
    assert TopicAndPartition("t", 0) != TopicAndPartition("t", 1)
    assert Broker("h", 1) == Broker("h", 1)
    assert utf8_decoder(None) is None
    assert utf8_decoder("ä".encode()) == "ä"


def test_message_decodes_on_access() -> None:
    """Each access to key and message calls their decoder; the other fields are plain."""
    seen: list[Any] = []
    message = KafkaMessageAndMetadata("t", 1, 2, b"k", None, seen.append, utf8_decoder)
    assert (message.topic, message.partition, message.offset) == ("t", 1, 2)
    assert seen == []
    assert message.message is None
    assert message.key is None
    assert seen == [b"k"]


def test_arguments_are_checked(spark: SparkSession) -> None:
    """Wrong arguments are a TypeError as in 2.4; the error without a broker says which argument is
    missing."""
    sc = spark.sparkContext
    with pytest.raises(TypeError, match="kafkaParams should be dict"):
        KafkaUtils.createRDD(sc, [], [])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="offsetRanges should be list"):
        KafkaUtils.createRDD(sc, {}, ())  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"metadata\.broker\.list or bootstrap\.servers"):
        KafkaUtils.createRDD(sc, {}, [])


def test_rdd(spark: SparkSession, brokers: Topics) -> None:
    """Decoded pairs, one Spark partition per range in list order, ranges kept."""
    topic = brokers.filled([40, 30], codec=-1)
    ranges = [
        OffsetRange(topic, 1, 3, 9),
        OffsetRange(topic, 0, 5, 5),
        OffsetRange(topic, 0, 0, 35),
        OffsetRange(topic, 1, 9, 12),
    ]
    params = {"metadata.broker.list": brokers.bootstrap, "bootstrap.servers": "nowhere:1"}
    rdd = KafkaUtils.createRDD(spark.sparkContext, params, ranges)
    assert rdd.offsetRanges() == ranges
    assert rdd.getNumPartitions() == 4
    assert rdd.glom().collect() == [
        expected(1, 3, 9),
        [],
        expected(0, 0, 35),
        expected(1, 9, 12),
    ]


def test_handler_and_decoders(spark: SparkSession, brokers: Topics) -> None:
    """A handler sees topic, partition and offset; decoders run in the worker, on None too."""
    topic = brokers.filled([8])
    rdd = KafkaUtils.createRDD(
        spark.sparkContext,
        {"bootstrap.servers": brokers.bootstrap},
        [OffsetRange(topic, 0, 4, 8)],
        keyDecoder=lambda key: key is None,
        valueDecoder=lambda value: value,
        messageHandler=lambda m: (m.topic, m.partition, m.offset, m.key, m.message),
    )
    assert rdd.collect() == [
        (topic, 0, offset, key is None, value) for _, offset, key, value in rows_of(0, 4, 8)
    ]


def test_counts_come_from_the_ranges(spark: SparkSession, brokers: Topics) -> None:
    """count and isEmpty run no job; take reads only the partitions that it needs."""
    topic = brokers.filled([20, 20])
    ranges = [OffsetRange(topic, 0, 2, 2), OffsetRange(topic, 0, 5, 8), OffsetRange(topic, 1, 0, 9)]
    sc = spark.sparkContext
    rdd = KafkaUtils.createRDD(sc, {"bootstrap.servers": brokers.bootstrap}, ranges)
    tracker = sc.statusTracker()
    sc.setJobGroup(f"count {topic}", "")
    assert rdd.count() == 12
    assert not rdd.isEmpty()
    assert list(tracker.getJobIdsForGroup(f"count {topic}")) == []
    sc.setJobGroup(f"take {topic}", "")
    assert rdd.take(0) == []
    assert rdd.take(2) == expected(0, 5, 7)
    assert len(tracker.getJobIdsForGroup(f"take {topic}")) == 1
    assert rdd.take(5) == expected(0, 5, 8) + expected(1, 0, 2)
    assert rdd.take(100) == expected(0, 5, 8) + expected(1, 0, 9)
    assert rdd.map(lambda pair: pair[1]).count() == 12
    empty = KafkaUtils.createRDD(sc, {"bootstrap.servers": brokers.bootstrap}, ranges[:1])
    assert empty.isEmpty()


def test_locality(spark: SparkSession, brokers: Topics) -> None:
    """A task prefers the leader's host; given leaders are not looked up."""
    topic = brokers.filled([5])
    ((host, port),) = parse_bootstrap(brokers.bootstrap)
    params, ranges = {"bootstrap.servers": brokers.bootstrap}, [OffsetRange(topic, 0, 0, 5)]
    found = KafkaUtils.createRDD(spark.sparkContext, params, ranges)
    given = KafkaUtils.createRDD(
        spark.sparkContext, params, ranges, {TopicAndPartition(topic, 0): Broker("localhost", port)}
    )
    assert preferred(found) == [[host]]
    assert preferred(given) == [["localhost"]]
    assert given.collect() == expected(0, 0, 5)


def preferred(rdd: Any) -> list[list[str]]:
    """Where Spark's scheduler would like to run each task."""
    context, scala_rdd = rdd.ctx._jsc.sc(), rdd._jrdd.rdd()
    return [
        [location.toString() for location in _sequence(context.getPreferredLocs(scala_rdd, number))]
        for number in range(rdd.getNumPartitions())
    ]


def _sequence(seq: Any) -> list[Any]:
    return [seq.apply(i) for i in range(seq.size())]


def test_ranges_are_checked_on_the_driver(spark: SparkSession, brokers: Topics) -> None:
    """Missing ranges are an error before any task, which lists each."""
    topic = brokers.filled([5])
    ranges = [OffsetRange(topic, 0, 0, 6), OffsetRange(topic, 0, 0, 5), OffsetRange(topic, 9, 0, 1)]
    with pytest.raises(DataLost, match=r"Offsets not available on leader: .*,0\] \[0, 6\).*,9\]"):
        KafkaUtils.createRDD(spark.sparkContext, {"bootstrap.servers": brokers.bootstrap}, ranges)


def test_a_high_watermark_that_lags_is_no_fault() -> None:
    """A range is not missing if the leader, just elected, does not show all of it yet."""
    cluster = LogCluster({"t": {0: 1}})
    cluster.write(T0, [(None, b"v")] * 100)
    cluster.shapes[T0].visible = 90
    old: Any = SimpleNamespace(offsets=LogOffsets(cluster.client, SETTINGS), deadline=nullcontext)
    OldCluster.check(old, [Range("t", 0, 50, 100), Range("t", 0, 95, 95)])
    with pytest.raises(DataLost, match=r"\[50, 101\): only \[0, 100\) is there"):
        OldCluster.check(old, [Range("t", 0, 50, 101)])


def test_large_messages(spark: SparkSession, brokers: Topics) -> None:
    """A message larger than fetch.message.max.bytes is read."""
    topic = brokers.filled([3])
    brokers.produce(TopicPartition(topic, 0), [(None, b"x" * 100_000)])
    rdd = KafkaUtils.createRDD(
        spark.sparkContext,
        {"bootstrap.servers": brokers.bootstrap, "fetch.message.max.bytes": "500"},
        [OffsetRange(topic, 0, 0, 4)],
    )
    assert rdd.map(lambda pair: len(pair[1] or "")).collect() == [3, 3, 3, 100_000]


def test_an_rdd_of_nothing_has_no_partitions(spark: SparkSession) -> None:
    """As in 2.4. (It used to have one, and so a task.)"""
    params = {"metadata.broker.list": "b1:9092", "api.version.request": "false"}
    rdd = KafkaUtils.createRDD(spark.sparkContext, params, [])
    assert rdd.getNumPartitions() == 0
    assert rdd.collect() == []
