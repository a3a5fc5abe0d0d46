"""Where logs start and end: the questions to their leaders, and which errors pass."""

from __future__ import annotations

import pytest

from kafka08.client.cluster import ClusterClient
from kafka08.client.log_offsets import log_ends, offsets_or_errors
from kafka08.errors import ConnectionFailed, LeaderNotAvailable, OffsetOutOfRange, UnknownError
from kafka08.protocol.offsets import OffsetsRequest
from kafka08.protocol.types import Request, Response
from kafka08.structs import LATEST_OFFSET, NO_LEADER, TopicPartition
from tests.client.fake_cluster import FakeCluster

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture
def cluster() -> FakeCluster:
    cluster = FakeCluster({"t": {0: 1, 1: 2}})
    cluster.append(T0, b"a", b"b")
    return cluster


@pytest.fixture
def client(cluster: FakeCluster) -> ClusterClient:
    return ClusterClient(
        cluster.bootstrap,
        runtime=cluster.runtime,
    )


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


def test_one_partition_without_a_response_spoils_no_other(
    cluster: FakeCluster, client: ClusterClient
) -> None:
    """Without a leader, refused by its leader, or led by a broker that is gone: each has its error,
    in the order of the question, and the rest have their offsets."""
    cluster.leaders |= {TopicPartition("t", n): leader for n, leader in ((2, NO_LEADER), (3, 1))}
    cluster.refuse(TopicPartition("t", 3), *[OffsetOutOfRange.code] * 2)
    cluster.network.remove("b2", 9092)
    wanted = [TopicPartition("t", n) for n in range(4)]
    found = offsets_or_errors(client, dict.fromkeys(wanted, LATEST_OFFSET))
    assert list(found) == wanted
    kinds = [type(response) for response in found.values()]
    assert kinds == [list, ConnectionFailed, LeaderNotAvailable, OffsetOutOfRange]
    assert found[T0] == [2]


def test_no_request_has_more_than_a_broker_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker of ours counts topics and partitions, and closes the connection of one with more: a
    cluster with more topics was unreadable."""
    monkeypatch.setattr(OffsetsRequest, "ITEMS_MAX", 4)
    wanted = [TopicPartition(f"t{n}", 0) for n in range(5)]
    cluster = FakeCluster({tp.topic: {0: 1} for tp in wanted})
    asked: list[int] = []

    def respond(request: Request) -> Response | None:
        if isinstance(request, OffsetsRequest):
            asked.append(sum(1 + len(topic.partitions) for topic in request.topics))
        return cluster.respond(1, request)

    cluster.network.broker("b1", 9092, respond)
    client = ClusterClient(cluster.bootstrap, runtime=cluster.runtime)
    assert dict.fromkeys(wanted, 0) == log_ends(client, wanted)
    assert [4, 4, 2] == asked
