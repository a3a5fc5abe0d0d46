"""A Connection that asks its broker for the versions that it serves."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka08.client.requests import offsets_request
from kafka08.errors import NoApiVersions
from kafka08.levels import Level
from kafka08.network.connection import Connection
from kafka08.protocol.fetch import MAGIC_1_VERSION, FetchRequest
from tests.producer.tcp_cluster import TcpCluster


@pytest.fixture
def broker() -> Iterator[TcpCluster]:
    with TcpCluster({"t": {0: 1}}, brokers=(1,)) as cluster:
        yield cluster


def connection_to(broker: TcpCluster, *, accepts_0_8: bool) -> Connection:
    host, _, port = broker.servers.partition(":")
    return Connection(host, int(port), negotiates=True, accepts_0_8=accepts_0_8)


@pytest.mark.parametrize(
    ("level", "fetch"),
    [(Level.V0_8_2, 0), (Level.V0_9_0, 1), (Level.V0_10_2, MAGIC_1_VERSION)],
)
def test_brokers_of_every_level_are_recognized(
    broker: TcpCluster, level: Level, fetch: int
) -> None:
    """The connection is usable afterwards. A broker of 0.8 closes the first one, and the second one
    does not ask."""
    broker.levels[1] = level
    with connection_to(broker, accepts_0_8=True) as connection:
        connection.send(offsets_request({}))
        assert connection.versions.highest(FetchRequest, 0, MAGIC_1_VERSION) == fetch
    assert broker.opened == (2 if level is Level.V0_8_2 else 1)


def test_a_broker_of_0_8_is_refused_by_default(broker: TcpCluster) -> None:
    """The error says which brokers return their versions."""
    with (
        connection_to(broker, accepts_0_8=False) as connection,
        pytest.raises(NoApiVersions, match=r"as brokers from 0\.9 on do"),
    ):
        connection.open()


def test_a_broker_that_is_starting_is_not_one_of_0_8(broker: TcpCluster) -> None:
    """A connection that is closed before any response tells nothing about the release."""
    broker.unborn = 1
    with (
        connection_to(broker, accepts_0_8=True) as connection,
        pytest.raises(NoApiVersions),
    ):
        connection.open()
