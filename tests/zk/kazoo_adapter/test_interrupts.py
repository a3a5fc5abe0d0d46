"""A signal that arrives while the adapter hands a request to kazoo."""

from __future__ import annotations

import socket
import time
from types import SimpleNamespace
from typing import Any

import pytest

from kafka08.errors import SessionLost
from kafka08.zk.kazoo_adapter.session import KazooSession, on_threads
from kafka08.zk.operations import Get
from kafka08.zk.zookeeper import SessionSettings


class Waker:
    """Replaces the socket that wakes kazoo's thread, and raises the given exception."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def send(self, _: bytes) -> int:
        raise self._error


def session_whose_waker(waker: Any) -> KazooSession:
    session = on_threads(SessionSettings("127.0.0.1:1", "", 1000))
    session._kazoo._connection = SimpleNamespace(_write_sock=waker)
    session._kazoo._state = "CONNECTED"
    return session


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_passes(interrupt: type[BaseException]) -> None:
    """KeyboardInterrupt passes through the adapter. kazoo's own client swallows it: the signal
    would be lost and the request refused."""
    session = session_whose_waker(Waker(interrupt()))
    with pytest.raises(interrupt):
        session.send(Get("/a"))


@pytest.mark.parametrize("waker", [Waker(OSError("closed")), None], ids=["closed", "none"])
def test_a_closed_connection_refuses(waker: Any) -> None:
    """A request on a closed connection fails at once, because nothing would ever complete it."""
    pending = session_whose_waker(waker).send(Get("/a"))
    assert pending.ready()
    assert isinstance(pending.outcome(), SessionLost)


def test_a_silent_server_does_not_hold_the_end() -> None:
    """A session that has not begun ends at once: kazoo would wait for the response to it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        session = on_threads(SessionSettings(f"127.0.0.1:{server.getsockname()[1]}", "", 60_000))
        session.start()
        accepted, _ = server.accept()
        with accepted:
            assert accepted.recv(1)  # it asks for a session now
            began = time.monotonic()
            session.close()
            assert time.monotonic() - began < 5
