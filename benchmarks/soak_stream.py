"""Streaming queries whose drivers die by kill -9, each at a random line of Spark's log.

A life is one query with its checkpoint and its files: killed KILLS times, fewer if the minutes are
over, with new messages after each kill, then run to its end. The files must hold every message
since the query began once. Exits 1 otherwise.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.soak import Outcome, announced, say, soak, soak_parser
from kafka08.embedded import EmbeddedCluster
from kafka08.embedded.java import find_java
from kafka08.embedded.spark_java import make_java_home
from kafka08.spark.session import local_session
from tests.spark.filling import Topics, collected, rows_of
from tests.spark.lockstep import LockstepDriver

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KILLS: Final = 6
LINES_MAX: Final = 120
"""About as many as a run of two batches logs; one that logs fewer is not killed."""
FIRST: Final = 20
"""Messages that are there before the query begins, at `latest`."""


def main() -> int:
    options = soak_parser("soak-stream", __doc__).parse_args()
    stop_at = time.monotonic() + options.minutes * 60
    with (
        announced(options),
        tempfile.TemporaryDirectory() as name,
        EmbeddedCluster(brokers=1) as cluster,
        closing(Topics(cluster.bootstrap, cluster.zookeeper.connect_string)) as topics,
    ):
        log = Path(name, "checker.log")
        java_home = make_java_home(Path(name, "java"), find_java(), log)
        with local_session("soak-stream", java_home, log) as spark:

            def live(number: int, rng: random.Random) -> Outcome:
                directory = Path(name, f"life-{number}")
                directory.mkdir()
                return Life(topics, directory, rng).outcome(spark, stop_at)

            return soak(options, live)


class Life:
    def __init__(self, topics: Topics, directory: Path, rng: random.Random) -> None:
        self._topics = topics
        self._topic = topics.filled([FIRST])
        self._directory = directory
        self._rng = rng
        self._written = FIRST

    def outcome(self, spark: SparkSession, stop_at: float) -> Outcome:
        began, kills = False, 0
        while kills < KILLS and (not kills or time.monotonic() < stop_at):
            kills += 1
            self._run(self._rng.randrange(10, LINES_MAX))
            # Until the first offsets are in the checkpoint, `latest` is looked up again.
            began = began or (self._directory / "checkpoint" / "offsets" / "0").exists()
            if began:
                more = self._rng.randrange(20)
                self._topics.append(self._topic, 0, more)
                self._written += more
        self._run()
        files, rows = self._directory / "output", []
        if self._written > FIRST:
            rows = collected(spark.read.parquet(str(files)))
        is_right = rows == rows_of(0, FIRST, self._written)
        wrong = [] if is_right else [f"{len(rows)} rows of {self._written - FIRST} in {files}"]
        return Outcome(f"{kills} kills, {len(rows)} rows", wrong)

    def _run(self, lines_max: int = sys.maxsize) -> None:
        driver = LockstepDriver(self._topics.bootstrap, self._topic, self._directory, os.environ)
        is_killed = driver.run(lines_max=lines_max)
        say(f"{'killed at' if is_killed else 'ended with'} {driver.steps[-1][:110]}")


if __name__ == "__main__":
    sys.exit(main())
