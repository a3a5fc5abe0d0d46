"""ConnectionPool: which caller gets which connection, and when it is closed."""

from __future__ import annotations

import pytest

from kafka08.client.pool import IDLE_PER_BROKER, ConnectionPool
from kafka08.errors import Closed, ConnectionFailed
from kafka08.network.connection import Connection
from kafka08.protocol.consumer_metadata import ConsumerMetadataRequest, ConsumerMetadataResponse
from kafka08.protocol.produce import ProduceRequest
from kafka08.protocol.types import Request, Response
from tests.network.scripted import ScriptedNetwork

QUESTION = ConsumerMetadataRequest("g")


@pytest.fixture
def network() -> ScriptedNetwork:
    def script(request: Request) -> Response | None:
        return (
            None if isinstance(request, ProduceRequest) else ConsumerMetadataResponse(0, 1, "", 1)
        )

    network = ScriptedNetwork()
    network.broker("b", 1, script)
    return network


@pytest.fixture
def pool(network: ScriptedNetwork) -> ConnectionPool:
    return ConnectionPool(lambda host, port: Connection(host, port, runtime=network.runtime()))


def test_a_connection_is_used_again(pool: ConnectionPool, network: ScriptedNetwork) -> None:
    """One after the other they share one; at the same time each has its own."""
    with pool.connection("b", 1) as first:
        first.send(QUESTION)
    with pool.connection("b", 1) as again, pool.connection("b", 1) as other:
        assert again is first
        assert other is not first
    assert len(network.opened) == 2


def test_a_connection_with_a_response_outstanding_is_not_kept(pool: ConnectionPool) -> None:
    """The next user would read another request's response."""
    with pool.connection("b", 1) as connection:
        connection.write(QUESTION)
    assert not connection.is_open


def test_idle_connections_are_limited(pool: ConnectionPool, network: ScriptedNetwork) -> None:
    """IDLE_PER_BROKER of them are kept, the rest is closed."""
    lent = [pool.connection("b", 1) for _ in range(IDLE_PER_BROKER + 1)]
    connections = [manager.__enter__() for manager in lent]
    for manager in lent:
        manager.__exit__(None, None, None)
    assert sum(connection.is_open for connection in connections) == IDLE_PER_BROKER


def test_a_stale_connection_is_replaced(pool: ConnectionPool, network: ScriptedNetwork) -> None:
    """The broker closed it while it was idle: no request fails."""
    with pool.connection("b", 1) as connection:
        connection.send(QUESTION)
    network.sockets[0].hang_up()
    with pool.connection("b", 1) as connection:
        assert connection.send(QUESTION)
    assert len(network.opened) == 2


def test_a_stale_connection_after_acks_0_is_an_error(
    pool: ConnectionPool, network: ScriptedNetwork
) -> None:
    """The broker said no in the only way it has; the sender must look for the leader again."""
    with pool.connection("b", 1) as connection:
        connection.write(ProduceRequest(0, 1000, []), has_response=False)
    network.sockets[0].hang_up()
    with (
        pytest.raises(ConnectionFailed, match="b:1 closed the connection after requests without"),
        pool.connection("b", 1),
    ):
        pass
    with pool.connection("b", 1) as connection:
        assert connection.send(QUESTION)


def test_close_ends_idle_and_lent_ones(pool: ConnectionPool, network: ScriptedNetwork) -> None:
    """Waiting requests fail at once; later ones raise Closed."""
    with pool.connection("b", 1) as idle:
        idle.send(QUESTION)
    with pool.connection("b", 1) as lent, pool.connection("b", 1) as kept:
        kept.send(QUESTION)
        pool.close()
        with pytest.raises(ConnectionFailed):
            lent.send(QUESTION)
    assert not kept.is_open
    with pytest.raises(Closed), pool.connection("b", 1):
        pass


def test_an_address_that_refuses_leaves_nothing_behind(pool: ConnectionPool) -> None:
    """ConnectionFailed on entering the block."""
    with pytest.raises(ConnectionFailed, match="nowhere:1"), pool.connection("nowhere", 1):
        pass


def test_a_close_before_the_connection_is_open_is_not_missed(network: ScriptedNetwork) -> None:
    """A thread that has its connection and has not opened it yet gets Closed: it would wait for its
    response as long as the timeout."""

    def make(host: str, port: int) -> Connection:
        closing.close()
        return Connection(host, port, runtime=network.runtime())

    closing = ConnectionPool(make)
    with pytest.raises(Closed), closing.connection("b", 1):
        raise AssertionError("a closed pool lends no connection")
