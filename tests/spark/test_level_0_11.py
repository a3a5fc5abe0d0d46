"""Transactions and headers in Spark, on brokers of ours at level 0.11.0."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kafka08.embedded.cluster import EmbeddedCluster
from kafka08.producer import KafkaProducer, ProducerRecord
from tests.integration.transactional import producer_on

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COMMITTED = {"kafka.isolation.level": "read_committed"}


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(1, level="0.11.0") as cluster:
        yield cluster


def given(cluster: EmbeddedCluster, topic: str, **options: str) -> dict[str, str]:
    found = {"kafka.bootstrap.servers": cluster.bootstrap, "subscribe": topic}
    return found | options


def values(frame: DataFrame) -> list[str]:
    return sorted(row[0] for row in frame.selectExpr("string(value)").collect())


def test_committed_messages_alone(
    spark: SparkSession, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    """A batch and a stream have no message of a transaction that was aborted or is open; the next
    batch of the stream has those that were committed meanwhile."""
    cluster.create_topic("mixed")
    runs: list[list[str]] = []

    def run() -> None:
        stream = spark.readStream.format("kafka08").options(
            **given(cluster, "mixed", startingOffsets="earliest"), **COMMITTED
        )
        query = (
            stream.load()
            .writeStream.foreachBatch(lambda frame, _: runs.append(values(frame)))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(120)

    with producer_on(cluster.bootstrap, "spark") as producer:
        producer.init_transactions()
        for number, is_kept in enumerate((True, False, True)):
            producer.begin_transaction()
            producer.send(ProducerRecord("mixed", b"%d" % number, partition=0)).result(30)
            (producer.commit_transaction if is_kept else producer.abort_transaction)(30)
        producer.begin_transaction()
        producer.send(ProducerRecord("mixed", b"open", partition=0)).result(30)
        batch = spark.read.format("kafka08").options(**given(cluster, "mixed"))
        assert values(batch.load()) == ["0", "1", "2", "open"]
        assert values(batch.options(**COMMITTED).load()) == ["0", "2"]
        run()
        producer.commit_transaction(30)
    run()
    assert [one for one in runs if one] == [["0", "2"], ["open"]]


def test_headers_of_a_sink_are_those_of_a_read(
    spark: SparkSession, cluster: EmbeddedCluster
) -> None:
    """The sink writes the column that a read gives, also of messages of another producer."""
    cluster.create_topic("headed")
    cluster.create_topic("copied")
    headers: list[tuple[str, bytes | None]] = [("a", b"1"), ("é", None), ("a", b"")]
    with KafkaProducer(bootstrap_servers=cluster.bootstrap) as producer:
        for n in range(20):
            some = headers[: n % 4] or None
            producer.send(ProducerRecord("headed", b"%d" % n, headers=some))

    def rows(topic: str) -> list[tuple[int, list[tuple[str, bytes | None]] | None]]:
        frame = spark.read.format("kafka08").options(**given(cluster, topic, includeHeaders="true"))
        found = frame.load().selectExpr("int(string(value))", "headers").collect()
        return sorted(
            (value, None if some is None else [(key, content) for key, content in some])
            for value, some in found
        )

    wanted = [(n, headers[: n % 4] or None) for n in range(20)]
    assert rows("headed") == wanted
    options = given(cluster, "headed", includeHeaders="true")
    frame = spark.read.format("kafka08").options(**options).load().select("value", "headers")
    to = {"kafka.bootstrap.servers": cluster.bootstrap, "topic": "copied"}
    frame.write.format("kafka08").mode("append").options(**to).save()
    assert rows("copied") == wanted


def exactly_once(cluster: EmbeddedCluster, topic: str, journal: Path) -> dict[str, str]:
    return {
        "kafka.bootstrap.servers": cluster.bootstrap,
        "topic": topic,
        "transactional.id.prefix": topic,
        "journalLocation": str(journal),
    }


def test_a_batch_write_with_a_journal_is_done_once(
    spark: SparkSession, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    """A program that runs again, because nobody knows whether it was done, writes nothing more."""
    cluster.create_topic("once")
    frame = spark.range(100).selectExpr("string(id) AS value")
    for _ in range(2):
        options = exactly_once(cluster, "once", tmp_path)
        frame.write.format("kafka08").mode("append").options(**options).save()
    batch = spark.read.format("kafka08").options(**given(cluster, "once"), **COMMITTED).load()
    assert values(batch) == sorted(map(str, range(100)))


def test_each_batch_of_a_query_is_written_once(
    spark: SparkSession, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    """In foreachBatch one journal knows the batches by their numbers. A batch that runs again, as
    if its driver had died before Spark noted its end, writes nothing more."""
    cluster.create_topic("all")
    cluster.create_topic("each")
    checkpoint = tmp_path / "checkpoint"

    def write(frame: DataFrame, _: int) -> None:
        options = exactly_once(cluster, "each", tmp_path / "journal")
        frame.select("value").write.format("kafka08").mode("append").options(**options).save()

    def run() -> None:
        stream = spark.readStream.format("kafka08").options(
            **given(cluster, "all", startingOffsets="earliest")
        )
        query = (
            stream.load()
            .writeStream.foreachBatch(write)
            .option("checkpointLocation", str(checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(120)

    with KafkaProducer(bootstrap_servers=cluster.bootstrap) as producer:
        for value in (b"a", b"b"):
            producer.send(ProducerRecord("all", value)).result(30)
            run()
    for name in ("1", ".1.crc"):
        (checkpoint / "commits" / name).unlink()
    run()
    batch = spark.read.format("kafka08").options(**given(cluster, "each"), **COMMITTED).load()
    assert values(batch) == ["a", "b"]
