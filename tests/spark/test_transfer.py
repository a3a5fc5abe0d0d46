"""Topics to files and back, which `kafka08 spark read | write` do."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from kafka08.arrow.data_loss import DataLost
from kafka08.arrow.ranges import OffsetRange
from kafka08.arrow.resolve import NothingCommitted
from kafka08.errors import ConfigError
from kafka08.spark.failures import known_cause
from kafka08.spark.session import properties
from kafka08.spark.transfer import (
    ELSEWHERE,
    LONG_READ,
    _new_directory,
    check_input,
    check_output,
    java_options,
    open_files,
    plan_read,
    read_to_files,
    text_of,
    write_to_topic,
)
from kafka08.structs import TopicPartition
from tests.spark.filling import Pair, Topics, rows_of
from tests.waiting import until

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


TEXTS = ["  padded ", "two\nlines", "cr\rcrlf\r\nend\n", 'say "hi" \\', 'a\\"b', "\\", '"', '""']
TEXTS += ["x,y", "#c", "", " ", "\t", "\n", "null", "\x00", "\ufeff", "\u2028"]
AWKWARD: list[Pair] = [(b"k%d" % at, text.encode()) for at, text in enumerate(TEXTS)]
AWKWARD += [(text.encode(), None) for text in TEXTS]
"""Messages that a text format may spoil."""


@pytest.mark.parametrize("brokers", ["ours"], indirect=True)
def test_advice_is_the_commands(brokers: Topics) -> None:
    """The error of a plan names options of the command, none of the source."""
    topic = brokers.filled([10])
    options = {"kafka.bootstrap.servers": brokers.bootstrap}
    with pytest.raises(DataLost, match=r"only \[0, 10\) is there\. Use --range") as lost:
        plan_read({**options, "offsetRanges": f'[["{topic}",0,5,100]]'})
    group = {"subscribe": topic, "startingOffsets": "committed", "kafka.group.id": "nobody"}
    with pytest.raises(NothingCommitted, match=r",0\]\. Use --range") as nothing:
        plan_read({**options, **group})
    assert "failOnDataLoss" not in str(lost.value)
    assert "committedFallback" not in str(nothing.value)


def test_paths_of_this_machine_are_looked_at_before_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is not there, or is in the way, is an error at once; a path that Spark may look for on
    another file system, or as a pattern of its own, is left to Spark."""
    for name in ELSEWHERE:
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "rows.json").touch()
    at = str(tmp_path)
    for name in (at, f"{at}/rows.json", f"{at}/*.json", f"file://{at}", f"file:{at}/rows.json"):
        check_input(name, "local[2]", {})
        with pytest.raises(ConfigError, match="exists already"):
            check_output(name.replace("*", "rows"), "local[2]", {})
    for name in (f"{at}/nofile", f"{at}/*.csv", f"file://{at}/nofile"):
        with pytest.raises(ConfigError, match="does not exist: give a file"):
            check_input(name, "local[2]", {})
        check_output(name, "local[2]", {})
    check_input("hdfs://h/nofile", "local[2]", {})
    check_input(f"{at}/{{a,b}}", "local[2]", {})
    check_input(f"{at}/nofile", "spark://h:7077", {})
    check_input(f"{at}/nofile", "local[2]", {"spark.hadoop.fs.defaultFS": "hdfs://h"})
    monkeypatch.setenv("HADOOP_CONF_DIR", at)
    check_input(f"{at}/nofile", "local[2]", {})


def test_long_reads_here_use_javas_optimizing_compiler() -> None:
    """A short read starts faster without it; on a cluster the driver's Java runs no tasks."""
    name = "spark.driver.extraJavaOptions"
    of_any = properties("local[2]", {})[name]
    assert "TieredStopAtLevel" in of_any
    for master, offsets, expected in (
        ("local[2]", LONG_READ, of_any),
        ("local[2]", LONG_READ + 1, ""),
        ("spark://h:7077", 2 * LONG_READ, of_any),
    ):
        assert properties(master, java_options(master, offsets))[name] == expected


def test_a_column_that_cannot_be_written(spark: SparkSession, tmp_path: Path) -> None:
    """The error comes before a write, and has the column's name in the topic."""
    (tmp_path / "numbers.json").write_text('{"amount": 5}\n')
    with pytest.raises(ConfigError, match="value must be string or binary, not bigint"):
        open_files(spark, str(tmp_path), "json", None, "amount")


@pytest.mark.parametrize("file_format", ["parquet", "csv", "json"])
@pytest.mark.parametrize("brokers", ["ours"], indirect=True)
def test_there_and_back(
    spark: SparkSession, brokers: Topics, tmp_path: Path, file_format: str
) -> None:
    """A topic that is written to files and from there into another topic has equal messages."""
    topic, copy = brokers.filled([30]), brokers.new_topic(1)
    brokers.produce(TopicPartition(topic, 0), AWKWARD)
    options = {"kafka.bootstrap.servers": brokers.bootstrap}
    planned = plan_read(
        {**options, "subscribe": topic, "startingOffsets": f'{{"{topic}":{{"0":24}}}}'}
    )
    assert planned == [OffsetRange(topic, 0, 24, 30 + len(AWKWARD))]
    output = str(tmp_path / "files")
    read_to_files(
        spark,
        {**options, "subscribe": topic},
        planned,
        output,
        file_format,
        as_text=file_format != "parquet",
        progress=lambda done, total: None,
    )
    frame = open_files(spark, output, file_format, "key", "value")
    write_to_topic(spark, frame, copy, options, lambda done, total: None)
    with brokers.simple_consumer() as consumer:
        messages = [(m.key, m.value) for m in consumer.read_range(TopicPartition(copy, 0), 0)]
    assert messages == [(key, value) for _, _, key, value in rows_of(0, 24, 30)] + AWKWARD
    with pytest.raises(ConfigError, match="has no column other; it has "):
        open_files(spark, output, file_format, None, "other")


def test_bytes_that_are_not_text_are_an_error(spark: SparkSession) -> None:
    """It names topic, partition and offset; with --replace they become U+FFFD. (Text files used to
    have U+FFFD without a word.)"""
    rows = [
        ("t", 0, 5, bytearray(b"ok \xc3\xa4")),
        ("t", 0, 6, None),
        ("t", 0, 7, bytearray(b"\xff")),
    ]
    frame = spark.createDataFrame(rows, "topic string, partition int, offset long, value binary")
    strict = text_of("value", replaces=False)
    sound = frame.where("offset < 7").selectExpr(strict)
    assert [row.value for row in sound.collect()] == ["ok ä", None]
    with pytest.raises(PySparkException) as caught:
        frame.selectExpr(strict).collect()
    expected = "[t,0] at offset 7: the value is not UTF-8. Use --binary with parquet, or --replace"
    assert known_cause(str(caught.value)) == expected
    lenient = frame.selectExpr(text_of("value", replaces=True))
    assert len(lenient.collect()) == len(rows)


def test_an_interrupted_write_leaves_no_directory(spark: SparkSession, tmp_path: Path) -> None:
    """Ctrl-C half way through a job ends its tasks and removes what they wrote, so that the command
    can be run again. A directory that was there before stays, and is an error."""
    output = tmp_path / "files"

    def never_ending(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch
            time.sleep(600)

    def write() -> None:
        frame = spark.range(2, numPartitions=2).mapInArrow(never_ending, "id long")
        frame.write.parquet(str(output))

    with ThreadPoolExecutor(1) as pool:
        with pytest.raises(KeyboardInterrupt), _new_directory(spark, str(output)):  # noqa: PT012
            job = pool.submit(write)
            until(lambda: any(output.glob("_temporary/0/_temporary/*")), "a task that writes")
            raise KeyboardInterrupt
        with pytest.raises(Py4JJavaError):
            job.result()
    assert not output.exists()
    output.mkdir()
    said = pytest.raises(ConfigError, match="files exists already: name another directory")
    with said, _new_directory(spark, str(output)):
        pytest.fail("the block does not run")
    assert output.exists()
