"""Copies topics to files and back, for the command line: first a plan, then a job with progress."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from glob import glob
from typing import Any, Final

from py4j.protocol import Py4JError
from pyspark import StatusTracker
from pyspark.sql import DataFrame, SparkSession

from kafka08.arrow.connections import resolved
from kafka08.arrow.data_loss import DataLost
from kafka08.arrow.options import parse_read_options
from kafka08.arrow.ranges import OffsetRange, ranges_to_json
from kafka08.arrow.resolve import NothingCommitted, Resolver
from kafka08.clock import SYSTEM_CLOCK
from kafka08.errors import ConfigError
from kafka08.spark.session import FULL_SPEED, is_local
from kafka08.spark.sink import check_types

__all__ = [
    "SparkSession",
    "check_input",
    "check_output",
    "java_options",
    "open_files",
    "plan_read",
    "read_to_files",
    "write_to_topic",
]

logger = logging.getLogger(__name__)

Progress = Callable[[int, int], None]
"""Called with (tasks done, all tasks) of the stages that run now."""

POLL_S: Final = 0.2
CANCEL_S: Final = 20
FORMAT_OPTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "csv": {
        "header": "true",
        "nullValue": "\\N",
        "ignoreLeadingWhiteSpace": "false",
        "ignoreTrailingWhiteSpace": "false",
        "multiLine": "true",
    }
}
"""With these options CSV files are read back exactly, except that a key or value equal to nullValue
becomes null."""
TEXT_COLUMNS: Final = ("key", "value")
ELSEWHERE: Final = ("HADOOP_CONF_DIR", "SPARK_CONF_DIR", "SPARK_HOME")
"""Variables of the environment whose files may make another file system the default."""
LONG_READ: Final = 5_000_000
"""A read of more offsets costs less with FULL_SPEED. CPU seconds of Java for messages of 100 B into
Parquet, on a loaded machine: 15.5 for the first 3 M and 4.5 for each further 3 M; without 12.6 and
8.2."""
REPLACED_BY_RANGES: Final = frozenset(
    {
        "subscribe",
        "startingoffsets",
        "committedfallback",
        "kafka.group.id",
        "minpartitions",
        "maxrecordsperpartition",
    }
)
"""Options, in lower case, of which exact ranges are the outcome."""
READ_SCHEMA: Final = "topic STRING, partition INT, offset BIGINT, key BINARY, value BINARY"
"""The columns that a read writes. The source reads no others: Spark itself prunes none."""


def plan_read(options: Mapping[str, str]) -> list[OffsetRange]:
    """The exact ranges for `options` of the source now, one per task. Errors advise with options
    of the command."""
    parsed = parse_read_options(options)
    address = resolved(parsed.address, parsed.settings, parsed.topic_filter())
    resolver = Resolver(replace(parsed, address=address))
    try:
        with resolver.deadline():
            return resolver.tasks(resolver.batch())
    except DataLost as lost:
        raise DataLost(lost.facts, "Use --range to read the offsets that exist") from None
    except NothingCommitted as nothing:
        raise NothingCommitted(nothing.facts, "Use --range to say where to start") from None


def check_input(name: str, master: str, conf: Mapping[str, str]) -> None:
    """ConfigError if no file of that name or pattern is on this machine, where Spark would look for
    it. Spark says so after some seconds."""
    path = _local_path(name, master, conf)
    if path is not None and "{" not in path and not glob(path):  # braces are patterns of Spark's
        raise ConfigError(
            f"{name} does not exist: give a file, a directory of files, or a pattern of names"
        )


def check_output(name: str, master: str, conf: Mapping[str, str]) -> None:
    """ConfigError if the directory is on this machine, and there already."""
    path = _local_path(name, master, conf)
    if path is not None and os.path.lexists(path):
        raise _exists_already(name)


def _local_path(name: str, master: str, conf: Mapping[str, str]) -> str | None:
    """The path on this machine; None if Spark may look for it elsewhere."""
    is_elsewhere = any("fs.default" in key for key in conf) or any(map(os.environ.get, ELSEWHERE))
    if not is_local(master) or is_elsewhere:
        return None
    path = name.removeprefix("file://")
    return None if "://" in path else path.removeprefix("file:")


def _exists_already(name: str) -> ConfigError:
    return ConfigError(f"{name} exists already: name another directory, or remove this one")


def java_options(master: str, offsets: int) -> Mapping[str, str]:
    """The properties with which a read of so many `offsets` on `master` is fastest, as far as they
    are not those of any session."""
    return FULL_SPEED if is_local(master) and offsets > LONG_READ else {}


def read_to_files(
    spark: SparkSession,
    options: Mapping[str, str],
    ranges: Sequence[OffsetRange],
    output: str,
    file_format: str,
    *,
    as_text: bool,
    replaces: bool = False,
    progress: Progress,
) -> None:
    """Write the messages of `ranges` to a new directory `output`, which may be on any file system
    that Spark knows. `as_text`: key and value are UTF-8; another byte is an error with its topic,
    partition and offset, or with `replaces` becomes U+FFFD. Only those `options` count that say how
    to read; `ranges` says what. ConfigError if there is such a directory; after another error, or
    an interrupt, there is none."""
    how = {name: text for name, text in options.items() if name.lower() not in REPLACED_BY_RANGES}
    exact = ranges_to_json(ranges)
    reader = spark.read.format("kafka08").schema(READ_SCHEMA).options(**how)
    frame = reader.option("offsetRanges", exact).load()
    columns = [
        text_of(name, replaces=replaces) if as_text and name in TEXT_COLUMNS else name
        for name in frame.columns
    ]
    frame = frame.selectExpr(*columns)
    writer = frame.write.format(file_format).options(**FORMAT_OPTIONS.get(file_format, {}))
    with _new_directory(spark, output):
        _with_progress(spark, lambda: writer.save(output), progress)


def text_of(column: str, *, replaces: bool) -> str:
    """An SQL expression: a binary column of a read as text. Spark's casts let any byte pass, and
    its writers then replace those that are not UTF-8.

    The text of its error looks like one of ours to `known_cause`.
    """
    text = f"CAST({column} AS STRING)"
    if replaces:
        return f"{text} AS {column}"
    error = (
        f"concat('\\nkafka08.spark.NotText: [', topic, ',', partition, '] at offset ', offset, "
        f"': the {column} is not UTF-8. Use --binary with parquet, or --replace\\n')"
    )
    return (
        f"CASE WHEN {column} IS NULL OR is_valid_utf8({text}) THEN {text} "
        f"ELSE raise_error({error}) END AS {column}"
    )


def open_files(
    spark: SparkSession, path: str, file_format: str, key: str | None, value: str
) -> DataFrame:
    """Files as rows of key and value; ConfigError if a column is missing, or cannot be written.
    CSV has a header."""
    reader = spark.read.format(file_format).options(**FORMAT_OPTIONS.get(file_format, {}))
    frame = reader.load(path)
    for name in (key, value):
        if name is not None and name not in frame.columns:
            raise ConfigError(f"{path} has no column {name}; it has {', '.join(frame.columns)}")
    named = [frame[value].alias("value")]
    if key is not None:
        named.insert(0, frame[key].alias("key"))
    found = frame.select(*named)
    check_types(found.schema)
    return found


def write_to_topic(
    spark: SparkSession,
    frame: DataFrame,
    topic: str,
    options: Mapping[str, str],
    progress: Progress,
) -> None:
    """Append the rows of `frame` to `topic`."""
    writer = frame.write.format("kafka08").mode("append").option("topic", topic)
    _with_progress(spark, writer.options(**options).save, progress)


@contextmanager
def _new_directory(spark: SparkSession, name: str) -> Iterator[None]:
    """The block writes the directory. If it fails or is interrupted, what it has written is
    removed: an incomplete directory would make the next attempt fail."""
    jvm: Any = spark.sparkContext._jvm
    path = jvm.org.apache.hadoop.fs.Path(name)
    files = path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
    if files.exists(path):
        raise _exists_already(name)
    try:
        yield
    except BaseException:
        try:
            _cancel_jobs(spark)
            files.delete(path, True)
        except (Py4JError, OSError) as error:
            logger.warning("Cannot remove %s, which is incomplete: %s", name, type(error).__name__)
        raise


def _cancel_jobs(spark: SparkSession) -> None:
    """Returns when no task runs any more, or after CANCEL_S: a task that still runs would
    create its directory again."""
    context = spark.sparkContext
    context.cancelAllJobs()
    tracker = context._jsc.sc().statusTracker()
    deadline = SYSTEM_CLOCK.monotonic() + CANCEL_S
    while SYSTEM_CLOCK.monotonic() < deadline:
        if not any(executor.numRunningTasks() for executor in tracker.getExecutorInfos()):
            return
        SYSTEM_CLOCK.sleep(POLL_S)


def _with_progress(spark: SparkSession, job: Callable[[], None], progress: Progress) -> None:
    """Run `job` while another thread calls `progress`. The job stays in the caller's thread: in
    another one Spark would not find the session's data sources."""
    ended = threading.Event()
    tracker = spark.sparkContext.statusTracker()
    watcher = threading.Thread(
        target=_watch, args=(tracker, ended, progress), name="spark-progress", daemon=True
    )
    watcher.start()
    try:
        job()
    finally:
        ended.set()
        watcher.join()


def _watch(tracker: StatusTracker, ended: threading.Event, progress: Progress) -> None:
    while not ended.wait(POLL_S):
        try:
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        except Py4JError as error:
            logger.warning("Cannot show progress: %s", type(error).__name__)
            return
        known = [stage for stage in stages if stage is not None]
        progress(
            sum(stage.numCompletedTasks for stage in known), sum(stage.numTasks for stage in known)
        )
