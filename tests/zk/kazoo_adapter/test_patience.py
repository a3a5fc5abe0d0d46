"""Servers that say nothing while a client connects."""

from __future__ import annotations

import random
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress

import pytest
from kazoo.client import KazooClient

from kafka08.embedded.embedded_zookeeper import EmbeddedZooKeeper
from kafka08.zk.client import ZkClient
from kafka08.zk.kazoo_adapter.patience import limit_patience
from kafka08.zk.session import SessionEvent

SESSION_MS = 3000


class Front:
    """A port in front of a server. It accepts the second connection without a word, and passes all
    others on."""

    def __init__(self, port: int) -> None:
        self._target = ("127.0.0.1", port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._servers: list[socket.socket] = []
        self.port: int = self._listener.getsockname()[1]
        self.accepted: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def break_connections(self) -> None:
        for one in [*self.accepted, *self._servers]:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        with suppress(OSError):  # macOS: it is not connected
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.break_connections()
        for thread in self._threads:
            thread.join()
        for one in [*self.accepted, *self._servers]:
            one.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self.accepted.append(client)
                if len(self.accepted) == 2:
                    continue
                server = socket.create_connection(self._target)
                self._servers.append(server)
                for ends in ((client, server), (server, client)):
                    self._threads.append(threading.Thread(target=_copy, args=ends))
                    self._threads[-1].start()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(4096):
            target.sendall(data)
    for one in (source, target):
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedZooKeeper]:
    with EmbeddedZooKeeper() as running:
        yield running


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port that answers no SYN, as a host that is off: its backlog is full."""
    with ExitStack() as stack, socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(3):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]


def test_a_server_that_forgets_a_connection_costs_no_session(server: EmbeddedZooKeeper) -> None:
    """A server that has accepted the connection and does not respond is asked again in time to keep
    the session. (A ZooKeeper 3.8 that starts may do that: closing the connection fails.)"""
    events: list[SessionEvent] = []
    with (
        closing(Front(server.port)) as front,
        ZkClient(f"127.0.0.1:{front.port}", session_timeout_ms=SESSION_MS) as client,
    ):
        client.add_session_listener(events.append)
        client.create_ephemeral("/kept", "x")
        session = client.session_id
        front.break_connections()
        assert client.get("/kept").data == "x"
        assert client.session_id == session
        assert len(front.accepted) >= 3, "none was silent"
    assert SessionEvent.EXPIRED not in events


def test_a_host_that_is_off_does_not_hold_up_a_start(
    server: EmbeddedZooKeeper, silent_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host that does not answer at all leaves time for the next one of the list."""
    monkeypatch.setattr(random, "shuffle", lambda hosts: None)
    hosts = f"127.0.0.1:{silent_port},{server.connect_string}"
    with ZkClient(hosts, session_timeout_ms=SESSION_MS) as client:
        assert client.exists("/zookeeper")


def test_the_share_is_of_the_granted_timeout() -> None:
    """A server grants less than is asked for (its maximum): the share is of that, since it ends the
    session then."""
    granted = [60_000]
    client = KazooClient("a,b", timeout=60.0)
    seen: list[float | None] = []
    client.handler.create_connection = lambda address, timeout: seen.append(timeout)
    limit_patience(client, lambda: granted[0])
    client.handler.create_connection("a", timeout=60.0)
    granted[0] = 6000
    client.handler.create_connection("a", timeout=60.0)
    client.handler.create_connection("a")
    assert seen == [20.0, 2.0, None]


def test_each_address_of_a_name_has_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """One name may stand for a whole ensemble: with five of its six addresses off, there is time
    for the sixth. A name that does not resolve leaves the share of a lone server."""
    found = [(0, 0, 0, "", (f"10.0.0.{n}", 2181)) for n in range(6)]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: found)
    client = KazooClient("ensemble", timeout=60.0)
    seen: list[float | None] = []
    client.handler.create_connection = lambda address, timeout: seen.append(timeout)
    limit_patience(client, lambda: 6000)
    for addresses in (6, 0):
        del found[addresses:]
        assert addresses == len(client._connection._expand_client_hosts())
        client.handler.create_connection("10.0.0.1", timeout=60.0)
    assert seen == [1.0, 2.0]
