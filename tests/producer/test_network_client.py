"""When the producer's connections are tried again."""

from __future__ import annotations

import logging
import socket

import pytest

from kafka08.embedded.ports import free_ports
from kafka08.errors import ProtocolError
from kafka08.producer import network_client
from kafka08.producer.broker_channel import ClientResponse
from kafka08.producer.network_client import RECONNECT_MAX_S, LostRequests, NetworkClient
from kafka08.protocol.codec import encode_response
from kafka08.protocol.metadata import MetadataRequest, MetadataResponse
from kafka08.runtime import Buffers, ClientRuntime
from kafka08.runtime.threads import THREADS, ThreadRuntime
from tests.mock_clock import MockClock
from tests.waiting import until


@pytest.fixture
def port() -> int:
    """One that refuses connections until somebody listens on it."""
    return free_ports(1)[0]


def client_with(runtime: ClientRuntime, *, negotiates: bool = False) -> NetworkClient:
    return NetworkClient(
        client_id="",
        negotiates=negotiates,
        max_in_flight=5,
        reconnect_s=0.01,
        max_idle_s=0.0,
        buffers=Buffers(-1, -1),
        runtime=runtime,
    )


def test_an_outage_is_one_warning(port: int, caplog: pytest.LogCaptureFixture) -> None:
    """The first failure to connect is a warning with its cause, for nothing else is said until
    max.block.ms is over; the next ones are not, until the broker was there again."""
    caplog.set_level(logging.INFO)
    clock, address = MockClock(), ("127.0.0.1", port)
    client = client_with(ThreadRuntime(clock=clock))

    def fail() -> None:
        client.is_ready(address, clock.monotonic())
        until(lambda: client.poll(0.1), "the refusal")
        clock.advance(1.0)

    def levels() -> list[str]:
        return [record.levelname for record in caplog.records]

    try:
        fail()
        fail()
        assert levels() == ["WARNING", "INFO"]
        assert f"cannot connect to 127.0.0.1:{port}: " in caplog.records[0].message
        with socket.create_server(address) as server:
            client.is_ready(address, clock.monotonic())
            until(lambda: client.poll(0.1) or client.is_open(address), "a connection")
            server.accept()[0].close()
            until(lambda: client.poll(0.1), "its end")
        clock.advance(1.0)
        fail()
        fail()
        assert levels() == ["WARNING", "INFO", "INFO", "WARNING", "INFO"]
    finally:
        client.close()


def test_a_broker_that_stays_away_is_asked_less_and_less(port: int) -> None:
    """The backoff doubles from reconnect.backoff.ms up to its limit, and begins again after a
    connection."""
    clock, address = MockClock(), ("127.0.0.1", port)
    client = client_with(ThreadRuntime(clock=clock))

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


def test_a_broker_that_does_not_say_its_versions_ends_no_poll_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One that is suspended, say: the sender slept until it came back."""
    monkeypatch.setattr(network_client, "CONNECT_S_MAX", 0.2)
    client = client_with(THREADS, negotiates=True)
    try:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            client.is_ready(silent.getsockname(), THREADS.monotonic())
            began = THREADS.monotonic()
            until(lambda: client.poll(20.0), "the end of the attempt")
            assert THREADS.monotonic() - began < 10
    finally:
        client.close()


def test_responses_before_a_bad_one_count() -> None:
    """The first request is answered and the second lost with its connection, although both
    responses arrive at once."""
    client = client_with(THREADS)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        until(lambda: client.poll(0.01) or client.is_ready(address, 0.0), "a connection")
        broker, _ = server.accept()
        with broker:
            good, bad = (
                client.send(
                    address,
                    MetadataRequest([]),
                    None,
                    now=0.0,
                    deadline=THREADS.monotonic() + 10,
                    expects_response=True,
                )
                for _ in range(2)
            )
            answer = MetadataResponse([], [])
            broker.sendall(
                encode_response(answer, good.correlation_id)
                + encode_response(answer, bad.correlation_id + 1)
            )
            told = client.poll(10.0)
    client.close()
    assert told[0] == ClientResponse(good, answer)
    [lost] = told[1:]
    assert isinstance(lost, LostRequests)
    assert lost.sent == [bad]
    assert isinstance(lost.error, ProtocolError)
