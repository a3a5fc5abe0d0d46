"""Connection: order, timeouts, and responses that are not what they should be."""

from __future__ import annotations

import socket
import threading
import tracemalloc
from collections.abc import Iterator
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.errors import ConnectionFailed, ProtocolError, RequestTimeout
from kafka08.network.connection import Connection
from kafka08.protocol import codec
from kafka08.protocol.consumer_metadata import ConsumerMetadataRequest, ConsumerMetadataResponse
from kafka08.protocol.fetch import (
    FetchPartitionResponse,
    FetchRequest,
    FetchResponse,
    FetchTopicResponse,
)
from kafka08.protocol.metadata import MetadataRequest, MetadataResponse
from kafka08.protocol.offset_commit import (
    OffsetCommitPartition,
    OffsetCommitPartitionResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitTopic,
    OffsetCommitTopicResponse,
)
from kafka08.protocol.produce import ProduceRequest
from kafka08.protocol.types import Request, Response
from kafka08.runtime import Buffers
from kafka08.runtime.threads import ThreadRuntime
from tests.memory import resident_bytes
from tests.mock_clock import MockClock
from tests.network.scripted import Hangup, ScriptedNetwork, ScriptedSocket
from tests.waiting import until

RESPONSE = ConsumerMetadataResponse(0, 7, "host", 9092)
FRAME = codec.encode_response(RESPONSE, 0)
QUESTION = ConsumerMetadataRequest("g")
LONG = 100_000
COMMIT = OffsetCommitRequest(
    "g",
    [OffsetCommitTopic("t", [OffsetCommitPartition(n, 5, "x" * 100) for n in range(LONG // 100)])],
)
LONG_QUESTION = MetadataRequest([f"{n:0100}" for n in range(LONG // 100)])


def connection_to(network: ScriptedNetwork, max_response_bytes: int = 1 << 20) -> Connection:
    return Connection(
        "b",
        9092,
        runtime=network.runtime(),
        client_id="me",
        max_response_bytes=max_response_bytes,
    )


def send_with_room(connection: Connection, request: Request, room: int) -> Response:
    """`Connection.send`, into memory of the caller of `room` bytes."""
    connection.write(request)
    return connection.read_response(room=memoryview(bytearray(room)))


def answering(*frames: bytes, chunk: int | None = None, hang_up: bool = False) -> ScriptedNetwork:
    """A broker that answers its first request with these bytes, and later ones as it should."""
    network = ScriptedNetwork(chunk)
    first = [b"".join(frames)]

    def script(_: Request) -> Response | bytes:
        if not first:
            return RESPONSE
        if hang_up:
            raise Hangup(first.pop())
        return first.pop()

    network.broker("b", 9092, script)
    return network


@pytest.mark.parametrize("room", [0, len(FRAME) - 1, len(FRAME), 1000])
@pytest.mark.parametrize("chunk", [None, 1, 3])
def test_send_reads_its_response_however_it_arrives(chunk: int | None, room: int) -> None:
    """A response may come in pieces of any size, into memory of its own or that of all."""
    network = ScriptedNetwork(chunk)
    network.broker("b", 9092, lambda _: RESPONSE)
    connection = connection_to(network)
    assert send_with_room(connection, QUESTION, room) == RESPONSE
    assert send_with_room(connection, QUESTION, room) == RESPONSE
    assert network.opened == [("b", 9092)]


def test_responses_come_in_the_order_of_the_requests() -> None:
    """Several requests may be written before the first response is read."""
    network = ScriptedNetwork()
    metadata = MetadataResponse([], [])
    network.broker(
        "b", 9092, lambda request: metadata if isinstance(request, MetadataRequest) else RESPONSE
    )
    connection = connection_to(network)
    connection.write(QUESTION)
    connection.write(MetadataRequest([]))
    assert connection.in_flight == 2
    assert connection.read_response() == RESPONSE
    assert connection.read_response() == metadata
    assert connection.in_flight == 0


@pytest.mark.parametrize("cut", range(len(FRAME)))
@pytest.mark.parametrize("hang_up", [True, False], ids=["closed", "silent"])
@pytest.mark.parametrize("room", [0, 1000])
def test_a_response_cut_anywhere_fails_and_the_next_request_gets_a_new_connection(
    cut: int, hang_up: bool, room: int
) -> None:
    """Cut at every byte: ConnectionFailed if the broker closed, RequestTimeout if it is silent."""
    network = answering(FRAME[:cut], hang_up=hang_up)
    connection = connection_to(network)
    with pytest.raises(ConnectionFailed if hang_up else RequestTimeout, match="b:9092"):
        send_with_room(connection, QUESTION, room)
    assert not connection.is_open
    assert connection.in_flight == 0
    assert network.sockets[0].closed
    assert connection.send(QUESTION) == RESPONSE
    assert len(network.opened) == 2


def test_a_response_to_another_request_is_refused() -> None:
    """A wrong correlation id closes the connection: what follows could be anybody's."""
    connection = connection_to(answering(codec.encode_response(RESPONSE, 5)))
    with pytest.raises(ProtocolError, match="b:9092: response 5, but the next one is to request 0"):
        connection.send(QUESTION)
    assert not connection.is_open


@pytest.mark.parametrize("size", [-1, 0, 1001, 2**31 - 1])
def test_a_size_out_of_bounds_is_refused_before_it_is_read(size: int) -> None:
    """Nothing is allocated for a size that the limit does not allow."""
    frame = size.to_bytes(4, "big", signed=True)
    connection = connection_to(answering(frame), max_response_bytes=1000)
    with pytest.raises(ProtocolError, match=str(size)):
        connection.send(QUESTION)
    assert not connection.is_open


@pytest.mark.parametrize("behind", [b"x", FRAME])
def test_bytes_behind_the_response_to_the_only_request_are_refused(behind: bytes) -> None:
    """Responses share a buffer, in which these bytes would be lost."""
    connection = connection_to(answering(FRAME, behind))
    with pytest.raises(ProtocolError, match=f"{len(behind)} bytes follow the response"):
        send_with_room(connection, QUESTION, 1000)
    assert not connection.is_open


@pytest.mark.parametrize("room", [0, 1 << 20])
def test_a_large_response_arrives_whole(room: int) -> None:
    """Its buffer grows with its bytes, which the response keeps views of."""
    data = bytes(range(256)) * (80 << 10)
    sent = FetchResponse([FetchTopicResponse("t", [FetchPartitionResponse(0, 0, 7, data)])])
    network = answering(codec.encode_response(sent, 0), chunk=1_000_003)
    connection = connection_to(network, max_response_bytes=1 << 28)
    response = send_with_room(connection, FetchRequest(-1, 100, 1, []), room)
    assert isinstance(response, FetchResponse)
    assert response.topics[0].partitions[0].message_set == data


def test_a_size_alone_takes_little_memory() -> None:
    """A broker that claims a response of 250 MB and sends nothing of it costs what was received."""
    network = answering((250 << 20).to_bytes(4, "big") + b"x", hang_up=True)
    connection = connection_to(network, max_response_bytes=1 << 28)
    tracemalloc.start()
    try:
        before = resident_bytes()
        with pytest.raises(ConnectionFailed):
            connection.send(QUESTION)
        assert resident_bytes() - before < 4 << 20
        assert tracemalloc.get_traced_memory()[1] < 2 << 20
    finally:
        tracemalloc.stop()


@given(st.binary(max_size=60))
def test_any_bytes_are_a_response_or_an_error(data: bytes) -> None:
    """Whatever a broker sends, the outcome is a response or one of three errors."""
    connection = connection_to(answering(data, hang_up=True))
    try:
        assert isinstance(connection.send(QUESTION), ConsumerMetadataResponse)
    except (ProtocolError, ConnectionFailed):
        assert not connection.is_open


def test_a_broker_that_refuses_is_named() -> None:
    """ConnectionFailed says where and why."""
    with pytest.raises(ConnectionFailed, match=r"cannot connect to b:9092: .*refused"):
        connection_to(ScriptedNetwork()).send(QUESTION)


def test_a_host_name_that_cannot_be_one_is_a_failed_connection() -> None:
    """The encoding of host names raises UnicodeError, which is no OSError."""
    with pytest.raises(ConnectionFailed, match="cannot connect"):
        Connection("a" * 70 + ".x", 1).send(QUESTION)


def test_a_slow_trickle_does_not_outlive_the_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """The timeout is for the whole response, not for each piece of it."""
    clock = MockClock()
    network = answering(FRAME, chunk=1)
    connection = Connection(
        "b",
        9092,
        runtime=network.runtime(clock),
        timeout_ms=1000,
        client_id="",
    )
    receive = ScriptedSocket.recv_into

    def slowly(sock: ScriptedSocket, target: memoryview) -> int:
        clock.advance(0.3)
        return receive(sock, target)

    monkeypatch.setattr(ScriptedSocket, "recv_into", slowly)
    connection.write(QUESTION)
    with pytest.raises(RequestTimeout, match="to a ConsumerMetadataRequest within 1000"):
        connection.read_response()
    assert clock.time_ms() - MockClock().time_ms() <= 1300


def test_a_request_without_a_response_is_not_waited_for() -> None:
    """Produce with acks 0 leaves nothing in flight, and the connection remembers it."""
    network = ScriptedNetwork()
    network.broker("b", 9092, lambda r: None if isinstance(r, ProduceRequest) else RESPONSE)
    connection = connection_to(network)
    connection.write(ProduceRequest(0, 1000, []), has_response=False)
    assert connection.in_flight == 0
    assert connection.sent_unconfirmed
    assert connection.send(QUESTION) == RESPONSE
    connection.close()
    connection.open()
    assert not connection.sent_unconfirmed


def test_an_idle_connection_that_the_broker_closed_is_stale() -> None:
    """0.8 closes connections that were idle for ten minutes."""
    network = answering(FRAME)
    connection = connection_to(network)
    assert not connection.is_stale()
    connection.send(QUESTION)
    assert not connection.is_stale()
    network.sockets[0].hang_up()
    assert connection.is_stale()


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def test_abort_wakes_a_waiting_read(listener: socket.socket) -> None:
    """A thread that waits for a response fails at once when another aborts the connection."""
    connection = Connection("127.0.0.1", listener.getsockname()[1], timeout_ms=60_000)
    connection.write(QUESTION)
    failures: list[BaseException] = []

    def read() -> None:
        try:
            connection.read_response()
        except ConnectionFailed as error:
            failures.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    connection.abort()
    reader.join(10)
    assert len(failures) == 1
    assert not connection.is_open


@pytest.mark.parametrize("ending", ["close", "abort", "timeout"])
@pytest.mark.parametrize(("request_", "arrives"), [(COMMIT, False), (LONG_QUESTION, True)])
def test_a_commit_does_not_arrive_after_its_connection_has_closed(
    listener: socket.socket, request_: Request, arrives: bool, ending: str
) -> None:
    """Over a real socket, whose peer has no room for the request before the connection is closed:
    the system delivers the rest later, but not that of a commit."""
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection = Connection("127.0.0.1", listener.getsockname()[1], buffers=Buffers(send=1 << 19))
    connection.write(request_)
    if ending == "abort":
        connection.abort()
    if ending == "timeout":
        with pytest.raises(RequestTimeout):
            connection.read_response(timeout_ms=1)
    connection.close()
    accepted, _ = listener.accept()
    with accepted:
        assert arrives == (received_from(accepted) > LONG)


def test_a_connection_that_has_committed_closes_quietly(listener: socket.socket) -> None:
    """Over a real socket: once it has its response, the broker sees the end of the stream and no
    reset, which a JVM broker would log as an error."""
    response = OffsetCommitResponse(
        [OffsetCommitTopicResponse("t", [OffsetCommitPartitionResponse(0, 0)])]
    )
    connection = Connection("127.0.0.1", listener.getsockname()[1])
    connection.write(OffsetCommitRequest("g", []))
    accepted, _ = listener.accept()
    with accepted:
        accepted.recv(1 << 20)
        accepted.sendall(codec.encode_response(response, 0))
        assert response == connection.read_response()
        connection.close()
        assert b"" == accepted.recv(1)


def received_from(accepted: socket.socket) -> int:
    """The number of bytes until the end of the stream, or a reset."""
    count = 0
    with suppress(ConnectionResetError):
        while data := accepted.recv(1 << 16):
            count += len(data)
    return count


def test_abort_while_connecting_is_not_lost() -> None:
    """The connection is closed as soon as it is made, and the request does not go out. A later
    write opens a new one."""
    network = ScriptedNetwork()
    asked: list[Request] = []

    def respond(request: Request) -> Response:
        asked.append(request)
        return RESPONSE

    network.broker("b", 9092, respond)
    aborts = [True]

    def connect(address: tuple[str, int], timeout: float) -> socket.socket:
        sock = network.connect(address, timeout)
        if aborts:
            aborts.pop()
            connection.abort()
        return sock

    connection = Connection("b", 9092, runtime=ThreadRuntime(connect=connect))
    with pytest.raises(ConnectionFailed, match="aborted while it was opened"):
        connection.send(QUESTION)
    assert ([], False) == (asked, connection.is_open)
    assert RESPONSE == connection.send(QUESTION)


def test_a_real_silent_broker_times_out(listener: socket.socket) -> None:
    """Over a real socket: an accepted connection without a response ends in RequestTimeout."""
    with Connection("127.0.0.1", listener.getsockname()[1]) as connection:
        connection.write(QUESTION)
        with pytest.raises(RequestTimeout, match="within 20 ms"):
            connection.read_response(timeout_ms=20)


def test_a_response_can_be_waited_for_in_pieces(listener: socket.socket) -> None:
    """A wait that ends without a byte leaves the request in flight; one that meets a byte, or the
    end of the connection, leaves it to `read_response`."""
    with Connection("127.0.0.1", listener.getsockname()[1]) as connection:
        connection.write(QUESTION)
        accepted, _ = listener.accept()
        with accepted:
            assert connection.awaits_response(0.01)
            assert connection.in_flight == 1
            accepted.sendall(FRAME)
            assert not connection.awaits_response(60.0)
            assert connection.read_response() == RESPONSE
            connection.write(QUESTION)
        assert not connection.awaits_response(60.0)
        with pytest.raises(ConnectionFailed):
            connection.read_response()


def test_a_real_closed_connection_is_stale(listener: socket.socket) -> None:
    """Over a real socket: staleness shows without reading or waiting."""
    with Connection("127.0.0.1", listener.getsockname()[1]) as connection:
        connection.open()
        accepted, _ = listener.accept()
        assert not connection.is_stale()
        accepted.close()
        until(connection.is_stale)
