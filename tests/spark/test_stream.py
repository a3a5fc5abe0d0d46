"""Streams by a real Spark into a file sink: every message once, whatever dies and whatever goes.

A driver that is killed is in test_stream_kills.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException

from kafka08.spark import (
    BehindListener,
    GroupCommitListener,
    offsets_behind_latest,
    offsets_without_rows,
)
from kafka08.structs import EARLIEST_OFFSET, TopicPartition
from tests.spark.filling import Row, Topics, collected, rows_of
from tests.spark.points import register_points
from tests.waiting import until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


class Job:
    """A query from a topic into Parquet files, with a checkpoint, both in `directory`."""

    def __init__(
        self,
        spark: SparkSession,
        brokers: Topics,
        directory: Path,
        *,
        source: str = "kafka08",
        **options: str,
    ) -> None:
        self._spark = spark
        if "zookeeper.connect" not in options:
            options["kafka.bootstrap.servers"] = brokers.bootstrap
        self.source: DataFrame = spark.readStream.format(source).options(**options).load()
        self.checkpoint = directory / "checkpoint"
        self.output = directory / "output"

    def start(self, name: str | None = None, **trigger: Any) -> StreamingQuery:
        writer = self.source.writeStream.format("parquet").option(
            "checkpointLocation", str(self.checkpoint)
        )
        if name:
            writer = writer.queryName(name)
        return writer.trigger(**trigger).start(str(self.output))

    def run(self) -> None:
        """Everything that is available now."""
        query = self.start(availableNow=True)
        assert query.awaitTermination(60)

    def rows(self) -> list[Row]:
        return collected(self._spark.read.parquet(str(self.output)))

    def batches(self) -> list[int]:
        """Numbers of the batches that were finished."""
        return _numbers(self.checkpoint / "commits")

    def end_of(self, batch: int) -> dict[str, Any]:
        """The end of a batch in the checkpoint."""
        text = (self.checkpoint / "offsets" / str(batch)).read_text().splitlines()[-1]
        end: dict[str, Any] = json.loads(text)
        return end


def _numbers(directory: Path) -> list[int]:
    return sorted(int(path.name) for path in directory.glob("[0-9]*"))


def wait_for(condition: Callable[[], bool], what: str, query: StreamingQuery | None = None) -> None:
    def holds() -> bool:
        assert query is None or query.exception() is None
        return condition()

    until(holds, what)


def test_available_now(spark: SparkSession, brokers: Topics, tmp_path: Path) -> None:
    """All messages come once, in batches of the limit; the next run continues behind them."""
    topic = brokers.filled([40, 20], codec=-1)
    job = Job(
        spark,
        brokers,
        tmp_path,
        subscribe=topic,
        startingOffsets="earliest",
        maxOffsetsPerTrigger="30",
    )
    job.run()
    assert job.rows() == rows_of(0, 0, 40) + rows_of(1, 0, 20)
    assert len(job.batches()) == 2
    brokers.append(topic, 1, 5)
    job.run()
    assert job.rows() == rows_of(0, 0, 40) + rows_of(1, 0, 25)


OURS = pytest.mark.parametrize("brokers", ["ours"], indirect=True)
"""For what no broker can make a difference to: a session of Spark is slow."""


@OURS
def test_how_far_a_stream_is_behind(spark: SparkSession, brokers: Topics, tmp_path: Path) -> None:
    """After every batch the listener and the last progress have the least, largest and average lag
    of the partitions, under the names of Spark's own connector."""
    topic = brokers.filled([40, 20])
    told: list[tuple[str, dict[str, float]]] = []
    BehindListener(spark, lambda progress, behind: told.append((progress.name, dict(behind))))
    job = Job(
        spark,
        brokers,
        tmp_path,
        subscribe=topic,
        startingOffsets="earliest",
        maxOffsetsPerTrigger="30",
    )
    query = job.start(f"behind-{topic}", availableNow=True)
    assert query.awaitTermination(60)
    names = ("minOffsetsBehindLatest", "maxOffsetsBehindLatest", "avgOffsetsBehindLatest")
    expected = [dict(zip(names, of_batch, strict=True)) for of_batch in ((10, 20, 15), (0, 0, 0))]
    without_loss = [of_batch | {"offsetsWithoutRows": 0} for of_batch in expected]
    until(lambda: [lag for name, lag in told if name == query.name] == without_loss, "all told")
    assert query.lastProgress is not None
    assert offsets_behind_latest(query.lastProgress.sources[0]) == expected[-1]


@OURS
def test_offsets_that_were_lost_are_counted(
    spark: SparkSession, brokers: Topics, tmp_path: Path
) -> None:
    """With failOnDataLoss=false messages that retention deleted before their batch are skipped, and
    the progress has their number."""
    topic = brokers.new_topic(1, {"segment.bytes": "1000", "retention.bytes": "1000"})
    brokers.append(topic, 0, 100)

    def deleted() -> int:
        with brokers.simple_consumer() as consumer:
            return consumer.earliest_or_latest(TopicPartition(topic, 0), EARLIEST_OFFSET)

    until(lambda: deleted() > 0, f"retention of {topic}")
    options = {"startingOffsets": json.dumps({topic: {"0": 0}}), "failOnDataLoss": "false"}
    query = Job(spark, brokers, tmp_path, subscribe=topic, **options).start(availableNow=True)
    assert query.awaitTermination(60)
    assert query.lastProgress is not None
    assert offsets_without_rows(query.lastProgress.sources[0]) == deleted()


@OURS
@pytest.mark.timeout(240)
def test_python_processes_are_killed(spark: SparkSession, brokers: Topics, tmp_path: Path) -> None:
    """kill -9 of the process that plans, at each of its responses, and of a worker half way through
    its range: the query fails, and the restarted one has every row once."""
    register_points(spark)
    topic = brokers.filled([40, 20])
    job = Job(
        spark,
        brokers,
        tmp_path,
        source="kafka08-points",
        points=str(tmp_path),
        subscribe=topic,
        startingOffsets="earliest",
        **{"kafka.fetch.message.max.bytes": "500"},  # more than one batch of rows a task
    )
    for step in ("initialOffset", "latestOffset", "partitions", "read"):
        (tmp_path / f"kill-{step}").touch()
        with pytest.raises(PySparkException):
            job.run()
        assert not (tmp_path / f"kill-{step}").exists()
        brokers.append(topic, 1, 5)
    assert job.batches() == []
    job.run()
    assert job.rows() == rows_of(0, 0, 40) + rows_of(1, 0, 40)


@OURS
def test_a_topic_is_deleted(spark: SparkSession, brokers: Topics, tmp_path: Path) -> None:
    """One error lists every partition that is gone; with failOnDataLoss=false the stream continues
    with the others."""
    kept, gone = brokers.filled([10]), brokers.filled([10, 5])
    options = {"subscribe": f"{kept},{gone}", "startingOffsets": "earliest"}
    Job(spark, brokers, tmp_path, **options).run()
    brokers.delete(gone)
    brokers.append(kept, 0, 5)
    with pytest.raises(PySparkException, match=rf"\[{gone},0\].* gone; \[{gone},1\].* gone"):
        Job(spark, brokers, tmp_path, **options).run()
    tolerant = Job(spark, brokers, tmp_path, failOnDataLoss="false", **options)
    tolerant.run()
    assert tolerant.rows() == sorted(rows_of(0, 0, 15) + rows_of(0, 0, 10) + rows_of(1, 0, 5))


def test_a_topic_is_recreated(spark: SparkSession, brokers: Topics, tmp_path: Path) -> None:
    """A topic that is recreated between two runs, with more messages than before, is found by
    ZooKeeper, and both ranges are in the error; with failOnDataLoss=false the new topic is read
    from its start. This holds on the JVM's brokers and on ours."""
    topic = brokers.filled([10])
    options = {
        "zookeeper.connect": brokers.zookeeper,
        "subscribe": topic,
        "startingOffsets": "earliest",
    }
    Job(spark, brokers, tmp_path, **options).run()
    brokers.recreate(topic, 1)
    brokers.append(topic, 0, 25)
    said = rf"\[{topic},0\]: the topic was deleted and recreated: .* up to 10, .* \[0, 25\)"
    with pytest.raises(PySparkException, match=said):
        Job(spark, brokers, tmp_path, **options).run()
    tolerant = Job(spark, brokers, tmp_path, failOnDataLoss="false", **options)
    tolerant.run()
    assert tolerant.rows() == sorted(rows_of(0, 0, 10) + rows_of(0, 0, 25))


def test_groups_new_partitions_and_progress(
    spark: SparkSession, brokers: Topics, tmp_path: Path
) -> None:
    """A running query reads a topic that matches later from its start; commitOffsets updates the
    group, and the listener does so for the last batch too; progress has the lag."""
    topic = brokers.filled([10])
    late = f"{topic}-late"
    by_commit, by_listener = f"commit-{topic}", f"listener-{topic}"
    job = Job(
        spark,
        brokers,
        tmp_path,
        subscribePattern=f"{topic}(-late)?",
        startingOffsets="earliest",
        commitOffsets="zookeeper",
        **{"kafka.group.id": by_commit},
    )
    GroupCommitListener(spark, brokers.bootstrap, by_listener, "kafka", query_name=by_listener)
    query = job.start(by_listener, processingTime="100 milliseconds")
    try:
        wait_for(lambda: len(job.batches()) > 0, "the first batch", query)
        brokers.create(late, 1)
        brokers.append(late, 0, 5)
        wait_for(lambda: query_rows(query) == 15, "the new topic", query)
        with brokers.simple_consumer() as consumer:
            tp = TopicPartition(late, 0)
            wait_for(
                lambda: consumer.fetch_offsets(by_listener, [tp], "kafka")[tp].offset == 5,
                "the listener's commit",
                query,
            )
            first = TopicPartition(topic, 0)
            wait_for(
                lambda: consumer.fetch_offsets(by_commit, [first])[first].offset == 10,
                "the source's commit",
                query,
            )
        source = query.lastProgress["sources"][0] if query.lastProgress else None
        assert source is not None
        assert json.loads(source["latestOffset"]) == {topic: {"0": 10}, late: {"0": 5}}
    finally:
        query.stop()
    assert job.rows() == sorted(rows_of(0, 0, 10) + rows_of(0, 0, 5))


def query_rows(query: StreamingQuery) -> int:
    return sum(progress["numInputRows"] for progress in query.recentProgress)


@OURS
def test_refusals_reach_the_user(spark: SparkSession, brokers: Topics, tmp_path: Path) -> None:
    """Options that a stream cannot have are errors when it starts."""
    job = Job(spark, brokers, tmp_path, subscribe="t", endingOffsets="latest")
    with pytest.raises(PySparkException, match="endingOffsets is not valid in a stream"):
        job.run()
