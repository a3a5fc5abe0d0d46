"""StreamReader: where batches end, under limits, with AvailableNow, and when logs lose."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows

from kafka08.arrow.creations import TopicCreations
from kafka08.arrow.data_loss import DataLost
from kafka08.arrow.options import parse_read_options
from kafka08.arrow.resolve import Resolver
from kafka08.client.cluster import ClusterClient
from kafka08.errors import NO_ERROR, ConfigError
from kafka08.protocol.metadata import MetadataRequest, MetadataResponse
from kafka08.protocol.offset_commit import (
    OffsetCommitPartitionResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitTopicResponse,
)
from kafka08.protocol.types import Request, Response
from kafka08.spark.schema import default_schema
from kafka08.spark.stream import StreamReader
from kafka08.spark.tasks import RangePartition
from kafka08.structs import TopicPartition
from tests.arrow.logs import T0, LogCluster, LogShape
from tests.client.fake_cluster import PORT

T1 = TopicPartition("t", 1)
ALL = ReadAllAvailable()


class Stream:
    """A reader of topic t with two partitions of 10 and 20 messages, and Spark's side of it.

    creations       what ZooKeeper says; None: it is not known
    empty_answers   so many of the next questions for metadata meet a broker that is just starting
    """

    def __init__(self, creations: Creations | None = None, **given: str) -> None:
        self.creations = creations
        self.empty_responses = 0
        self.cluster = LogCluster({"t": {0: 1, 1: 2}})
        for broker_id in self.cluster.brokers:
            self.cluster.network.broker(f"b{broker_id}", PORT, partial(self._answer, broker_id))
        self.write(T0, 10)
        self.write(T1, 20)
        self.options = parse_read_options(
            {"kafka.bootstrap.servers": "b1:9092", "subscribe": "t", "startingOffsets": "earliest"}
            | given,
            streaming=True,
        )
        self.reader = self.restarted()

    def restarted(self) -> StreamReader:
        """A new reader, as after a restart of the driver."""
        resolver = Resolver(self.options, self.cluster.client)
        return StreamReader(self.options, default_schema(False), resolver, self.creations)

    def _answer(self, broker_id: int, request: Request) -> Response | None:
        if isinstance(request, MetadataRequest) and self.empty_responses:
            self.empty_responses -= 1
            return MetadataResponse([], [])
        return self.cluster.respond(broker_id, request)

    def write(self, tp: TopicPartition, count: int) -> None:
        self.cluster.write(tp, [(None, b"v")] * count)

    def next(self, start: dict[str, Any]) -> dict[str, Any]:
        return self.reader.latestOffset(start, self.reader.getDefaultReadLimit())

    def ranges(self, start: dict[str, Any], end: dict[str, Any]) -> list[tuple[str, int, int, int]]:
        planned = self.reader.partitions(start, end)
        return [tuple(p.wanted) for p in planned if isinstance(p, RangePartition)]  # type: ignore[misc]


def test_batches_follow_each_other() -> None:
    """The first one begins at the starting offsets, each later one at the end of the last; without
    new messages the end is the start."""
    stream = Stream()
    first = stream.reader.initialOffset()
    assert stream.reader.initialOffset() is first
    end = stream.next(first)
    assert stream.ranges(first, end) == [("t", 0, 0, 10), ("t", 1, 0, 20)]
    assert stream.next(end) is end
    stream.write(T1, 5)
    after = stream.next(end)
    assert stream.ranges(end, after) == [("t", 1, 20, 25)]
    assert after == {"t": {"0": 10, "1": 25}}
    assert stream.reader.reportLatestOffset() == after


def test_a_failure_in_batch_0_repeats_it_exactly() -> None:
    """The latest offset has moved at the restart; the batch has not."""
    stream = Stream(startingOffsets="latest")
    first = stream.reader.initialOffset()
    stream.write(T0, 3)
    end = stream.next(first)
    stream.write(T0, 4)
    stream.reader = stream.restarted()
    again = stream.reader.initialOffset()
    assert again["t"] == {"0": 17, "1": 20}
    assert stream.ranges(again, end) == [("t", 0, 10, 13)]
    assert stream.ranges(end, stream.next(end)) == [("t", 0, 13, 17)]


def test_at_most() -> None:
    """Partitions share maxOffsetsPerTrigger in proportion; Trigger.Once reads everything."""
    stream = Stream(maxOffsetsPerTrigger="6")
    assert stream.reader.getDefaultReadLimit() == ReadMaxRows(6)
    first = stream.reader.initialOffset()
    assert stream.next(first)["t"] == {"0": 2, "1": 4}
    assert stream.reader.latestOffset(first, ALL)["t"] == {"0": 10, "1": 20}


@pytest.mark.parametrize("cut", [{"minPartitions": "6"}, {"maxRecordsPerPartition": "5"}])
def test_batches_are_cut_into_tasks(cut: dict[str, str]) -> None:
    """Tasks of about the same size, as many as minPartitions or as few as maxRecordsPerPartition
    allows, the same ones when a batch is planned again."""
    stream = Stream(None, **cut)
    first = stream.reader.initialOffset()
    end = stream.next(first)
    fives = [("t", p, at, at + 5) for p, until in ((0, 10), (1, 20)) for at in range(0, until, 5)]
    assert stream.ranges(first, end) == fives
    stream.reader = stream.restarted()
    assert stream.ranges(stream.reader.initialOffset(), end) == fives


def test_at_least() -> None:
    """A batch waits for minOffsetsPerTrigger, but not the first one, and none longer than
    maxTriggerDelay."""
    stream = Stream(minOffsetsPerTrigger="5", maxTriggerDelay="60s")
    assert stream.reader.getDefaultReadLimit() == ReadMinRows(5)
    end = stream.next(stream.reader.initialOffset())
    stream.write(T0, 4)
    assert stream.next(end) is end
    assert stream.reader.latestOffset(end, ALL)["t"]["0"] == 14
    stream.cluster.clock.advance(59)
    assert stream.next(end) is end
    stream.cluster.clock.advance(2)
    assert stream.next(end)["t"]["0"] == 14


def test_a_batch_with_enough_offsets_does_not_wait() -> None:
    """The batch has all of them, up to the maximum."""
    stream = Stream(minOffsetsPerTrigger="5", maxOffsetsPerTrigger="8")
    end = stream.reader.latestOffset(stream.reader.initialOffset(), ALL)
    stream.write(T0, 4)
    assert stream.next(end) is end
    stream.write(T0, 5)
    assert stream.next(end)["t"]["0"] == 18


def test_available_now_reaches_its_target_and_ends() -> None:
    """Later messages, also of new partitions, are for the next run."""
    stream = Stream(maxOffsetsPerTrigger="12", minOffsetsPerTrigger="12")
    stream.reader.prepareForTriggerAvailableNow()
    stream.write(T0, 50)
    stream.cluster.leaders[TopicPartition("t", 2)] = 1
    stream.cluster.shapes[TopicPartition("t", 2)] = type(stream.cluster.shapes[T0])()
    position = stream.reader.initialOffset()
    batches = 0
    while (end := stream.next(position)) is not position:
        position = end
        batches += 1
        assert batches < 10
    assert position == {"t": {"0": 10, "1": 20}}
    assert batches == 3


def test_available_now_from_latest() -> None:
    """A target below the start (messages came in between) makes an empty batch."""
    stream = Stream(startingOffsets="latest")
    stream.reader.prepareForTriggerAvailableNow()
    stream.write(T0, 5)
    position = stream.reader.initialOffset()
    assert stream.next(position) is position


def test_new_partitions_start_at_their_earliest() -> None:
    """They do even if they are found late; the batch's end has their start. Messages deleted before
    that are an error, or skipped."""
    for fail in ("true", "false"):
        stream = Stream(failOnDataLoss=fail)
        end = stream.next(stream.reader.initialOffset())
        new = TopicPartition("t", 2)
        stream.cluster.leaders[new] = 1
        stream.cluster.shapes[new] = type(stream.cluster.shapes[T0])()
        stream.write(new, 7)
        stream.cluster.trim(new, 3)
        if fail == "true":
            with pytest.raises(DataLost, match=r"\[t,2\] \[0, 3\): only \[3, 7\) is there"):
                stream.next(end)
        else:
            after = stream.next(end)
            assert after["$starts"] == {"t": {"2": 3}}
            assert stream.ranges(end, after) == [("t", 2, 3, 7)]


def test_loss_lists_everything() -> None:
    """One error lists missing partitions and logs that end below the start; or they are skipped."""
    for fail in ("true", "false"):
        stream = Stream(failOnDataLoss=fail)
        end = stream.next(stream.reader.initialOffset())
        stream.cluster.trim(T0, 2)
        stream.cluster.shapes[T0].end = 4
        del stream.cluster.leaders[T1]
        if fail == "true":
            with pytest.raises(DataLost, match=r"\[t,1\] .* is gone; \[t,0\] \[4, 10\)"):
                stream.next(end)
        else:
            assert stream.next(end) == {"t": {"0": 4}}


class Creations(TopicCreations):
    """ZooKeeper's content, set by the test."""

    def __init__(self, **transactions: int) -> None:
        super().__init__("z1:2181")
        self.transactions = transactions

    def of(self, topics: Iterable[str]) -> dict[str, int]:
        return {topic: self.transactions[topic] for topic in topics if topic in self.transactions}


def recreate(stream: Stream, *counts: int) -> None:
    """Topic t is deleted and made again, with so many messages in its partitions."""
    for tp in (T0, T1):
        stream.cluster.logs[tp] = bytearray()
        stream.cluster.shapes[tp] = LogShape()
    for tp, count in zip((T0, T1), counts, strict=False):
        stream.write(tp, count)
    if stream.creations is not None:
        stream.creations.transactions["t"] += 1


@pytest.mark.parametrize(("count", "other"), [(4, 0), (10, 20), (30, 0)])
def test_a_recreated_topic_is_no_gap(count: int, other: int) -> None:
    """ZooKeeper distinguishes it from the old topic, whether the new log is shorter, as long or
    longer. The result is an error with both ranges, or the new log from its start."""
    stream = Stream(Creations(t=7), failOnDataLoss="true")
    end = stream.next(stream.reader.initialOffset())
    assert end["$created"] == {"t": 7}
    recreate(stream, count, other)
    with pytest.raises(DataLost) as error:
        stream.next(end)
    said = "the topic was deleted and recreated: the old log was read up to"
    assert f"[t,0]: {said} 10 and ended at 10, the new one has [0, {count})" in str(error.value)
    assert f"[t,1]: {said} 20 and ended at 20, the new one has [0, {other})" in str(error.value)
    assert not stream.cluster.clock.slept
    stream.options = replace(
        stream.options, settings=replace(stream.options.settings, fail_on_data_loss=False)
    )
    stream.reader = stream.restarted()
    after = stream.next(end)
    assert after["$created"] == {"t": 8}
    both = [("t", 0, 0, count), ("t", 1, 0, other)]
    assert stream.ranges(end, after) == [wanted for wanted in both if wanted[-1]]
    stream.write(T0, 5)
    assert stream.ranges(after, stream.next(after)) == [("t", 0, count, count + 5)]


def test_a_recreated_topic_under_available_now() -> None:
    """The target was the old topic's; the new one is read up to its end."""
    stream = Stream(Creations(t=7), failOnDataLoss="false")
    end = stream.next(stream.reader.initialOffset())
    stream.write(T0, 100)
    stream.reader = stream.restarted()
    stream.reader.prepareForTriggerAvailableNow()
    recreate(stream, 30)
    after = stream.next(end)
    assert stream.ranges(end, after) == [("t", 0, 0, 30)]
    stream.write(T0, 5)
    assert stream.next(after) is after


def test_a_topic_recreated_after_an_empty_batch_under_available_now() -> None:
    """A query that has read nothing yet notices that its log ends before its start: an error, or
    with ZooKeeper's word the new log from its start."""
    said = r"\[t,0\]: the query starts at 10, but the log has \[0, 4\)"
    for stream in (
        Stream(startingOffsets="latest"),
        Stream(Creations(t=7), startingOffsets="latest", failOnDataLoss="false"),
    ):
        stream.reader.prepareForTriggerAvailableNow()
        first = stream.reader.initialOffset()
        assert stream.next(first) is first
        recreate(stream, 4)
        stream.reader = stream.restarted()
        stream.reader.prepareForTriggerAvailableNow()
        if stream.creations is None:
            with pytest.raises(DataLost, match=said):
                stream.next(first)
        else:
            assert stream.ranges(first, stream.next(first)) == [("t", 0, 0, 4)]


def test_a_topic_recreated_before_a_planned_batch_is_read() -> None:
    """The checkpoint has the batch, whose offsets now mean other messages: an error with both
    ranges, or an empty batch, and the next one begins at the start."""
    stream = Stream(Creations(t=7), failOnDataLoss="false")
    first = stream.reader.initialOffset()
    end = stream.next(first)
    recreate(stream, 30)
    stream.reader = stream.restarted()
    assert stream.ranges(first, end) == []
    assert stream.ranges(end, stream.next(end)) == [("t", 0, 0, 30)]
    strict = Stream(Creations(t=7))
    end = strict.next(strict.reader.initialOffset())
    recreate(strict, 30)
    said = r"\[t,0\]: .* up to 0 and ended at 10, the new one has \[0, 30\)"
    with pytest.raises(DataLost, match=said):
        strict.reader.partitions(first, end)


def test_a_log_that_went_back_without_zookeeper() -> None:
    """The topic may be new: a log that begins at 0 is read from there, so that no message is
    skipped; the error says what may have happened. With ZooKeeper it is known to be the same topic,
    truncated by an unclean election."""
    stream = Stream()
    end = stream.next(stream.reader.initialOffset())
    recreate(stream, 4)
    said = r"\[t,0\]: .*recreated, or cut by an unclean election: .*\[0, 4\)"
    with pytest.raises(DataLost, match=said):
        stream.next(end)
    tolerant = Stream(failOnDataLoss="false")
    end = tolerant.next(tolerant.reader.initialOffset())
    recreate(tolerant, 4)
    assert tolerant.ranges(end, tolerant.next(end)) == [("t", 0, 0, 4)]
    known = Stream(Creations(t=7), failOnDataLoss="false")
    end = known.next(known.reader.initialOffset())
    known.cluster.shapes[T0].end = 4
    assert known.ranges(end, known.next(end)) == []


def test_topics_created_during_the_request_for_offsets() -> None:
    """Offsets count only if the topic was the same before and after the request."""
    stream = Stream(Creations(t=7), failOnDataLoss="false")
    end = stream.next(stream.reader.initialOffset())
    listed = stream.reader._latest

    def meanwhile(partitions: object = None) -> dict[TopicPartition, int]:
        found = listed()
        stream.reader._latest = listed  # type: ignore[method-assign]
        recreate(stream, 30)
        return found

    stream.reader._latest = meanwhile  # type: ignore[method-assign]
    after = stream.next(end)
    assert stream.ranges(end, after) == [("t", 0, 0, 30)]
    assert after["$created"] == {"t": 8}


@pytest.mark.parametrize("fail", ["true", "false"])
def test_brokers_that_are_starting_lose_nothing(fail: str) -> None:
    """They know no topic for a moment (0.8 responds before the controller's first request): the
    stream waits and then continues, also after a restart."""
    stream = Stream(failOnDataLoss=fail)
    end = stream.next(stream.reader.initialOffset())
    stream.write(T0, 5)
    stream.empty_responses = 7
    assert stream.next(end) == {"t": {"0": 15, "1": 20}}
    stream.cluster.client.close()
    stream.cluster.client = ClusterClient(
        stream.cluster.bootstrap,
        runtime=stream.cluster.runtime,
    )
    stream.reader = stream.restarted()
    stream.empty_responses = 7
    assert stream.next(end) == {"t": {"0": 15, "1": 20}}


def test_incomplete_metadata_is_requested_again() -> None:
    """A partition counts as deleted only if a second response lacks it, too."""
    stream = Stream(failOnDataLoss="false")
    end = stream.next(stream.reader.initialOffset())
    stream.write(T0, 5)
    leader = stream.cluster.leaders.pop(T1)
    at_sleep(stream, 1, lambda: stream.cluster.leaders.update({T1: leader}))
    assert stream.next(end) == {"t": {"0": 15, "1": 20}}


@pytest.mark.parametrize("fail", ["true", "false"])
def test_a_high_watermark_that_lags_is_no_loss(fail: str) -> None:
    """A leader that was just elected has a high watermark below the stream's position: the request
    is retried, and no row comes twice."""
    stream = Stream(failOnDataLoss=fail)
    end = stream.next(stream.reader.initialOffset())
    stream.write(T0, 2)
    stream.cluster.shapes[T0].visible = 8
    at_sleep(stream, 3, lambda: setattr(stream.cluster.shapes[T0], "visible", None))
    assert stream.next(end) is end
    assert stream.cluster.clock.slept == [0.2] * 3
    assert stream.ranges(end, stream.next(end)) == [("t", 0, 10, 12)]


@pytest.mark.parametrize("fail", ["true", "false"])
def test_a_high_watermark_that_stays_behind_is_no_loss(fail: str) -> None:
    """The leader has the messages, but a dead follower in the ISR holds the high watermark back:
    the stream waits and reads nothing twice."""
    stream = Stream(failOnDataLoss=fail)
    end = stream.next(stream.reader.initialOffset())
    stream.write(T0, 2)
    stream.cluster.shapes[T0].visible = 8
    assert stream.next(end) is end
    stream.cluster.shapes[T0].visible = None
    assert stream.ranges(end, stream.next(end)) == [("t", 0, 10, 12)]


def test_a_high_watermark_that_lags_behind_available_now() -> None:
    """The target was fixed a moment too early: that partition has nothing new."""
    stream = Stream()
    end = stream.next(stream.reader.initialOffset())
    stream.reader = stream.restarted()
    stream.cluster.shapes[T0].visible = 8
    stream.reader.prepareForTriggerAvailableNow()
    stream.cluster.shapes[T0].visible = None
    stream.write(T0, 5)
    assert stream.next(end) is end


def at_sleep(stream: Stream, number: int, act: Callable[[], object]) -> None:
    """Let `act` happen while the reader waits for the `number`th time."""
    sleep = stream.cluster.clock.sleep

    def acting(seconds: float) -> None:
        sleep(seconds)
        if len(stream.cluster.clock.slept) == number:
            act()

    stream.cluster.clock.sleep = acting  # type: ignore[method-assign]


def test_retention_before_a_batch_is_read() -> None:
    """One error lists every range that retention has shortened; or they are cut."""
    for fail in ("true", "false"):
        stream = Stream(failOnDataLoss=fail)
        first = stream.reader.initialOffset()
        end = stream.next(first)
        stream.cluster.trim(T0, 4)
        stream.cluster.trim(T1, 20)
        if fail == "true":
            with pytest.raises(DataLost, match=r"\[t,0\] \[0, 10\).*\[t,1\] \[0, 20\)"):
                stream.reader.partitions(first, end)
        else:
            assert stream.ranges(first, end) == [("t", 0, 4, 10)]


@pytest.mark.parametrize("storage", ["zookeeper", "kafka"])
def test_commit_for_a_group(storage: str) -> None:
    """commit(end) stores the ends in the chosen store; an error is logged, not raised."""
    stream = Stream(None, **{"kafka.group.id": "g", "commitOffsets": storage})
    commits: list[Request] = []
    code = NO_ERROR

    def respond(request: Request) -> Response | None:
        if not isinstance(request, OffsetCommitRequest):
            return stream.cluster.respond(1, request)
        commits.append(request)
        return OffsetCommitResponse(
            [
                OffsetCommitTopicResponse(
                    t.topic,
                    [OffsetCommitPartitionResponse(p.partition, code) for p in t.partitions],
                )
                for t in request.topics
            ]
        )

    stream.cluster.network.broker("b1", PORT, respond)
    stream.cluster.network.broker("b2", PORT, respond)
    stream.reader.commit({"t": {"0": 5, "1": 6}})
    (request,) = commits
    assert isinstance(request, OffsetCommitRequest)
    assert request.version == (0 if storage == "zookeeper" else 1)
    assert request.group == "g"
    assert [(p.partition, p.offset) for t in request.topics for p in t.partitions] == [
        (0, 5),
        (1, 6),
    ]
    code = 12
    stream.reader.commit({"t": {"0": 7}})
    assert len(commits) == 2


def test_a_checkpoint_of_other_topics() -> None:
    """The error says that the query does not read what its checkpoint has, not that it is gone, and
    what to do; if some of it really is gone, it says so of that."""
    stream = Stream()
    end = stream.next(stream.reader.initialOffset())
    stream.cluster.leaders[TopicPartition("u", 0)] = 1
    stream.cluster.shapes[TopicPartition("u", 0)] = LogShape()
    stream.write(TopicPartition("u", 0), 5)
    other = Stream(subscribe="u")
    other.cluster = stream.cluster
    reader = StreamReader(
        other.options,
        default_schema(False),
        Resolver(other.options, stream.cluster.client),
    )
    said = r"\[t,0\] read up to 10: the query does not read it.*\[t,1\].*checkpointLocation of its"
    with pytest.raises(DataLost, match=said):
        reader.latestOffset(end, ALL)
    del stream.cluster.leaders[T1]
    said = r"\[t,0\].*does not read it.*\[t,1\] read up to 20: .* gone\. .*failOnDataLoss"
    with pytest.raises(DataLost, match=said):
        reader.latestOffset(end, ALL)


def test_a_start_behind_the_end() -> None:
    """A query that has read nothing yet is told where it starts, not what it has read."""
    stream = Stream(startingOffsets='{"t":{"0":100,"1":0}}')
    said = (
        r"\[t,0\]: the query starts at 100, but the log has \[0, 10\): startingOffsets is too high"
    )
    with pytest.raises(DataLost, match=said):
        stream.next(stream.reader.initialOffset())
    stream.reader.prepareForTriggerAvailableNow()
    with pytest.raises(DataLost, match=said):
        stream.next(stream.reader.initialOffset())


@pytest.mark.parametrize(
    "position", [{"t": {"0": "x"}}, {"t": {"p": 1}}, {"t": 5}, {"version": 1}, {"t": {"0": 1.5}}]
)
def test_a_checkpoint_of_another_source(position: dict[str, Any]) -> None:
    """What is no position of ours is an error with its text and what to do."""
    with pytest.raises(ConfigError, match=r"the checkpoint has .* checkpointLocation of its own"):
        Stream().reader.latestOffset(position, ALL)


def test_workers_get_a_copy_without_the_drivers_connections() -> None:
    """Spark pickles the reader for the tasks; a session at ZooKeeper cannot be pickled."""
    copy = pickle.loads(pickle.dumps(StreamReader(Stream().options, default_schema(False))))
    assert list(vars(copy)) == ["_tasks"]
