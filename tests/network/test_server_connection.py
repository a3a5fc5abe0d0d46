"""The order of requests and responses on one connection, without a socket."""

from __future__ import annotations

import struct
from itertools import repeat

import pytest

from kafka08.errors import ProtocolError
from kafka08.network.server_connection import (
    REQUESTS_MAX,
    RESPONSE_BYTES_MAX,
    RequestConnection,
    ResponseFrame,
    ServerConnection,
)
from kafka08.protocol.frame import FrameReader


def frame(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


class Echo:
    """Answers a payload with itself in brackets; parks on b"park", is silent on b"quiet"."""

    def __init__(self) -> None:
        self.seen: list[bytes] = []
        self.early: bytes | None = None

    def __call__(self, payload: memoryview, exchange: RequestConnection) -> ResponseFrame | None:
        text = bytes(payload)
        self.seen.append(text)
        if text == b"early":
            exchange.send_response(b"[early]")
            return None
        if text == b"close":
            exchange.finish("asked to")
            return b""
        if text.startswith(b"park"):
            return None
        return b"" if text == b"quiet" else b"[%b]" % text


def exchange() -> tuple[ServerConnection, Echo]:
    echo = Echo()
    return ServerConnection("client:1", FrameReader(1000), repeat(echo)), echo


def receive(target: ServerConnection, data: bytes) -> bool:
    room = target.reader.buffer()
    room[: len(data)] = data
    target.reader.advance(len(data))
    return target.handle_frames(lambda: 0.0)


def test_responses_come_in_the_order_of_requests() -> None:
    """Three frames in one delivery get three responses, in order, in one outbox."""
    target, _ = exchange()
    assert receive(target, frame(b"a") + frame(b"b") + frame(b"c")) is False
    assert [b"[a]", b"[b]", b"[c]"] == target.outbox


def test_a_parked_request_holds_back_everything_behind_it() -> None:
    """Requests behind a long poll are not decoded before its response."""
    target, echo = exchange()
    receive(target, frame(b"a") + frame(b"park") + frame(b"b"))
    assert [b"a", b"park"] == echo.seen
    assert [b"[a]"] == target.outbox
    target.send_response(b"[late]")
    target.handle_frames(lambda: 0.0)
    assert [b"[a]", b"[late]", b"[b]"] == target.outbox


def test_a_response_may_come_before_its_handler_returns() -> None:
    """A wait that is satisfied at once answers from inside the handler."""
    target, _ = exchange()
    receive(target, frame(b"early") + frame(b"b"))
    assert not target.parked
    assert [b"[early]", b"[b]"] == target.outbox


def test_a_request_without_a_response_leaves_no_piece() -> None:
    """With acks 0 no byte is sent, and the next request is handled."""
    target, _ = exchange()
    receive(target, frame(b"quiet") + frame(b"b"))
    assert [b"[b]"] == target.outbox


def test_a_response_after_the_end_is_dropped() -> None:
    """The client disconnects while its request is parked: the wait ends, and nothing is sent."""
    target, _ = exchange()
    abandoned: list[str] = []
    receive(target, frame(b"park"))
    target.on_close = lambda: abandoned.append("told")
    target.close()
    target.send_response(b"[late]")
    assert [] == target.outbox
    assert ["told"] == abandoned


def test_a_handler_may_close_the_connection() -> None:
    """After acks 0 with an error nothing behind it is handled; responses before it are still sent.
    Without any the connection closes at once."""
    target, echo = exchange()
    receive(target, frame(b"a") + frame(b"close") + frame(b"b"))
    assert [b"a", b"close"] == echo.seen
    assert (True, False, [b"[a]"]) == (target.ending, target.closed, target.outbox)
    target, _ = exchange()
    receive(target, frame(b"close"))
    assert target.closed


def test_others_get_their_turn() -> None:
    """No more than REQUESTS_MAX requests are handled in one go, and the rest in the next."""
    target, echo = exchange()
    assert receive(target, frame(b"x") * (REQUESTS_MAX + 5)) is True
    assert REQUESTS_MAX == len(echo.seen)
    assert target.handle_frames(lambda: 0.0) is False
    assert REQUESTS_MAX + 5 == len(echo.seen)


def test_few_large_responses_wait_for_the_client() -> None:
    """Small requests with large responses: a turn ends when these are a megabyte, and later ones
    are made once those were sent. A client that receives nothing holds no more memory."""
    size = RESPONSE_BYTES_MAX // 4 + 1
    seen: list[bytes] = []

    def handle(payload: memoryview, _: RequestConnection) -> bytes:
        seen.append(bytes(payload))
        return payload[:1].tobytes() * size

    target = ServerConnection("client:1", FrameReader(1000), repeat(handle))
    data = b"".join(frame(b"%d" % number) for number in range(10))
    assert receive(target, data) is True
    assert 4 == len(target.outbox)
    target.outbox.clear()
    assert target.handle_frames(lambda: 0.0) is True
    target.outbox.clear()
    assert target.handle_frames(lambda: 0.0) is False
    assert [b"%d" % number for number in range(10)] == seen


@pytest.mark.parametrize("size", [0, -1, 1001, 2**31 - 1])
def test_a_frame_that_cannot_be_ends_the_connection(size: int) -> None:
    """After all good frames before it, a size that is not positive or too large is an error."""
    target, echo = exchange()
    with pytest.raises(ProtocolError):
        receive(target, frame(b"a") + struct.pack(">i", size))
    assert [b"a"] == echo.seen
