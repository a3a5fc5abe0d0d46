"""Groups of ConsumerConnectors, with ZooKeeper and without brokers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka08.consumer import ConsumerConnector
from kafka08.zk.client import ZkClient
from tests.consumer.groups import MakeMember, PaperCluster


@pytest.fixture
def cluster(zk: ZkClient, zk_connect: str) -> PaperCluster:
    return PaperCluster(zk, zk_connect)


@pytest.fixture
def member(cluster: PaperCluster) -> Iterator[MakeMember]:
    """Makes members, and shuts them down at the end."""
    made: list[ConsumerConnector] = []

    def make(name: str, **keys: object) -> ConsumerConnector:
        made.append(cluster.member(name, **keys))
        return made[-1]

    yield make
    for connector in made:
        connector.shutdown()
