"""The driver of a stream dies by kill -9 while it ends a batch: committed messages are all once.

One query lives through all of it: killed, started again, killed at the next step.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from kafka08.arrow import scan
from kafka08.arrow.settings import ReadSettings
from kafka08.embedded.cluster import EmbeddedCluster
from kafka08.producer import KafkaProducer
from tests.spark.lockstep import ROOT
from tests.waiting import until

STEPS = ("journal", "first-end", "between-ends", "ended")


@pytest.mark.spark
@pytest.mark.timeout(900)
def test_the_driver_is_killed_at_each_step(tmp_path: Path) -> None:
    """Before it journals a batch, before it commits the first transaction, when one of two is
    committed, and when all are and Spark does not know it. At the end a worker dies with a task
    that has written, and the task runs again. Readers of committed messages have each once, and
    wait for nothing that was left open."""
    with EmbeddedCluster(1, level="0.11.0") as cluster:
        for topic in ("from", "to"):
            cluster.create_topic(topic, 2)
        filled = 0
        for step in STEPS:
            filled = filled_up(cluster.bootstrap, filled)
            hold = tmp_path / f"hold-{step}"
            hold.touch()
            with driver(cluster.bootstrap, tmp_path) as process:
                [held] = until(partial(found, tmp_path, f"held-{step}-*"), step, 240)
                os.killpg(process.pid, signal.SIGKILL)
                os.kill(int(held.name.rpartition("-")[2]), signal.SIGKILL)
            hold.unlink()
        filled = filled_up(cluster.bootstrap, filled)
        (tmp_path / "kill-written").touch()
        with driver(cluster.bootstrap, tmp_path) as process:
            assert process.wait(240) == 0, (tmp_path / "spark.log").read_text()[-4000:]
        assert not (tmp_path / "kill-written").exists()
        assert committed(cluster.bootstrap) == list(range(filled))


def found(directory: Path, pattern: str) -> list[Path]:
    return list(directory.glob(pattern))


def filled_up(bootstrap: str, filled: int) -> int:
    """More messages, numbered on. Returns how many there are."""
    with KafkaProducer(bootstrap_servers=bootstrap, acks="all") as producer:
        for partition in (0, 1):
            numbers = range(filled + partition, filled + 200, 2)
            values = [b"%d" % number for number in numbers]
            producer.send_many("from", values, partition=partition).result(60)
    return filled + 200


@contextmanager
def driver(bootstrap: str, directory: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The program, killed at the end with its Java if it still runs."""
    command = [sys.executable, "-m", "tests.spark.sink_driver", bootstrap, "from", "to"]
    with (directory / "output").open("ab") as output:
        process = subprocess.Popen(
            [*command, str(directory)],
            cwd=ROOT,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def committed(bootstrap: str) -> list[int]:
    settings = ReadSettings(isolation_level="read_committed")
    with scan(bootstrap, "to", columns=["value"], settings=settings) as found:
        return sorted(int(value) for batch in found for value in batch["value"].to_pylist())
