"""ChannelManager sends every request until the broker answers it, in order, whatever the broker
does."""

from __future__ import annotations

import queue
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kafka08.broker.controller import broker_channel
from kafka08.broker.controller.broker_channel import BrokerChannel, ChannelManager, Outgoing
from kafka08.broker.controller.request_batch import BrokerRequest
from kafka08.protocol.codec import encode_request, encode_response
from kafka08.protocol.types import Request, Response
from kafka08.protocol.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse
from kafka08.protocol_version import ProtocolVersion
from kafka08.structs import Broker
from tests.broker.thread_broker import ThreadBroker
from tests.network.scripted import Hangup, ScriptedNetwork

DEADLINE_S = 20.0
PORT = 9092
CORRELATION_ID = 7
FIRST, SECOND = (UpdateMetadataRequest(9, epoch, [], []) for epoch in (1, 2))
RESPONSE = UpdateMetadataResponse(0)
MALFORMED = bytes([0, 0, 0, 5, 0, 0, 0, CORRELATION_ID, 0])
"""Its error code has one byte."""


class Channels:
    """A ChannelManager with one broker, and the responses it got."""

    def __init__(
        self, port: int, connect: Callable[..., socket.socket], timeout_ms: int = 60_000
    ) -> None:
        self._responses: queue.SimpleQueue[tuple[Request, Response]] = queue.SimpleQueue()
        runtime: Any = ThreadBroker(connect=connect)
        self.manager = ChannelManager(
            runtime,
            controller_id=9,
            client_id="me",
            timeout_ms=timeout_ms,
            protocol=ProtocolVersion.V0_10_2_IV0,
            on_response=lambda asked, response: self._responses.put((asked.request, response)),
        )
        self.manager.add(Broker(1, "127.0.0.1", port))

    def send(self, *requests: Request) -> None:
        self.manager.send([BrokerRequest(1, request) for request in requests], CORRELATION_ID)

    def next_response(self) -> tuple[Request, Response]:
        """The next request that got a response, with the response."""
        return self._responses.get(timeout=DEADLINE_S)


@pytest.fixture(autouse=True)
def no_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_channel, "BACKOFF_S", 0)


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(DEADLINE_S)
        yield server


def accept_first(listener: socket.socket) -> socket.socket:
    """The next connection, after FIRST arrived on it."""
    connection, _ = listener.accept()
    connection.settimeout(DEADLINE_S)
    frame = encode_request(FIRST, CORRELATION_ID, "me")
    assert connection.recv(len(frame), socket.MSG_WAITALL) == frame
    return connection


@pytest.mark.parametrize(
    "failure",
    [
        Hangup(),
        None,
        b"HTTP/1.1 400 Bad Request",
        encode_response(RESPONSE, CORRELATION_ID + 1),
        MALFORMED,
    ],
    ids=["closed", "silent", "no broker", "to another request", "malformed"],
)
def test_a_request_is_sent_until_it_is_answered(failure: bytes | Hangup | None) -> None:
    """After anything but the right response the same request is sent on a new connection. Later
    requests wait."""
    network = ScriptedNetwork()
    failures = [failure, failure]

    def script(_: Request) -> Response | bytes | None:
        response = failures.pop() if failures else RESPONSE
        if isinstance(response, Hangup):
            raise response
        return response

    network.broker("127.0.0.1", PORT, script)
    channels = Channels(PORT, network.connect)
    channels.send(FIRST, SECOND)
    assert channels.next_response() == (FIRST, RESPONSE)
    assert channels.next_response() == (SECOND, RESPONSE)
    assert [request for _, request in network.asked] == [FIRST, FIRST, FIRST, SECOND]
    assert len(network.opened) == 3
    channels.manager.close()


def test_a_request_waits_for_its_broker_to_listen() -> None:
    """The channel retries until its broker accepts a connection."""
    network = ScriptedNetwork()
    tries = []

    def connect(address: tuple[str, int], timeout: float) -> socket.socket:
        tries.append(address)
        if len(tries) == 3:
            network.broker(*address, lambda _: RESPONSE)
        return network.connect(address, timeout)

    channels = Channels(PORT, connect)
    channels.send(FIRST)
    assert channels.next_response() == (FIRST, RESPONSE)
    channels.manager.close()


def test_a_silent_broker_is_asked_again_after_controller_socket_timeout_ms(
    listener: socket.socket,
) -> None:
    """A broker that does not respond gets the request again on a new connection (on real
    sockets)."""
    channels = Channels(listener.getsockname()[1], socket.create_connection, timeout_ms=20)
    channels.send(FIRST)
    with accept_first(listener) as silent, accept_first(listener):
        channels.manager.close()
        assert silent.recv(1) == b""


def test_closing_ends_a_wait_for_a_response(listener: socket.socket) -> None:
    """close() ends the channel and its connection at once; queued requests are not sent (on real
    sockets)."""
    channels = Channels(listener.getsockname()[1], socket.create_connection)
    channels.send(FIRST, SECOND)
    with accept_first(listener) as silent:
        channels.manager.remove(1)
        assert silent.recv(1) == b""


def test_an_unexpected_exception_does_not_end_the_channel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An unexpected exception does not end the channel: a request is sent again, and a failed
    handling of a response is logged. Otherwise the broker would get no more requests of this
    controller."""
    network = ScriptedNetwork()
    network.broker("127.0.0.1", PORT, lambda _: RESPONSE)
    channels = Channels(PORT, network.connect)
    attempt, note, failures = BrokerChannel._try, channels.manager._on_response, [1, 1]

    def fail_once(channel: BrokerChannel, outgoing: Outgoing) -> Response:
        if len(failures) == 2:
            failures.pop()
            raise RuntimeError("a bug")
        return attempt(channel, outgoing)

    def note_but_first(request: BrokerRequest, response: Response) -> None:
        note(request, response)
        if failures:
            failures.pop()
            raise RuntimeError("another")

    monkeypatch.setattr(BrokerChannel, "_try", fail_once)
    monkeypatch.setattr(channels.manager._channels[1], "_on_response", note_but_first)
    channels.send(FIRST, SECOND)
    assert channels.next_response() == (FIRST, RESPONSE)
    assert channels.next_response() == (SECOND, RESPONSE)
    channels.manager.close()
