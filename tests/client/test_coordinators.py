"""Coordinators: what many groups committed, asked for in few turns and again where it may help."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from threading import Barrier
from typing import Any

import pytest

from kafka08.client import ClusterClient
from kafka08.client.coordinators import IN_FLIGHT_MAX, PARTITIONS_IN_FLIGHT, Coordinators
from kafka08.errors import KafkaError, NotCoordinatorForConsumer
from kafka08.network.connection import Connection
from kafka08.protocol.offset_fetch import OffsetFetchRequest
from kafka08.protocol.types import Request, Response
from kafka08.structs import Broker, TopicPartition
from tests.consumer.store_cluster import HOST, PORT, StoreCluster

TPS = [TopicPartition("t", number) for number in range(4)]


class Finder:
    """Finds the one broker, and notes for which groups."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def __call__(self, groups: Sequence[str]) -> dict[str, Broker | KafkaError]:
        self.calls.append(list(groups))
        return dict.fromkeys(groups, Broker(1, HOST, PORT))


@pytest.fixture
def cluster() -> StoreCluster:
    cluster = StoreCluster()
    cluster.committed.update({TPS[0]: 10, TPS[1]: 20})
    return cluster


def coordinators(client: ClusterClient, cluster: StoreCluster, find: Finder) -> Coordinators:
    return Coordinators(client, cluster.clock, timeout_s=1, find=find)


def test_a_group_whose_coordinator_moved_is_requested_again(cluster: StoreCluster) -> None:
    """Only that group is requested, at its new coordinator; the others have their offsets
    already."""
    find = Finder()
    cluster.refuse(TPS[0], 0, NotCoordinatorForConsumer.code, 0)
    with closing(cluster.client()) as client:
        found = coordinators(client, cluster, find).fetch_found(["a", "b", "c"], TPS)
    assert found == {group: {TPS[0]: 10, TPS[1]: 20} for group in "abc"}
    assert find.calls == [["a", "b", "c"], ["b"]]


def test_a_group_without_a_response_has_the_reason(cluster: StoreCluster) -> None:
    """It gets the error after the timeout, without delaying the others."""
    cluster.refuse(TPS[0], 0, *[NotCoordinatorForConsumer.code] * 100)
    with closing(cluster.client()) as client:
        found = coordinators(client, cluster, Finder()).fetch_found(["a", "b"], TPS)
    assert found["a"] == {TPS[0]: 10, TPS[1]: 20}
    assert isinstance(found["b"], NotCoordinatorForConsumer)
    assert cluster.clock.monotonic() >= 1


@pytest.mark.parametrize(
    ("groups", "partitions", "most"),
    [
        (IN_FLIGHT_MAX + 9, 1, IN_FLIGHT_MAX),
        (6, PARTITIONS_IN_FLIGHT // 4, 4),
        (2, PARTITIONS_IN_FLIGHT + 1, 1),
    ],
)
def test_requests_in_flight_fit_into_sockets(
    cluster: StoreCluster, monkeypatch: pytest.MonkeyPatch, groups: int, partitions: int, most: int
) -> None:
    """Otherwise client and broker could wait for each other to read. One request is always sent."""
    write, ahead = Connection.write, []

    def written(self: Connection, request: Request, **keys: Any) -> None:
        ahead.append(self.in_flight if isinstance(request, OffsetFetchRequest) else 0)
        write(self, request, **keys)

    monkeypatch.setattr(Connection, "write", written)
    tps = [TopicPartition("t", number) for number in range(partitions)]
    names = [f"group-{number}" for number in range(groups)]
    with closing(cluster.client()) as client:
        found = coordinators(client, cluster, Finder()).fetch_found(names, tps)
    assert list(found) == names
    assert max(ahead) + 1 == most


def test_coordinators_are_asked_side_by_side(cluster: StoreCluster) -> None:
    """Each is asked while the other has not responded yet."""
    both = Barrier(2)

    def respond(request: Request) -> Response:
        both.wait(timeout=60.0)
        return cluster.respond(request)

    brokers = {"a": Broker(1, HOST, PORT), "b": Broker(2, "other", PORT)}
    for broker in brokers.values():
        cluster.network.broker(broker.host, broker.port, respond)
    with closing(cluster.client()) as client:
        asked = Coordinators(client, cluster.clock, timeout_s=1, find=lambda _: brokers)
        found = asked.fetch_found(list(brokers), TPS)
    assert found == {group: {TPS[0]: 10, TPS[1]: 20} for group in brokers}
