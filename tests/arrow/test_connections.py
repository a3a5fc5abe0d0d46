"""The connections that a process keeps between tasks."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from contextlib import closing

import pytest

from kafka08.arrow import connections
from kafka08.arrow.settings import ClusterAddress, ReadSettings
from kafka08.client.cluster import ClusterClient
from kafka08.errors import NoBrokersAvailable
from kafka08.structs import NO_LEADER
from tests.client.fake_cluster import FakeCluster

ADDRESS = ClusterAddress((("b1", 9092),), negotiates=False)


@pytest.fixture(autouse=True)
def _nothing_kept() -> None:
    connections.close_all()


def test_readers_and_writers_have_clients_of_their_own() -> None:
    """A write may create topics; a read of the same cluster must not."""
    read = connections.cluster_at(ADDRESS, ReadSettings())
    assert connections.cluster_at(ADDRESS, ReadSettings()) is read
    assert connections.cluster_at(ADDRESS, ReadSettings(), creates_topics=True) is not read


def test_a_process_keeps_the_clients_that_it_used_last() -> None:
    """With a client id for each query the cache used to grow without end."""
    named = [ReadSettings(client_id=f"query-{n}") for n in range(connections.KEPT + 1)]
    first, *_ = kept = [connections.cluster_at(ADDRESS, settings) for settings in named[:-1]]
    assert connections.cluster_at(ADDRESS, named[0]) is first
    connections.cluster_at(ADDRESS, named[-1])
    assert connections.cluster_at(ADDRESS, named[0]) is first
    assert connections.cluster_at(ADDRESS, named[1]) is not kept[1]


def test_a_silent_address_takes_the_time_of_a_plan_not_of_its_tries() -> None:
    """It used to hold a plan for 51 socket timeouts, 1,541 s."""
    settings = ReadSettings(poll_timeout_ms=300, socket_timeout_ms=30_000)
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        address = ClusterAddress((silent.getsockname(),))
        began = time.monotonic()
        with pytest.raises(NoBrokersAvailable, match="did not respond to a MetadataRequest"):
            connections.resolved(address, settings)
    assert time.monotonic() - began < 10


@pytest.mark.parametrize(
    ("is_used", "asked"),
    [
        (lambda topic: topic == "t", {"b1"}),
        (lambda topic: topic == "missing", {"b1", "b2", "b3"}),
        (lambda _: True, {"b1", "b2"}),
    ],
)
def test_only_leaders_that_are_used_are_asked_for_versions(
    monkeypatch: pytest.MonkeyPatch, is_used: Callable[[str], bool], asked: set[str]
) -> None:
    """A silent broker that leads nothing used to hold a read for 90 s. Without a leader all are
    asked."""
    cluster = FakeCluster({"t": {0: 1, 1: NO_LEADER}, "u": {0: 2}}, brokers=(1, 2, 3))
    client = ClusterClient(cluster.bootstrap, runtime=cluster.runtime)
    hosts = set()
    monkeypatch.setattr(connections, "new_cluster", lambda *_: client)
    monkeypatch.setattr(connections, "_is_of_0_8", lambda host, *_: hosts.add(host))
    found = connections.resolved(ClusterAddress((("b1", 9092),)), ReadSettings(), is_used)
    assert hosts == asked
    assert found.negotiates
