"""When the producer's connections are tried again."""

from __future__ import annotations

import socket

import pytest

from kafka08.embedded.ports import free_ports
from kafka08.producer.network_client import RECONNECT_MAX_S, NetworkClient
from kafka08.runtime.threads import ThreadRuntime
from tests.mock_clock import MockClock
from tests.waiting import until


@pytest.fixture
def port() -> int:
    """One that refuses connections until somebody listens on it."""
    return free_ports(1)[0]


def test_a_broker_that_stays_away_is_asked_less_and_less(port: int) -> None:
    """The backoff doubles from reconnect.backoff.ms up to its limit, and begins again after a
    connection."""
    clock, address = MockClock(), ("127.0.0.1", port)
    client = NetworkClient(
        client_id="",
        max_in_flight=1,
        reconnect_s=0.01,
        max_idle_s=0.0,
        send_buffer=-1,
        receive_buffer=-1,
        runtime=ThreadRuntime(clock=clock),
    )

    def backoff() -> float:
        """That of the next attempt, which fails."""
        before = clock.monotonic()
        assert not client.is_ready(address, before)
        until(lambda: client.poll(0.1), "the refusal")
        retry_at = client._channels[address].retry_at
        clock.advance(1.0)
        return round(retry_at - before, 6)

    try:
        assert [backoff() for _ in range(7)] == [0.01, 0.02, 0.04, 0.08, 0.16, 0.2, RECONNECT_MAX_S]
        with socket.create_server(address) as server:
            client.is_ready(address, clock.monotonic())
            until(lambda: client.poll(0.1) or client.is_open(address), "a connection")
            server.accept()[0].close()
            until(lambda: client.poll(0.1), "its end")
        clock.advance(1.0)
        assert backoff() == 0.02
    finally:
        client.close()
