"""Streaming queries whose drivers die by kill -9, each at a random line of Spark's log.

A life is one query with its checkpoint and its files: killed KILLS times, with new messages after
each kill, then run to its end. The files must hold every message since the query began once. Ends
with 1 at the first life that does not.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

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


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="soak-stream", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    chosen = parser.parse_args(arguments)
    print(f"seed {chosen.seed}")
    rng = random.Random(chosen.seed)
    end = time.monotonic() + chosen.minutes * 60
    with tempfile.TemporaryDirectory() as name, EmbeddedCluster(brokers=1) as cluster:
        log = Path(name, "checker.log")
        java_home = make_java_home(Path(name, "java"), find_java(), log)
        topics = Topics(cluster.bootstrap, cluster.zookeeper.connect_string)
        with local_session("soak-stream", java_home, log) as spark:
            number = 0
            while time.monotonic() < end:
                number += 1
                directory = Path(name, f"life-{number}")
                directory.mkdir()
                if not live(number, spark, topics, directory, rng):
                    return 1
        topics.close()
    return 0


def live(
    number: int, spark: SparkSession, topics: Topics, directory: Path, rng: random.Random
) -> bool:
    """One life; whether its files are right."""
    topic = topics.filled([FIRST])
    written = FIRST
    began = False
    for _ in range(KILLS):
        driver = LockstepDriver(topics.bootstrap, topic, directory, os.environ)
        killed = driver.run(lines_max=rng.randrange(10, LINES_MAX))
        print(f"life {number}: {'killed at' if killed else 'ended with'} {driver.steps[-1][:110]}")
        # Until the first offsets are in the checkpoint, `latest` is looked up again.
        began = began or (directory / "checkpoint" / "offsets" / "0").exists()
        if began:
            more = rng.randrange(20)
            topics.append(topic, 0, more)
            written += more
    LockstepDriver(topics.bootstrap, topic, directory, os.environ).run()
    rows = collected(spark.read.parquet(str(directory / "output"))) if written > FIRST else []
    right = rows == rows_of(0, FIRST, written)
    print(f"life {number}: {len(rows)} rows, {'right' if right else 'WRONG'}", flush=True)
    return right


if __name__ == "__main__":
    sys.exit(main())
