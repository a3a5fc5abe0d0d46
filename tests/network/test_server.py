"""The socket server on a real loop in a thread of its own, with real sockets."""

from __future__ import annotations

import os
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any

import gevent
import pytest
from gevent.event import Event

from kafka08.errors import ProtocolError
from kafka08.log.slices import LogSlice
from kafka08.network import accepted_connection
from kafka08.network.accepted_connection import COPIED_BYTES_MAX
from kafka08.network.connection_quotas import ConnectionQuotas
from kafka08.network.server import SocketServer
from kafka08.network.server_connection import (
    REQUESTS_MAX,
    FileSlice,
    GeneratedBytes,
    RequestConnection,
    ResponseFrame,
)
from kafka08.protocol.frame import BUFFER_BYTES
from kafka08.runtime import Buffers
from kafka08.runtime.disk import OpenMode
from kafka08.runtime.greenlets import GeventRuntime
from kafka08.runtime.system_disk import SYSTEM_DISK
from kafka08.runtime.transport import AcceptedStream
from tests.waiting import until

DEADLINE = 60.0


def frame(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


class Served:
    """A SocketServer whose handler understands: `file N` (a slice of N bytes), `slices N` (N slices
    that are copied), `made N` and its kin (N bytes that are made), `park`, `bad`, `bug`, `quit`
    (without a response), `wake` (answers all parked), `big N`, `queued` (connections whose requests
    wait for a turn); anything else is echoed."""

    def __init__(self, directory: Path, **limits: Any) -> None:
        self.data = os.urandom(3 << 20)
        (directory / "segment").write_bytes(self.data)
        self.file = SYSTEM_DISK.open(directory / "segment", OpenMode.READ)
        self.parked: list[RequestConnection] = []
        self.abandoned = 0
        self.port = 0
        self.server: Any = None
        self._ready = threading.Event()
        self._stop: Any = None
        self._limits = limits
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        assert self._ready.wait(DEADLINE)

    def _run(self) -> None:
        """The life of the loop's thread: every gevent object is made and used here."""
        loop = gevent.get_hub().loop
        runtime = self.runtime = GeventRuntime()

        def call_later(ms: float, call: Callable[[], object]) -> Any:
            timer = loop.timer(ms / 1000)
            timer.start(call)
            return Closing(timer)

        limits = {
            "request_bytes_max": 1 << 20,
            "idle_ms": 600_000,
            **self._limits,
        }
        quotas = ConnectionQuotas(
            limits.pop("connections_per_ip", 1000),
            limits.pop("connections_overrides", {}),
            runtime.resolve,
        )
        listener = runtime.listen("127.0.0.1", 0, limits.pop("buffers", Buffers()))
        self.server = SocketServer(
            runtime, listener, repeat(self.handle), call_later=call_later, quotas=quotas, **limits
        )
        self.server.start()
        self.port = self.server.port
        self._wishes: list[tuple[Callable[[], Any], Future[Any]]] = []
        self._bell = loop.async_()
        self._bell.start(self._grant)
        self._stop = Event()
        self._ready.set()
        self._stop.wait()
        self.server.stop()
        self._bell.close()
        gevent.get_hub().destroy(destroy_loop=True)

    def _grant(self) -> None:
        while self._wishes:
            wish, future = self._wishes.pop(0)
            future.set_result(wish())

    def ask(self, wish: Callable[[], Any]) -> Any:
        """Do something in the loop's thread."""
        future: Future[Any] = Future()
        self._wishes.append((wish, future))
        self._bell.send()
        return future.result(DEADLINE)

    def waits_for_room(self) -> bool:
        """Whether a client has not taken yet what was answered."""
        return bool(self.ask(self.server.queued)[1])

    def close(self) -> None:
        self.ask(self._stop.set)
        self._thread.join(DEADLINE)
        assert not self._thread.is_alive()

    def handle(self, payload: memoryview, exchange: RequestConnection) -> ResponseFrame | None:
        word, _, argument = bytes(payload).partition(b" ")
        if word == b"file":
            size = int(argument)
            return [struct.pack(">i", size), LogSlice(0, 0, self.file, 7, size)]
        if word == b"slices":
            count, size = int(argument), COPIED_BYTES_MAX
            slices = [LogSlice(0, 0, self.file, 7, size) for _ in range(count)]
            return [struct.pack(">i", count * size), *slices]
        if word in {b"made", b"thread", b"fail", b"slow"}:
            size = int(argument)
            return [struct.pack(">i", size), Made(self.runtime, self.data[:size], word)]
        if word == b"big":
            return frame(b"x" * int(argument))
        if word == b"park":
            self.parked.append(exchange)
            exchange.on_close = self._abandon
            return None
        if word == b"wake":
            for parked in self.parked:
                parked.send_response(frame(b"woken"))
            self.parked.clear()
        if word == b"queued":
            return frame(b"%d" % self.server.queued()[0])
        if word == b"bad":
            raise ProtocolError("this cannot be")
        if word == b"quit":
            exchange.finish("as acks 0 do")
            return b""
        if word == b"bug":
            raise RuntimeError("this should not be")
        return frame(bytes(payload))

    def _abandon(self) -> None:
        self.abandoned += 1

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), DEADLINE)


class Made(GeneratedBytes):
    """Data in pieces that are made in the hub (`made`; `slow`: byte by byte, 5 ms each) or in a
    thread; there, `fail`: the second one cannot be made."""

    PIECE = 100_000

    def __init__(self, runtime: GeventRuntime, data: bytes, how: bytes) -> None:
        self._runtime = runtime
        self._left = data
        self._how = how

    @property
    def size(self) -> int:
        return len(self._left)

    def make(self, done: Any) -> bytes | None:
        if self._how == b"slow":
            time.sleep(0.005)
            data, self._left = self._left[:1], self._left[1:]
            return data
        if self._how == b"made":
            return self._next()
        self._runtime.run_native_later(done, self._next)
        return None

    def _next(self) -> bytes:
        if self._how == b"fail" and len(self._left) <= self.PIECE:
            raise RuntimeError("this piece cannot be made")
        data, self._left = self._left[: self.PIECE], self._left[self.PIECE :]
        return data


class Closing:
    def __init__(self, timer: Any) -> None:
        self._timer = timer

    def cancel(self) -> None:
        self._timer.close()


@pytest.fixture
def served(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Served]:
    served = Served(tmp_path, **getattr(request, "param", {}))
    yield served
    served.close()


small_buffer = pytest.mark.parametrize(
    "served", [{"buffers": Buffers(send=65536)}], indirect=True, ids=["small buffer"]
)
"""No system makes it larger by itself, so that large responses do not fit."""


def read(client: socket.socket) -> bytes:
    (size,) = struct.unpack(">i", read_exactly(client, 4))
    return read_exactly(client, size)


def read_exactly(client: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        part = client.recv(size - len(data))
        assert part, f"closed after {len(data)} of {size} bytes"
        data += part
    return bytes(data)


def is_closed(client: socket.socket) -> bool:
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True


def test_a_frame_may_come_byte_by_byte(served: Served) -> None:
    """Two frames in one packet are two requests."""
    with served.connect() as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in frame(b"hello"):
            client.sendall(bytes([byte]))
        assert b"hello" == read(client)
        client.sendall(frame(b"one") + frame(b"two"))
        assert [b"one", b"two"] == [read(client), read(client)]


def test_thousands_of_pipelined_requests_are_answered_in_order(served: Served) -> None:
    """More than a turn's worth, and more responses than the socket takes at once."""
    count = 20_000
    with served.connect() as client:
        requests = b"".join(frame(b"%d" % number) for number in range(count))
        sender = threading.Thread(target=client.sendall, args=(requests,))
        sender.start()
        for number in range(count):
            assert b"%d" % number == read(client)
        sender.join(DEADLINE)


def test_requests_that_wait_for_another_turn_are_counted(served: Served) -> None:
    """Of two connections that have more than a turn's requests, the second one to get its turn
    sees the first one waiting."""
    requests = [*[b"a"] * (REQUESTS_MAX - 1), b"queued", b"last"]
    held, sent = threading.Event(), threading.Event()

    def hold() -> None:
        held.set()
        sent.wait(DEADLINE)

    holder = threading.Thread(target=served.ask, args=(hold,))
    with served.connect() as one, served.connect() as other:
        for client in (one, other):
            client.sendall(frame(b"a"))
            read(client)
        holder.start()
        held.wait(DEADLINE)
        for client in (one, other):
            client.sendall(b"".join(map(frame, requests)))
        sent.set()
        holder.join(DEADLINE)
        responses = [[read(client) for _ in requests][-2] for client in (one, other)]
    assert [b"0", b"1"] == sorted(responses)


@small_buffer
def test_file_slices_arrive_whole_however_slowly_the_client_reads(served: Served) -> None:
    """Slices far above the socket's buffer, with responses before and behind, byte for byte."""
    size = 2 << 20
    with served.connect() as client:
        client.sendall(frame(b"a") + frame(b"file %d" % size) + frame(b"file 5") + frame(b"b"))
        until(served.waits_for_room)
        assert b"a" == read(client)
        assert served.data[7 : 7 + size] == read(client)
        assert served.data[7:12] == read(client)
        assert b"b" == read(client)


@pytest.mark.parametrize("size", [COPIED_BYTES_MAX, COPIED_BYTES_MAX + 1])
def test_a_slice_is_whole_on_both_sides_of_the_limit_of_copying(served: Served, size: int) -> None:
    """Read and sent with its header, or sent from its file: the same bytes."""
    with served.connect() as client:
        client.sendall(frame(b"a") + 2 * frame(b"file %d" % size) + frame(b"b"))
        expected = [b"a", served.data[7 : 7 + size], served.data[7 : 7 + size], b"b"]
        assert expected == [read(client) for _ in range(4)]


@pytest.mark.parametrize("size", [5, COPIED_BYTES_MAX + 1])
def test_a_slice_cut_off_by_a_truncation_ends_the_connection(
    served: Served, tmp_path: Path, size: int
) -> None:
    """The response's size has gone out or is fixed, so nothing else can follow it."""
    os.truncate(tmp_path / "segment", 7)
    with served.connect() as client:
        client.sendall(frame(b"file %d" % size))
        assert b"" == client.recv(5 + size)[4:]


@pytest.mark.parametrize("how", [b"made", b"thread"])
@small_buffer
def test_made_bytes_arrive_in_order_however_slowly_the_client_reads(
    served: Served, how: bytes
) -> None:
    """Made in the hub or in a thread, with responses before, behind and pipelined after."""
    size = 2 << 20
    with served.connect() as client:
        client.sendall(frame(b"a") + frame(b"%s %d" % (how, size)) + frame(b"file 5") + frame(b"b"))
        until(served.waits_for_room)
        assert b"a" == read(client)
        assert served.data[:size] == read(client)
        assert served.data[7:12] == read(client)
        assert b"b" == read(client)
        client.sendall(frame(b"%s 5" % how))
        assert served.data[:5] == read(client)
        client.sendall(frame(b"c"))
        assert b"c" == read(client)


def test_others_are_served_while_bytes_are_made(served: Served) -> None:
    """The socket accepts all bytes, but 50 s of work are cut into turns."""
    with served.connect() as slow, served.connect() as client:
        slow.sendall(frame(b"slow 10000"))
        assert slow.recv(1)
        client.sendall(frame(b"b"))
        assert b"b" == read(client)
        assert served.waits_for_room()


def test_few_slices_are_in_memory(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slices are read when the socket has room, so few of them are in memory however many are
    copied."""
    count = 2000
    reads: list[FileSlice] = []
    read_slice = accepted_connection.read_slice

    def counted(piece: FileSlice) -> bytes:
        reads.append(piece)
        return read_slice(piece)

    monkeypatch.setattr(accepted_connection, "read_slice", counted)
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        client.connect(("127.0.0.1", served.port))
        client.sendall(frame(b"slices %d" % count))
        until(served.waits_for_room)
        assert len(reads) < count / 2
        assert served.data[7 : 7 + COPIED_BYTES_MAX] * count == read(client)


def test_a_client_that_leaves_while_bytes_are_made(served: Served) -> None:
    """Takes no one else's connection along."""
    with served.connect() as client:
        client.sendall(frame(b"thread %d" % (3 << 20)))
    with served.connect() as client:
        client.sendall(frame(b"b"))
        assert b"b" == read(client)
        until(lambda: 1 == served.ask(lambda: len(served.server)))


def test_bytes_that_cannot_be_made_end_the_connection(served: Served) -> None:
    """The response's size has gone out, so nothing else can follow it."""
    size = 2 * Made.PIECE
    with served.connect() as client:
        client.sendall(frame(b"fail %d" % size) + frame(b"b"))
        received = bytearray()
        while part := client.recv(1 << 20):
            received += part
        assert served.data[: Made.PIECE] == received[4:]


def test_a_client_that_ends_its_side_still_gets_every_response(served: Served) -> None:
    """Requests that fill the buffer of 64 KB to the last byte, then the end: all are answered."""
    largest = b"z" * (BUFFER_BYTES - 4)
    with served.connect() as client:
        client.sendall(frame(largest) + frame(largest))
        client.shutdown(socket.SHUT_WR)
        assert [largest, largest] == [read(client), read(client)]
        assert is_closed(client)


@small_buffer
def test_large_responses_wait_for_room(served: Served) -> None:
    """Responses in memory beyond the socket's buffer go out in parts."""
    with served.connect() as client:
        client.sendall(frame(b"big 5000000") + frame(b"end"))
        until(served.waits_for_room)
        assert 5_000_000 == len(read(client))
        assert b"end" == read(client)


@small_buffer
def test_the_rest_of_a_large_response_is_not_copied(served: Served) -> None:
    """A part that did not fit into the socket is a view: to copy it whenever a little of it was
    sent would cost the square of its size."""
    with served.connect() as client:
        client.sendall(frame(b"big 5000000"))
        until(served.waits_for_room)
        [rest] = served.ask(lambda: [p for c in served.server._by_age for p in c.outbox])
        assert len(frame(bytes(5_000_000))) == len(rest.obj)
        del rest
        assert 5_000_000 == len(read(client))


def test_a_frame_as_large_as_allowed_passes_and_one_byte_more_does_not(served: Served) -> None:
    """socket.request.max.bytes counts the payload; nothing is read of what is too large."""
    with served.connect() as client:
        largest = b"z" * (1 << 20)
        client.sendall(frame(largest))
        assert largest == read(client)
        client.sendall(struct.pack(">i", (1 << 20) + 1))
        assert is_closed(client)


def test_another_connection_completes_a_parked_request(served: Served) -> None:
    """The requests that were pipelined behind it follow."""
    with served.connect() as poller, served.connect() as producer:
        poller.sendall(frame(b"park") + frame(b"next"))
        until(lambda: len(served.parked) == 1)
        producer.sendall(frame(b"wake"))
        assert b"wake" == read(producer)
        assert b"woken" == read(poller)
        assert b"next" == read(poller)
        poller.sendall(frame(b"again"))
        assert b"again" == read(poller)


def is_larger(parked: list[RequestConnection], than: int) -> bool:
    return len(parked) > than


def test_parked_requests_hold_no_buffer(served: Served) -> None:
    """Thousands of long polls wait at a time, each of which held 64 KB. All of these had the one
    buffer."""
    with ExitStack() as open_:
        pollers = [open_.enter_context(served.connect()) for _ in range(5)]
        for poller in pollers:
            before = len(served.parked)
            poller.sendall(frame(b"park"))
            until(partial(is_larger, served.parked, before))
        assert BUFFER_BYTES == served.server.buffers.kept_bytes
        producer = open_.enter_context(served.connect())
        producer.sendall(frame(b"wake"))
        assert [b"woken"] * 5 == [read(poller) for poller in pollers]
        for poller in pollers:
            poller.sendall(frame(b"again"))
            assert b"again" == read(poller)


def test_a_client_that_ends_its_side_gets_the_response_of_a_parked_request(served: Served) -> None:
    """And those behind it, as from a JVM broker, which looks at its end later."""
    with served.connect() as poller, served.connect() as producer:
        poller.sendall(frame(b"park") + frame(b"next"))
        until(lambda: len(served.parked) == 1)
        poller.shutdown(socket.SHUT_WR)
        exchange: Any = served.parked[0]
        until(lambda: not served.ask(lambda: exchange._reading.active))  # the end was seen
        producer.sendall(frame(b"wake"))
        assert [b"woken", b"next"] == [read(poller), read(poller)]
        assert is_closed(poller)
    assert 0 == served.abandoned


@pytest.mark.parametrize("behind", [b"", frame(b"next"), b"\0"], ids=["nothing", "frame", "byte"])
def test_a_client_that_ends_its_side_does_not_wait_for_long(
    served: Served, monkeypatch: pytest.MonkeyPatch, behind: bytes
) -> None:
    """Most have left without a word: their requests would stay parked for their whole wait. What
    one has sent behind its request must not hide that."""
    monkeypatch.setattr("kafka08.network.server.END_GRACE_S", 0.1)
    with served.connect() as poller:
        poller.sendall(frame(b"park"))
        until(lambda: len(served.parked) == 1)
        poller.sendall(behind)
        assert not served.ask(served.parked[0].is_abandoned)
        poller.shutdown(socket.SHUT_WR)
        assert is_closed(poller)
    assert 1 == served.abandoned


def test_an_abandoned_request_is_told_from_one_with_others_behind_it(served: Served) -> None:
    """Later bytes of a client do not count as its end; the end of its side does."""
    with served.connect() as client, served.connect() as silent:
        client.sendall(frame(b"park") + frame(b"next"))
        until(lambda: len(served.parked) == 1)
        client.sendall(frame(b"later"))
        silent.sendall(frame(b"park"))
        until(lambda: len(served.parked) == 2)
        busy, idle = served.parked
        assert [False, False] == [served.ask(one.is_abandoned) for one in (busy, idle)]
        silent.shutdown(socket.SHUT_WR)
        until(lambda: served.ask(idle.is_abandoned))
        assert not served.ask(busy.is_abandoned)
        client.shutdown(socket.SHUT_WR)
        until(lambda: served.ask(busy.is_abandoned))


def test_a_connection_that_breaks_while_parked_is_noticed(served: Served) -> None:
    """Its wait is abandoned at once, not when its time is over."""
    poller = served.connect()
    poller.sendall(frame(b"park"))
    until(lambda: len(served.parked) == 1)
    poller.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    poller.close()
    until(lambda: served.abandoned == 1)
    until(lambda: served.ask(lambda: len(served.server)) == 0)


@small_buffer
@pytest.mark.parametrize(
    "last", [frame(b"bad"), frame(b"bug"), frame(b"quit"), struct.pack(">i", -1)], ids=repr
)
def test_responses_before_the_end_are_sent(served: Served, last: bytes) -> None:
    """The responses exceed what a socket takes at once; later requests are not handled."""
    with served.connect() as client:
        client.sendall(frame(b"a") + frame(b"big 1000000") + last + frame(b"behind"))
        assert b"a" == read(client)
        until(lambda: served.ask(lambda: all(c.ending for c in served.server._by_age)))
        assert served.waits_for_room()
        assert 1_000_000 == len(read(client))
        assert is_closed(client)


@pytest.mark.parametrize("served", [{"idle_ms": 200}], indirect=True)
def test_a_client_that_does_not_take_its_last_responses_is_not_kept(served: Served) -> None:
    """It goes with the idle connections."""
    with served.connect() as client:
        client.sendall(frame(b"a") + frame(b"big 50000000") + frame(b"bad"))
        assert b"a" == read(client)
        until(lambda: served.ask(lambda: len(served.server)) == 0)


@pytest.mark.parametrize("word", [b"bad", b"bug"])
def test_an_error_closes_its_connection_alone(served: Served, word: bytes) -> None:
    """Earlier requests get their responses, and another connection continues."""
    with served.connect() as broken, served.connect() as other:
        other.sendall(frame(b"before"))
        assert b"before" == read(other)
        broken.sendall(frame(word))
        assert is_closed(broken)
        other.sendall(frame(b"after"))
        assert b"after" == read(other)


@pytest.mark.parametrize("served", [{"connections_per_ip": 2}], indirect=True)
def test_connections_of_one_address_are_limited(served: Served) -> None:
    """The third is closed at once; when one of the two ends, another is accepted."""
    first, second = served.connect(), served.connect()
    for client in (first, second):
        client.sendall(frame(b"x"))
        assert b"x" == read(client)
    with served.connect() as third:
        assert is_closed(third)
    first.close()
    until(lambda: served.ask(lambda: len(served.server)) == 1)
    with served.connect() as fourth:
        fourth.sendall(frame(b"x"))
        assert b"x" == read(fourth)
    second.close()


@pytest.mark.parametrize(
    "served",
    [{"connections_per_ip": 1, "connections_overrides": {"localhost": 3}}],
    indirect=True,
)
def test_an_override_lifts_the_limit_for_its_host(served: Served) -> None:
    """max.connections.per.ip.overrides takes names and addresses."""
    clients = [served.connect() for _ in range(3)]
    for client in clients:
        client.sendall(frame(b"x"))
        assert b"x" == read(client)
        client.close()


@pytest.mark.parametrize("served", [{"idle_ms": 1500}], indirect=True)
def test_a_silent_connection_is_closed_and_a_busy_one_is_not(served: Served) -> None:
    """connections.max.idle.ms closes a silent connection; one that sends a request now and then
    stays."""
    with served.connect() as silent, served.connect() as busy:

        def is_silent_closed() -> bool:
            busy.sendall(frame(b"x"))
            assert b"x" == read(busy)
            return bool(select.select([silent], [], [], 0.02)[0])

        until(is_silent_closed, "the silent one to be closed")
        assert is_closed(silent)
        busy.sendall(frame(b"x"))
        assert b"x" == read(busy)


def test_connections_that_come_and_go_leave_nothing(served: Served) -> None:
    """After a thousand connections none is counted, and all buffers are in the pool, which needed
    no more than one."""
    for _ in range(1000):
        with served.connect() as client:
            client.sendall(frame(b"x"))
            assert b"x" == read(client)
    until(lambda: served.ask(lambda: len(served.server)) == 0)
    assert served.server.buffers.kept_bytes <= 4 * 65536


class Login:
    """A handshake of two frames: any name, then the password."""

    def __init__(self) -> None:
        self._frames = 0

    def __iter__(self) -> Iterator[Callable[..., ResponseFrame]]:
        while self._frames < 2:
            yield self._take

    def _take(self, payload: memoryview, connection: RequestConnection) -> ResponseFrame:
        self._frames += 1
        if self._frames == 2 and bytes(payload) != b"password":
            connection.finish("a wrong password")
        return frame(b"login %d" % self._frames)


@pytest.mark.parametrize("served", [{"handshake": lambda: iter(Login())}], indirect=True)
def test_a_handshake_comes_before_the_first_request(served: Served) -> None:
    """Also where its frames come in pieces and the first request right behind them. A connection
    that fails it is closed, and none of its requests is handled."""
    with served.connect() as client, served.connect() as stranger:
        client.sendall(frame(b"me")[:3])
        assert not served.ask(served.server.queued)[0]
        client.sendall(frame(b"me")[3:])
        assert b"login 1" == read(client)
        client.sendall(frame(b"password") + frame(b"hello"))
        assert [b"login 2", b"hello"] == [read(client), read(client)]
        stranger.sendall(frame(b"he") + frame(b"guess") + frame(b"park"))
        assert b"login 1" == read(stranger)
        assert b"" == stranger.recv(1)
        assert not served.parked


def test_a_connection_that_cannot_be_accepted_does_not_stop_the_next(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is closed; gevent would stop a watcher whose callback raises."""
    take, failures = SocketServer._take, [OSError("gone"), RuntimeError("a bug")]

    def fail_twice(server: SocketServer, accepted: AcceptedStream, address: Any) -> None:
        if failures:
            raise failures.pop()
        take(server, accepted, address)

    monkeypatch.setattr(SocketServer, "_take", fail_twice)
    for _ in range(2):
        with served.connect() as refused:
            assert b"" == refused.recv(1)
    with served.connect() as client:
        client.sendall(frame(b"hello"))
        assert frame(b"hello") == client.recv(9, socket.MSG_WAITALL)
