"""Where logs start and end: the questions to their leaders, and which errors pass."""

from __future__ import annotations

import pytest

from kafka08.client.cluster import ClusterClient
from kafka08.client.log_offsets import log_ends
from kafka08.errors import OffsetOutOfRange, UnknownError
from kafka08.structs import TopicPartition
from tests.client.fake_cluster import FakeCluster

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture
def cluster() -> FakeCluster:
    cluster = FakeCluster({"t": {0: 1, 1: 2}})
    cluster.append(T0, b"a", b"b")
    return cluster


@pytest.fixture
def client(cluster: FakeCluster) -> ClusterClient:
    return ClusterClient(cluster.bootstrap, connect=cluster.network.connect, clock=cluster.clock)


def test_a_log_that_is_rolled_is_asked_again(cluster: FakeCluster, client: ClusterClient) -> None:
    """0.8 answers UnknownError when its segments change under the question."""
    cluster.refuse(T0, UnknownError.code, UnknownError.code)
    assert log_ends(client, [T0, T1]) == {T0: 2, T1: 0}
    assert len(cluster.clock.slept) == 2


def test_an_unknown_error_that_stays_is_raised(cluster: FakeCluster, client: ClusterClient) -> None:
    """When the tries are used up, naming the partition."""
    cluster.refuse(T0, *[UnknownError.code] * 4)
    with pytest.raises(UnknownError, match=r"\[t,0\] at b1:9092"):
        log_ends(client, [T0, T1])


def test_an_error_that_does_not_pass_wins(cluster: FakeCluster, client: ClusterClient) -> None:
    """It is raised at once, although the other partition could be asked again."""
    cluster.refuse(T0, UnknownError.code)
    cluster.refuse(T1, OffsetOutOfRange.code)
    with pytest.raises(OffsetOutOfRange):
        log_ends(client, [T0, T1])
    assert cluster.clock.slept == []
