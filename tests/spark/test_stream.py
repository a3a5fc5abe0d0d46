"""Streams by a real Spark into a file sink: killed at each step of a batch, the output is exact.

A kill is made by taking from the checkpoint and from the sink what would not be there yet.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException

from kafka08.spark import GroupCommitListener
from kafka08.structs import TopicPartition
from tests.spark.filling import Row, Topics, collected, rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


class Job:
    """A query from a topic into Parquet files, with a checkpoint, both in `directory`."""

    def __init__(
        self, spark: SparkSession, brokers: Topics, directory: Path, **options: str
    ) -> None:
        self._spark = spark
        self.source: DataFrame = (
            spark.readStream.format("kafka08")
            .option("kafka.bootstrap.servers", brokers.bootstrap)
            .options(**options)
            .load()
        )
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

    def forget(self, batch: int, *, sink_too: bool) -> None:
        """Undo what comes after the offsets of `batch` were written: the commit of it, and with
        `sink_too` also what the sink has noted."""
        _remove(self.checkpoint / "commits", batch)
        if sink_too:
            _remove(self.output / "_spark_metadata", batch)

    def end_of(self, batch: int) -> dict[str, Any]:
        text = (self.checkpoint / "offsets" / str(batch)).read_text().splitlines()[-1]
        end: dict[str, Any] = json.loads(text)
        return end


def _numbers(directory: Path) -> list[int]:
    return sorted(int(path.name) for path in directory.iterdir() if path.name.isdigit())


def _remove(directory: Path, name: int) -> None:
    (directory / str(name)).unlink()
    (directory / f".{name}.crc").unlink(missing_ok=True)


def wait_for(condition: Callable[[], bool], what: str, query: StreamingQuery) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert query.exception() is None
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.05)


def test_available_now(spark: SparkSession, brokers: Topics, tmp_path: Path) -> None:
    """All that is there, in batches of the limit, once; the next run goes on behind it."""
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
@pytest.mark.parametrize("sink_too", [True, False], ids=["before-the-sink", "after-the-sink"])
@pytest.mark.parametrize("batch", [0, 1])
def test_killed_in_a_batch(
    spark: SparkSession, brokers: Topics, tmp_path: Path, batch: int, sink_too: bool
) -> None:
    """After a kill between the offsets of a batch and its commit the batch is read again exactly,
    though the log has grown; the files hold every message once."""
    topic = brokers.filled([30])
    options = {"subscribe": topic, "startingOffsets": "earliest", "maxOffsetsPerTrigger": "15"}
    if batch == 0:
        options.pop("maxOffsetsPerTrigger")
    job = Job(spark, brokers, tmp_path, **options)
    job.run()
    assert job.batches() == list(range(batch + 1))
    job.forget(batch, sink_too=sink_too)
    brokers.append(topic, 0, 10)
    job.run()
    assert job.rows() == rows_of(0, 0, 40)


@OURS
def test_killed_in_batch_0_from_latest(
    spark: SparkSession, brokers: Topics, tmp_path: Path
) -> None:
    """The trap: "latest" is asked for again after the kill and has moved. Nothing is lost."""
    topic = brokers.filled([20])
    job = Job(spark, brokers, tmp_path, subscribe=topic)
    job.run()
    assert job.rows() == []
    assert job.end_of(0)["$starts"] == {topic: {"0": 20}}
    job.forget(0, sink_too=True)
    brokers.append(topic, 0, 10)
    job.run()
    assert job.rows() == rows_of(0, 20, 30)


def test_groups_new_partitions_and_progress(
    spark: SparkSession, brokers: Topics, tmp_path: Path
) -> None:
    """A running query: a topic that matches later is read from its start, the group follows by
    commitOffsets and, for the last batch too, by the listener; progress tells the lag."""
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
    """What a stream cannot have is refused when it starts."""
    job = Job(spark, brokers, tmp_path, subscribe="t", endingOffsets="latest")
    with pytest.raises(PySparkException, match="endingOffsets is not valid in a stream"):
        job.run()
