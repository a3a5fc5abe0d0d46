"""The tasks of one worker share connections and metadata."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING

from kafka08.embedded.cluster import EmbeddedCluster
from tests.scrape import Scrape
from tests.spark.filling import Topics, collected, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TASKS = 40
WORKERS = 2
OF_THE_PLAN = 4
"""Connections: two to learn whether brokers tell their versions, one or two to ask for offsets."""


def handled(cluster: EmbeddedCluster) -> Counter[str]:
    """API → requests that the broker has handled. A client asks for versions once a connection."""
    name = "kafka_network_requestmetrics_requests_total"
    samples = Scrape(cluster.brokers[0]).samples
    return Counter({s.labels["request"]: int(s.value) for s in samples if s.name == name})


def test_tasks_share_connections(spark: SparkSession) -> None:
    """A worker reads all its tasks through one connection, without Metadata requests: the plan has
    the leaders."""
    with EmbeddedCluster(1, {"metrics.port": 0}, level="0.10.2") as cluster:
        with closing(Topics(cluster.bootstrap, cluster.zookeeper.connect_string)) as topics:
            topic = topics.filled([10 * TASKS])
            before = handled(cluster)
            read = topics.read(spark, subscribe=topic, minPartitions=str(TASKS))
            assert collected(read) == rows_of(0, 0, 10 * TASKS)
        made = handled(cluster) - before
    assert made["Fetch"] >= TASKS
    assert made["Metadata"] <= OF_THE_PLAN
    assert made["ApiVersions"] <= OF_THE_PLAN + WORKERS
