"""The Delta Lake program of docs/spark-exactly-once.md, killed at the worst moments."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable
from contextlib import AbstractContextManager
from itertools import pairwise
from pathlib import Path
from typing import Final

from kafka08.producer import KafkaProducer, KafkaProducerConfig
from tests.docs.snippets import blocks
from tests.spark.program import spark_program
from tests.waiting import until

PAGE: Final = Path(__file__).parent.parent / "docs" / "spark-exactly-once.md"
SECONDS: Final = 600
"""For one run of the program."""
COUNT: Final = 200_000
"""Messages of the first batch: writing them takes long enough to be interrupted."""
CONF: Final = {
    "spark.databricks.delta.snapshotPartitions": "2",  # not 50: the tables are small
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
}
COMPARISON: Final = """
import sys
from pyspark.sql import SparkSession
from kafka08.spark import read_ranges

bootstrap, topic, result, *tables = sys.argv[1:]
spark = SparkSession.builder.config("spark.ui.enabled", "false").getOrCreate()
topics = read_ranges(spark, {"kafka.bootstrap.servers": bootstrap, "subscribe": topic})
expected = topics.select("topic", "partition", "offset", "value")
with open(result, "w") as file:
    for table in tables:
        rows = spark.table(table)
        surplus, missing = rows.exceptAll(expected).count(), expected.exceptAll(rows).count()
        print(f"{rows.count()} rows, {surplus} too many, {missing} missing", file=file)
"""


def settings_of(command: str) -> dict[str, str]:
    """The package and the settings of a spark-submit command."""
    options = list(pairwise(shlex.split(command)))
    [package] = [value for option, value in options if option == "--packages"]
    conf = dict(value.split("=", 1) for option, value in options if option == "--conf")
    return {**conf, "spark.jars.packages": package}


def exactly_once_into_delta(python: str, bootstrap: str, directory: Path) -> str:
    """ "works" if each message is once in both tables of the program, else what is in them.

    The driver dies in batch 0 while rows are written, then when the first table has batch 0 and the
    second does not; then batch 0 runs again as if the driver had died before it was in the
    checkpoint, and batch 1 follows. Delta's release is that of the page; `directory` is empty.
    """
    program = directory / "delta_once.py"
    code, command = (b.code for b in blocks(PAGE.read_text()) if program.name in (b.file or b.code))
    program.write_text(code)
    log, checkpoint, result = (directory / name for name in ("spark.log", "checkpoint", "result"))
    tables = [directory / "appended", directory / "merged"]
    names = [f"delta.`{table}`" for table in tables]
    topic = "into-delta"

    def send(count: int) -> None:
        config = KafkaProducerConfig({"bootstrap.servers": bootstrap})
        with KafkaProducer(config) as producer:
            producer.send_many(topic, [b"%d" % number for number in range(count)])

    def started(*arguments: str) -> AbstractContextManager[subprocess.Popen[bytes]]:
        conf = CONF | settings_of(command)
        environ = {**os.environ, "PYSPARK_PYTHON": python}
        return spark_program([python, *arguments], "local[2]", conf, environ=environ, log=log)

    def end(*arguments: str) -> None:
        with started(*arguments) as driver:
            assert driver.wait(SECONDS) == 0, log.read_text()[-4000:]

    def kill_when(condition: Callable[[], bool]) -> None:
        with started(*stream) as driver:
            until(lambda: condition() or driver.poll() is not None, "time to kill", SECONDS)
            assert driver.poll() is None, log.read_text()[-4000:]

    def has_batch(table: Path) -> bool:
        """Version 0 of a table is its creation."""
        return (table / "_delta_log" / f"{1:020}.json").exists()

    stream = [str(program), bootstrap, topic, *names, str(checkpoint)]
    send(COUNT)
    kill_when(lambda: any(tables[0].glob("*.parquet")))
    assert not has_batch(tables[0]), "too late: give it more messages"
    kill_when(lambda: has_batch(tables[0]))
    assert not has_batch(tables[1]), "too late: give it more messages"
    end(*stream)
    for name in ("0", ".0.crc"):
        (checkpoint / "commits" / name).unlink()
    send(1000)
    end(*stream)
    end("-c", COMPARISON, bootstrap, topic, str(result), *names)
    found = result.read_text().splitlines()
    once = f"{COUNT + 1000} rows, 0 too many, 0 missing"
    return "works" if found == [once, once] else "; ".join(found)
