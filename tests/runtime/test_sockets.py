"""Streams, connections on their way and pollers on real sockets of this machine."""

from __future__ import annotations

import errno
import os
import resource
import select
import socket
import sys
import threading
from collections.abc import Iterator

import pytest

from kafka08.embedded.ports import free_ports
from kafka08.runtime import Buffers
from kafka08.runtime.epoll import EpollPoller, has_epoll
from kafka08.runtime.sockets import (
    SocketConnecting,
    SocketListener,
    SocketPoller,
    SocketStream,
    connection_descriptors_end,
    is_loopback,
)
from kafka08.runtime.threads import THREADS, ThreadRuntime
from kafka08.runtime.transport import Address, Poller
from tests.conftest import DeadThreads

SECONDS = 10.0


@pytest.fixture
def listener() -> Iterator[SocketListener]:
    made = SocketListener(socket.socket, "127.0.0.1", 0, Buffers())
    yield made
    made.close()


@pytest.fixture(params=[SocketPoller, EpollPoller] if has_epoll() else [SocketPoller])
def poller(request: pytest.FixtureRequest) -> Iterator[Poller]:
    made: Poller = request.param()
    yield made
    made.close()
    made.wake_up()


def has_ipv6_loopback() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


needs_ipv6 = pytest.mark.skipif(not has_ipv6_loopback(), reason="no IPv6 here")


@needs_ipv6
def test_a_listener_without_a_host_takes_ipv4_and_ipv6() -> None:
    """As the JVM's wildcard address; host.name=:: does the same."""
    for host in (None, "::"):
        listener = SocketListener(socket.socket, host, 0, Buffers())
        for peer in ("127.0.0.1", "::1"):
            socket.create_connection((peer, listener.port), SECONDS).close()
        listener.close()


def test_a_listener_without_a_host_needs_no_ipv6(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system has none, it takes IPv4."""
    monkeypatch.setattr(socket, "has_dualstack_ipv6", lambda: False)
    listener = SocketListener(socket.socket, None, 0, Buffers())
    assert socket.AF_INET == listener.socket.family
    socket.create_connection(("127.0.0.1", listener.port), SECONDS).close()
    listener.close()


@needs_ipv6
def test_an_ipv4_peer_of_an_ipv6_listener_has_its_ipv4_address() -> None:
    """Limits, logs and DescribeGroups have 127.0.0.1, not ::ffff:127.0.0.1."""
    listener = SocketListener(socket.socket, "::", 0, Buffers())
    with socket.create_connection(("127.0.0.1", listener.port), SECONDS):
        select.select([listener.socket], [], [], SECONDS)
        accepted, address = listener.accept()
        accepted.close()
    listener.close()
    assert "127.0.0.1" == address[0]


def test_the_last_descriptors_are_no_accepted_connections() -> None:
    """A broker needs them for a checkpoint or the next segment. Its idle connections took all, and
    it exited."""
    listener = SocketListener(socket.socket, "127.0.0.1", 0, Buffers())
    listener.socket.setblocking(True)
    lowest_free = os.dup(listener.socket.fileno())
    os.close(lowest_free)
    with socket.create_connection(("127.0.0.1", listener.port)) as client:
        listener._end = lowest_free + 1  # the client has that number
        with pytest.raises(OSError, match="Too many open files for another") as refused:
            listener.accept()
        assert errno.EMFILE == refused.value.errno
        assert b"" == client.recv(1)
    with socket.create_connection(("127.0.0.1", listener.port)):
        listener._end = 1 << 20
        accepted, _ = listener.accept()
        accepted.close()
    listener.close()


@pytest.mark.parametrize(
    ("limit", "end"),
    [(1024, 960), (1 << 20, (1 << 20) - 256), (resource.RLIM_INFINITY, sys.maxsize)],
)
def test_the_reserve_is_a_small_part_of_the_limit(
    monkeypatch: pytest.MonkeyPatch, limit: int, end: int
) -> None:
    """Systems have from 256 descriptors for a process to millions."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limit, limit))
    assert end == connection_descriptors_end()


def test_an_unresolvable_name_below_localhost_is_this_machine() -> None:
    """RFC 6761: it is only if the name cannot be resolved, and no other name is."""
    asked: list[str] = []

    def connect(address: Address, _: float) -> socket.socket:
        asked.append(address[0])
        if address[0] == "127.0.0.1":
            return socket.socket()
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    runtime = ThreadRuntime(connect=connect)
    runtime.connect(("kafka1.localhost", 9092), 1.0).close()
    with pytest.raises(socket.gaierror, match="not known"):
        runtime.connect(("kafka1.example", 9092), 1.0)
    assert asked == ["kafka1.localhost", "127.0.0.1", "kafka1.example"]


def test_start_connect_knows_names_below_localhost_too(
    listener: SocketListener, poller: Poller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new producer used to find no broker of docker-compose.yml from such a host."""
    known = socket.getaddrinfo

    def unknown(host: str, *rest: object, **more: object) -> object:
        if host.endswith("localhost"):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return known(host, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    connecting = SocketConnecting(("kafka1.localhost", listener.port), Buffers())
    poller.watch(connecting.stream, "it", read=False, write=True)
    assert [("it", False, True)] == poller.poll(SECONDS)
    assert connecting.finish()
    connecting.stream.close()


def test_the_next_address_is_tried_when_one_refuses(
    listener: SocketListener, poller: Poller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host of two addresses of which the first has no broker is connected all the same."""
    [refusing] = free_ports(1)
    responses = [
        (socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", port))
        for port in (refusing, listener.port)
    ]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: responses)
    connecting = SocketConnecting(("two", 1), Buffers())
    tried = [connecting.stream]
    while True:
        poller.watch(connecting.stream, "it", read=False, write=True)
        assert poller.poll(SECONDS)
        poller.forget(connecting.stream)
        if connecting.finish():
            break
        tried.append(connecting.stream)
    assert len(tried) == 2
    assert tried[0].fileno() == -1, "the first socket was left open"
    connecting.stream.close()


def test_the_last_address_that_refuses_is_the_error(poller: Poller) -> None:
    """`finish` raises what the system said."""
    [refusing] = free_ports(1)
    with pytest.raises(ConnectionRefusedError):  # noqa: PT012 - either call may be told
        connecting = SocketConnecting(("127.0.0.1", refusing), Buffers())
        poller.watch(connecting.stream, "it", read=False, write=True)
        poller.poll(SECONDS)
        connecting.finish()


def test_a_poller_is_woken_from_another_thread(poller: Poller) -> None:
    """`poll` returns with nothing ready, and one wake-up ends one wait only, each time."""
    for _ in range(2):
        waker = threading.Timer(0.01, poller.wake_up)
        waker.start()
        began = THREADS.monotonic()
        assert [] == poller.poll(SECONDS)
        assert THREADS.monotonic() - began < SECONDS, "it was not woken"
        waker.join()
        assert [] == poller.poll(0)
    poller.wake_up()
    began = THREADS.monotonic()
    assert [] == poller.poll(SECONDS), "the wake-up was earlier than the wait"
    assert THREADS.monotonic() - began < SECONDS


def test_a_poller_forgets(poller: Poller) -> None:
    """A stream is reported by its last registration, and not at all after `forget`."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.send(b"x")
        stream = SocketStream(ours)
        poller.watch(stream, "it", read=True, write=True)
        assert [("it", True, True)] == poller.poll(SECONDS)
        poller.watch(stream, "it", read=True, write=False)
        assert [("it", True, False)] == poller.poll(SECONDS)
        poller.forget(stream)
        assert [] == poller.poll(0)


def test_a_tasks_error_is_logged(
    caplog: pytest.LogCaptureFixture, dead_threads: DeadThreads
) -> None:
    """The line has the task's name; other tasks continue."""
    task = THREADS.spawn(lambda: 1 / 0, name="divider")
    task.join(SECONDS)
    assert not task.is_alive()
    [said] = dead_threads.said
    assert "'divider'" in said
    dead_threads.said.clear()
    assert "'divider'" in caplog.text
    assert "ZeroDivisionError" in caplog.text


def test_a_poller_that_is_closed_meanwhile_is_woken_up_in_vain() -> None:
    """A wake-up of another thread neither fails nor writes into a file that has the descriptor
    now."""
    errors: list[OSError] = []

    def wake_up(poller: Poller, begun: threading.Event) -> None:
        begun.set()
        try:
            for _ in range(200):
                poller.wake_up()
        except OSError as error:
            errors.append(error)

    for _ in range(300):
        made, begun = THREADS.poller(), threading.Event()
        thread = threading.Thread(target=wake_up, args=(made, begun))
        thread.start()
        begun.wait()
        made.close()
        thread.join()
    assert errors == []


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        *[(host, True) for host in ("127.0.0.1", "127.1.2.3", "::1", "localhost")],
        *[(host, False) for host in ("0.0.0.0", "::", "10.0.0.1", "127.0.0.1.example.org", "")],
    ],
)
def test_loopback_addresses_are_recognised(host: str, expected: bool) -> None:
    """A name that begins like one may be that of any machine."""
    assert expected == is_loopback(host)
