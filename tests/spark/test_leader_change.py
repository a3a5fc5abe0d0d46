"""A job goes on when the leader it reads from is killed."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kafka08.embedded import EmbeddedCluster
from tests.spark.filling import Topics, collected, rows_of
from tests.spark.points import register_points
from tests.spark.test_stream import wait_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOPIC = "moved"


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(brokers=2) as running:
        running.create_topic(TOPIC, 2, 2)
        yield running


def test_the_leader_is_killed_during_a_read(
    spark: SparkSession, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    """After kill -9, when both tasks have returned their first rows, the rest comes from the new
    leader: no row twice, none missing, and no task is run again (local mode would not)."""
    register_points(spark)
    hold = tmp_path / "hold-read"
    hold.touch()
    with closing(
        Topics(cluster.bootstrap, cluster.zookeeper.connect_string, required_acks=-1)
    ) as topics:
        for partition in (0, 1):
            topics.append(TOPIC, partition, 300)
        frame = (
            spark.read.format("kafka08-points")
            .option("points", str(tmp_path))
            .option("kafka.bootstrap.servers", cluster.bootstrap)
            .option("subscribe", TOPIC)
            .option("kafka.fetch.message.max.bytes", "500")
            .load()
        )
        victim = cluster.leader_of(TOPIC, 0)
        with ThreadPoolExecutor(1) as pool:
            rows = pool.submit(collected, frame)
            try:
                wait_for(lambda: len(list(tmp_path.glob("held-read-*"))) == 2, "both tasks")
                cluster.kill(victim)
            finally:
                hold.unlink()
            assert rows.result(90) == rows_of(0, 0, 300) + rows_of(1, 0, 300)
    assert cluster.leader_of(TOPIC, 0) is not victim
