"""createDirectStream and createStream as streaming-kafka-0-8 had them."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from kafka08.arrow.data_loss import DataLost
from kafka08.arrow.log_offsets import LogOffsets
from kafka08.errors import ClientError, ConfigError, LeaderNotAvailable, UnknownTopicOrPartition
from kafka08.spark import dstream
from kafka08.spark.dstream import (
    CONCURRENT_JOBS,
    KEPT_BATCHES,
    Batches,
    GroupCommitter,
    KafkaDStream,
    clamped,
    group_starts,
    group_stream,
    since_1970_ms,
)
from kafka08.spark.kafka import KafkaUtils, OffsetRange, TopicAndPartition
from kafka08.spark.old_cluster import OldCluster
from kafka08.spark.rates import BACKPRESSURE
from kafka08.structs import TopicPartition
from tests.arrow.logs import SETTINGS, T0, LogCluster
from tests.spark.filling import Topics, rows_of
from tests.waiting import until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.streaming import StreamingContext

BATCH_S = 1
NOT_ASKED = {"api.version.request": "false"}
"""With this no broker is asked before something is read."""


@pytest.fixture
def ssc(spark: SparkSession) -> Iterator[StreamingContext]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # DStreams are deprecated, not gone
        from pyspark.streaming import StreamingContext

        context = StreamingContext(spark.sparkContext, BATCH_S)
    yield context
    context.stop(stopSparkContext=False, stopGraceFully=False)


def into(seen: list[Any]) -> Callable[[Any], None]:
    return lambda rdd: seen.extend(rdd.collect())


@pytest.mark.parametrize(
    ("start", "latest", "limit", "end"),
    [(5, 9, None, 9), (5, 9, 2, 7), (5, 9, 10, 9), (5, 5, None, 5), (5, 5, 2, 5)],
)
def test_end_of_an_interval(start: int, latest: int, limit: int | None, end: int) -> None:
    """An interval ends at the latest offset or the limit."""
    assert clamped(start, latest, limit) == end


def test_direct_stream(spark: SparkSession, ssc: StreamingContext, brokers: Topics) -> None:
    """Each message comes once, from the given offsets on; foreachRDD and transform get the
    ranges."""
    topic = brokers.filled([20, 10])
    start = {TopicAndPartition(topic, 0): 15, TopicAndPartition(topic, 1): 0}
    params = {"metadata.broker.list": brokers.bootstrap}
    stream = KafkaUtils.createDirectStream(
        ssc,
        [topic],
        params,
        fromOffsets=start,
        keyDecoder=lambda key: key,
        valueDecoder=lambda value: value,
        messageHandler=lambda m: (m.partition, m.offset, m.key, m.message),
    )
    rows: list[Any] = []
    ranges: list[OffsetRange] = []
    transformed: list[OffsetRange] = []

    def keep(rdd: Any) -> None:
        ranges.extend(r for r in rdd.offsetRanges() if r.size)
        rows.extend(rdd.collect())

    def count(_: Any, rdd: Any) -> Any:
        transformed.extend(r for r in rdd.offsetRanges() if r.size)
        return rdd.map(lambda row: row[1])

    stream.foreachRDD(keep)
    offsets: list[int] = []
    stream.transform(count).foreachRDD(lambda rdd: offsets.extend(rdd.collect()))
    ssc.start()
    until(lambda: len(offsets) == 15, "what was there")
    brokers.append(topic, 1, 5)
    until(lambda: len(offsets) == 20, "what came later")
    assert sorted(rows) == rows_of(0, 15, 20) + rows_of(1, 0, 15)
    assert sorted(offsets) == sorted([*range(15, 20), *range(15)])
    assert sorted(ranges) == sorted(transformed)
    assert sum(r.size for r in ranges) == 20


def test_smallest(spark: SparkSession, ssc: StreamingContext, brokers: Topics) -> None:
    """Without offsets, auto.offset.reset=smallest starts at the earliest, else at the latest."""
    topic = brokers.filled([6])
    params = {"metadata.broker.list": brokers.bootstrap, "auto.offset.reset": "smallest"}
    values: dict[str, list[Any]] = {"smallest": [], "largest": []}
    for reset, seen in values.items():
        stream = KafkaUtils.createDirectStream(ssc, [topic], {**params, "auto.offset.reset": reset})
        stream.map(lambda pair: pair[1]).foreachRDD(into(seen))
    ssc.start()
    until(lambda: len(values["smallest"]) == 6, "the earliest messages")
    brokers.append(topic, 0, 2)
    until(lambda: len(values["largest"]) == 2, "new messages")
    until(lambda: len(values["smallest"]) == 8, "new messages")


def test_group_stream(spark: SparkSession, ssc: StreamingContext, brokers: Topics) -> None:
    """createStream starts at the group's offsets in ZooKeeper and commits finished intervals."""
    topic = brokers.filled([10])
    group = f"group-of-{topic}"
    tp = TopicPartition(topic, 0)
    with brokers.simple_consumer() as consumer:
        consumer.commit_offsets(group, {tp: 4})
        seen: list[Any] = []
        stream = KafkaUtils.createStream(ssc, brokers.zookeeper, group, {topic: 1})
        stream.foreachRDD(lambda rdd: seen.extend(rdd.collect()))
        ssc.start()
        until(lambda: len(seen) == 6, "the messages behind the group's offset")
        until(lambda: consumer.fetch_offsets(group, [tp])[tp].offset == 10, "the commit")
    assert [value for _, value in seen] == [
        None if value is None else value.decode() for *_, value in rows_of(0, 4, 10)
    ]


@pytest.mark.parametrize(
    ("committed", "start"), [(None, 9), (4, 4), (2, 2), (8, 8), (1, 9), (1000, 9)]
)
def test_where_a_group_continues(committed: int | None, start: int) -> None:
    """At its committed offset if the log [2, 8) has it, else where auto.offset.reset says."""
    tp = TopicPartition("t", 0)
    stored = {} if committed is None else {tp: committed}
    assert group_starts(stored, {tp: 2}, {tp: 8}, {tp: 9}) == {tp: start}


def test_a_partition_that_was_added_while_a_stream_was_down() -> None:
    """It is read from its earliest offset, whatever auto.offset.reset says: the group has read its
    topic before. (It used to begin at the log's end.)"""
    old, added, other = T0, TopicPartition("t", 1), TopicPartition("u", 0)
    starts = dict.fromkeys([old, added, other], 2)
    ends = dict.fromkeys([old, added, other], 8)
    assert group_starts({old: 5}, starts, ends, ends) == {old: 5, added: 2, other: 8}


class OldGroup:
    """createStream of topic t for a group, up to where Spark would begin its intervals.

    committed   the offsets of the group
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, brokers: LogCluster, reset: str) -> None:
        self.committed: dict[TopicPartition, int] = {}
        monkeypatch.setattr(dstream, "committed_only", lambda *_: dict(self.committed))
        monkeypatch.setattr(dstream, "commit_offsets", self._commit)
        monkeypatch.setattr(dstream, "_stream", lambda _, batches, *__: batches)
        params = {"bootstrap.servers": "b1:9092", "auto.offset.reset": reset, **NOT_ASKED}
        self._cluster = OldCluster(params, ["t"])
        self._cluster.client = brokers.client
        self._cluster.offsets = LogOffsets(brokers.client, SETTINGS)
        monkeypatch.setattr(self._cluster, "rdd", lambda _, ranges, __: ranges_of(ranges))

    def _commit(self, _: object, __: str, ends: dict[TopicPartition, int], ___: str) -> None:
        self.committed |= ends

    def start(self) -> Batches:
        batches: Any = group_stream(spark_free(), ["t"], self._cluster, "g", lambda m: m)
        return batches  # type: ignore[no-any-return]


def ranges_of(ranges: list[OffsetRange]) -> Any:
    return SimpleNamespace(offsetRanges=lambda: ranges)


def spark_free() -> Any:
    """A StreamingContext for Batches, with intervals of a second."""
    duration = SimpleNamespace(milliseconds=lambda: 1000)
    graph = SimpleNamespace(batchDuration=lambda: duration)
    java = SimpleNamespace(ssc=lambda: SimpleNamespace(graph=lambda: graph))
    return SimpleNamespace(sparkContext=SimpleNamespace(getConf=dict), _jssc=java)


def interval(batches: Batches, number: int) -> list[OffsetRange]:
    """The ranges of an interval that have messages."""
    rdd = batches.at(datetime.fromtimestamp(1_800_000_000 + number))
    return [r for r in rdd.offsetRanges() if r.size]


def test_a_group_ahead_of_the_high_watermark(monkeypatch: pytest.MonkeyPatch) -> None:
    """A group whose committed offset the leader, just elected, does not show yet continues there
    instead of at its reset."""
    brokers = LogCluster({"t": {0: 1}})
    brokers.write(T0, [(None, b"v")] * 100)
    brokers.shapes[T0].visible = 90
    group = OldGroup(monkeypatch, brokers, "smallest")
    group.committed = {T0: 100}
    batches = group.start()
    assert batches.next_offsets == {T0: 100}
    assert interval(batches, 0) == []


def test_a_group_stores_its_start_before_the_first_interval(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If the output of the first interval fails, the next start reads its messages again. (A group
    without a commit used to start at the new log end.)"""
    brokers = LogCluster({"t": {0: 1}})
    brokers.write(T0, [(None, b"v")] * 100)
    group = OldGroup(monkeypatch, brokers, "largest")
    batches = group.start()
    brokers.write(T0, [(None, b"v")] * 50)
    lost = interval(batches, 0)
    assert lost == [OffsetRange("t", 0, 100, 150)]
    assert interval(group.start(), 0) == lost


def test_an_offset_that_the_log_lacks_is_replaced_before_the_first_interval(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The same for a group whose committed offset retention has passed."""
    brokers = LogCluster({"t": {0: 1}})
    brokers.write(T0, [(None, b"v")] * 100)
    brokers.trim(T0, 50)
    group = OldGroup(monkeypatch, brokers, "largest")
    group.committed = {T0: 10}
    group.start()
    brokers.write(T0, [(None, b"v")] * 50)
    assert interval(group.start(), 0) == [OffsetRange("t", 0, 100, 150)]


def test_the_start_of_a_new_partition_is_stored_before_its_first_interval(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Retention may delete its first messages before a failed interval is read again: then the next
    start says so, instead of starting behind them."""
    brokers = LogCluster({"t": {0: 1}})
    added = TopicPartition("t", 1)
    group = OldGroup(monkeypatch, brokers, "largest")
    batches = group.start()
    brokers.add(added, 2)
    brokers.write(added, [(None, b"v")] * 30)
    assert interval(batches, 0) == [OffsetRange("t", 1, 0, 30)]
    assert group.committed == {T0: 0, added: 0}


def test_a_log_that_ends_before_the_stream_is_data_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """A topic that was recreated, or cut, while a stream reads it: each interval fails until the
    stream is started again. (It used to wait until the log was as long as before, and went on
    there.)"""
    brokers = LogCluster({"t": {0: 1}})
    brokers.write(T0, [(None, b"v")] * 50)
    batches = OldGroup(monkeypatch, brokers, "smallest").start()
    assert interval(batches, 0) == [OffsetRange("t", 0, 0, 50)]
    brokers.clear(T0)
    brokers.write(T0, [(None, b"v")] * 15)
    for number in (1, 2):
        with pytest.raises(DataLost, match=r"\[t,0\] \[15, 50\): only \[0, 15\) is there"):
            interval(batches, number)


@pytest.mark.parametrize("brokers", ["ours"], indirect=True)
def test_a_group_behind_the_log(ssc: StreamingContext, brokers: Topics) -> None:
    """An offset outside the log (of a recreated topic) is reset, as by the high-level consumer."""
    topic = brokers.filled([10])
    group = f"group-of-{topic}"
    with brokers.simple_consumer() as consumer:
        consumer.commit_offsets(group, {TopicPartition(topic, 0): 1000})
    seen: list[Any] = []
    reset = {"auto.offset.reset": "smallest"}
    KafkaUtils.createStream(ssc, brokers.zookeeper, group, {topic: 1}, reset).foreachRDD(into(seen))
    ssc.start()
    until(lambda: len(seen) == 10, "the log from its start")


@pytest.mark.parametrize("brokers", ["ours"], indirect=True)
def test_a_group_finds_new_partitions(ssc: StreamingContext, brokers: Topics) -> None:
    """New partitions are read from their earliest offset, as by the high-level consumer."""
    topic = brokers.filled([3])
    seen: list[Any] = []
    stream = KafkaUtils.createStream(ssc, brokers.zookeeper, f"group-of-{topic}", {topic: 1})
    stream.foreachRDD(into(seen))
    ssc.start()
    brokers.add_partition(topic, 1)
    brokers.append(topic, 1, 5)
    until(lambda: len(seen) == 5, "the messages of the new partition")


@pytest.mark.parametrize("brokers", ["ours"], indirect=True)
def test_a_failed_interval_is_not_committed(ssc: StreamingContext, brokers: Topics) -> None:
    """Nor is any later interval, though Spark continues: the next start reads its messages
    again."""
    topic = brokers.filled([10])
    group = f"group-of-{topic}"
    tp = TopicPartition(topic, 0)
    calls: list[int] = []

    def fail_once(rdd: Any) -> None:
        calls.append(rdd.count())
        if sum(calls) == 6 and calls[-1]:
            brokers.append(topic, 0, 2)
            raise RuntimeError("the database is down")

    with brokers.simple_consumer() as consumer:
        consumer.commit_offsets(group, {tp: 4})
        KafkaUtils.createStream(ssc, brokers.zookeeper, group, {topic: 1}).foreachRDD(fail_once)
        ssc.start()
        until(lambda: sum(calls) == 8, "the interval after the failed one")
        until(lambda: calls[-2:] == [0, 0], "two more intervals")
        assert consumer.fetch_offsets(group, [tp])[tp].offset == 4


@pytest.fixture
def two_at_once(spark: SparkSession) -> Iterator[None]:
    """Two intervals may run at the same time."""
    conf: Any = spark.sparkContext._conf
    conf.set(CONCURRENT_JOBS, "2")
    yield
    conf._jconf.remove(CONCURRENT_JOBS)


@pytest.mark.usefixtures("two_at_once")
@pytest.mark.parametrize("brokers", ["ours"], indirect=True)
def test_an_early_interval_waits_for_its_commit(ssc: StreamingContext, brokers: Topics) -> None:
    """With two intervals at once, the end of the second one is not committed while the first one
    runs."""
    topic = brokers.filled([10])
    group = f"group-of-{topic}"
    tp = TopicPartition(topic, 0)
    released, calls = threading.Event(), list[int]()

    def block_once(rdd: Any) -> None:
        calls.append(rdd.count())
        if calls[-1] == 6:
            brokers.append(topic, 0, 2)
            released.wait(60)

    with brokers.simple_consumer() as consumer:
        consumer.commit_offsets(group, {tp: 4})
        KafkaUtils.createStream(ssc, brokers.zookeeper, group, {topic: 1}).foreachRDD(block_once)
        ssc.start()
        until(lambda: calls[-2:] == [0, 0], "two intervals after the one with the new messages")
        assert sum(calls) == 8
        assert consumer.fetch_offsets(group, [tp])[tp].offset == 4
        released.set()
        until(lambda: consumer.fetch_offsets(group, [tp])[tp].offset == 12, "the commit of both")


class Committed:
    """The commits of a GroupCommitter: interval n has the offsets [10n, 10n + 10) of [t,0]."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
        self.made: list[int] = []
        monkeypatch.setattr(dstream, "commit_offsets", self._commit)
        cluster: Any = SimpleNamespace(client=None)
        self._committer = GroupCommitter(cluster, "g", at_once)

    def _commit(self, _: object, __: str, ends: dict[TopicPartition, int], ___: str) -> None:
        self.made.append(ends[T0])

    def submitted(self, *intervals: int) -> None:
        for number in intervals:
            self._committer.submitted(number)

    def completed(self, number: int, failure: str | None = None) -> None:
        info = SimpleNamespace(
            outputOperationInfos=lambda: {0: SimpleNamespace(failureReason=lambda: failure)},
            batchTime=lambda: SimpleNamespace(milliseconds=lambda: number),
        )
        self._committer.completed([OffsetRange("t", 0, 10 * number, 10 * number + 10)], info)


def test_intervals_that_end_early_are_committed_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """With spark.streaming.concurrentJobs an interval may end before an earlier one: its commit
    waits for that, and offsets only rise."""
    group = Committed(monkeypatch, at_once=3)
    group.submitted(0, 1, 2, 4)  # 3 has no outputs, so Spark never reports it
    group.completed(2)
    group.completed(1)
    assert group.made == []
    group.completed(0)
    assert group.made == [30]
    group.completed(4)
    assert group.made == [30, 50]


def test_an_early_interval_is_not_committed_if_the_one_before_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The commit would mark the failed interval's messages as done."""
    group = Committed(monkeypatch, at_once=2)
    group.submitted(0, 1)
    group.completed(1)
    group.completed(0, "the database is down")
    assert group.made == []


def test_an_event_that_spark_dropped_holds_no_commit_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only as many intervals as run at the same time can be unfinished before a completed one."""
    group = Committed(monkeypatch, at_once=1)
    group.submitted(0, 1)
    group.completed(1)
    assert group.made == [20]
    several = Committed(monkeypatch, at_once=2)
    several.submitted(0, 1, 2)
    several.completed(2)
    several.completed(1)
    assert several.made == [30]


class FakeCluster:
    """One partition, which has ten more messages whenever somebody asks; an RDD is its ranges."""

    def __init__(self) -> None:
        self.offsets = self
        self.end = 0
        self.errors: list[Exception] = []

    def deadline(self) -> AbstractContextManager[None]:
        return nullcontext()

    def ends_from(self, positions: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        self.end += 10
        return dict.fromkeys(positions, self.end)

    def rdd(self, _: object, ranges: list[OffsetRange], __: object) -> Any:
        if self.errors:
            raise self.errors.pop()
        return SimpleNamespace(offsetRanges=lambda: ranges)


class Intervals:
    """Runs the batches of a stream as Spark does: interval 0, 1 and so on, of a second each."""

    def __init__(self) -> None:
        self.cluster = FakeCluster()
        self.batches = Batches(spark_free(), self.cluster, {TopicPartition("t", 0): 0}, lambda m: m)  # type: ignore[arg-type]

    def ends(self, number: int) -> tuple[int, int]:
        """The offsets that the RDD of an interval has."""
        [found] = self.batches.at(datetime.fromtimestamp(1_800_000_000 + number)).offsetRanges()
        return found.fromOffset, found.untilOffset

    def done(self, number: int) -> list[OffsetRange]:
        return self.batches.done((1_800_000_000 + number) * 1000)


def test_an_interval_without_an_rdd_leaves_its_messages_to_the_next() -> None:
    """If creating the RDD fails, the next interval has the messages. (The ranges used to advance
    before the RDD was made.)"""
    intervals = Intervals()
    assert intervals.ends(0) == (0, 10)
    intervals.cluster.errors.append(LeaderNotAvailable("[t,0]"))
    with pytest.raises(LeaderNotAvailable):
        intervals.ends(1)
    assert intervals.ends(2) == (10, 30)


def test_every_waiting_interval_keeps_its_messages() -> None:
    """Of more than a thousand waiting intervals each has its messages. (The oldest used to be
    forgotten before its outputs ran.)"""
    intervals = Intervals()
    made = [intervals.ends(number) for number in range(KEPT_BATCHES + 100)]
    assert intervals.ends(0) == made[0] == (0, 10)
    assert intervals.done(0) == [OffsetRange("t", 0, 0, 10)]


def test_a_finished_interval_is_not_made_again() -> None:
    """A second RDD for it would have the next interval's messages."""
    intervals = Intervals()
    intervals.ends(0)
    intervals.done(0)
    with pytest.raises(ClientError, match="is done"):
        intervals.ends(0)
    assert intervals.ends(1) == (10, 20)


def test_intervals_without_outputs_are_forgotten_in_the_end() -> None:
    """Spark never reports that they are done; a stream that runs for weeks has many."""
    intervals = Intervals()
    for number in range(KEPT_BATCHES + 2):
        intervals.ends(number)
    intervals.done(KEPT_BATCHES + 1)
    with pytest.raises(ClientError):
        intervals.ends(0)
    assert intervals.ends(1) == (10, 20)


def test_an_rdd_of_a_partition_without_a_leader(spark: SparkSession) -> None:
    """The leader only says where a task runs best; the task looks it up itself."""
    cluster = OldCluster({"bootstrap.servers": "127.0.0.1:1", **NOT_ASKED}, ["t"])
    tp = TopicPartition("t", 0)
    with pytest.raises(UnknownTopicOrPartition):
        cluster.client.metadata.leader(tp)
    rdd = cluster.rdd(spark.sparkContext, [OffsetRange("t", 0, 5, 5)], lambda m: m)
    assert rdd.collect() == []


def test_the_hour_when_summer_time_ends_comes_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two intervals an hour apart may have the same local time; both have their messages."""
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    try:
        for first_ms in (1_792_887_300_000, 1_792_887_300_250):  # 02:15, 25 October 2026
            for time_ms in (first_ms, first_ms + 3_600_000):
                assert since_1970_ms(datetime.fromtimestamp(time_ms / 1000)) == time_ms
    finally:
        monkeypatch.undo()
        time.tzset()


def test_topics_are_those_of_the_offsets() -> None:
    """As in 2.4, topics and fromOffsets must name the same topics."""
    params = {"metadata.broker.list": "b1:9092", **NOT_ASKED}
    start = {TopicAndPartition("a", 0): 0}
    with pytest.raises(ConfigError, match="topics: a b do not equal to the topic from offsets: a"):
        KafkaUtils.createDirectStream(None, ["a", "b"], params, fromOffsets=start)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("reset", "earliest"), [("smallest", True), ("Smallest", True), ("largest", False)]
)
def test_the_reset_ignores_case(reset: str, earliest: bool) -> None:
    """auto.offset.reset may have any case, as in 2.4."""
    params = {"metadata.broker.list": "b1:9092", "auto.offset.reset": reset, **NOT_ASKED}
    assert OldCluster(params, []).starts_at_earliest is earliest


@pytest.fixture
def backpressure(spark: SparkSession) -> Iterator[None]:
    """Seven messages a second to begin with."""
    conf: Any = spark.sparkContext._conf
    settings = {"enabled": "true", "initialRate": "7", "pid.minRate": "1"}
    for name, value in settings.items():
        conf.set(BACKPRESSURE + name, value)
    yield
    for name in settings:
        conf._jconf.remove(BACKPRESSURE + name)


@pytest.mark.parametrize("brokers", ["ours"], indirect=True)
@pytest.mark.usefixtures("backpressure")
def test_backpressure(ssc: StreamingContext, brokers: Topics) -> None:
    """The initial rate limits the first interval, shared by lag; Spark then reports its time, from
    which the next rate comes."""
    topic = brokers.filled([10, 4])
    params = {"bootstrap.servers": brokers.bootstrap, "auto.offset.reset": "smallest"}
    stream = KafkaUtils.createDirectStream(ssc, [topic], params)
    sizes: list[list[int]] = []

    def keep(rdd: Any) -> None:
        sizes.append([r.size for r in rdd.offsetRanges()])

    stream.foreachRDD(keep)
    ssc.start()
    assert isinstance(stream, KafkaDStream)
    pid = stream.rate_limit.pid
    assert pid is not None
    until(lambda: pid.rate is not None, "a rate")
    assert sizes[:2] == [[5, 2], [5, 2]]


def test_checkpoint_is_refused(
    spark: SparkSession, ssc: StreamingContext, brokers: Topics, tmp_path: Any
) -> None:
    """Offsets come from fromOffsets or the group; the error says so."""
    topic = brokers.filled([1])
    ssc.checkpoint(str(tmp_path))
    with pytest.raises(ConfigError, match="fromOffsets"):
        KafkaUtils.createDirectStream(ssc, [topic], {"bootstrap.servers": brokers.bootstrap})
