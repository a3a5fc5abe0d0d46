"""Fixtures of the migration's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka08.embedded import EmbeddedCluster


@pytest.fixture(scope="package")
def live_cluster() -> Iterator[EmbeddedCluster]:
    """Two brokers of ours, which tests may kill and start again: use topics of your own name."""
    config = {
        "offsets.topic.num.partitions": "4",
        "offsets.topic.replication.factor": "2",
        "zookeeper.session.timeout.ms": "3000",
    }
    with EmbeddedCluster(brokers=2, level="0.8.2", config=config) as cluster:
        yield cluster
