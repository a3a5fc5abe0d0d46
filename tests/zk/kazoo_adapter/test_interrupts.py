"""An interrupt that comes while a request is handed to kazoo."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kafka08.errors import SessionLost
from kafka08.zk.kazoo_adapter.session import KazooSession, on_threads
from kafka08.zk.operations import Get
from kafka08.zk.zookeeper import SessionSettings


class Waker:
    """Stands for the socket that wakes kazoo's thread; raises what it is made with."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def send(self, _: bytes) -> int:
        raise self._error


def session_whose_waker(socket: Any) -> KazooSession:
    session = on_threads(SessionSettings("127.0.0.1:1", "", 1000))
    session._kazoo._connection = SimpleNamespace(_write_sock=socket)
    session._kazoo._state = "CONNECTED"
    return session


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_passes(interrupt: type[BaseException]) -> None:
    """kazoo's own client swallows it: SIGTERM and Ctrl-C would be lost, and the request refused."""
    session = session_whose_waker(Waker(interrupt()))
    with pytest.raises(interrupt):
        session.send(Get("/a"))


@pytest.mark.parametrize("socket", [Waker(OSError("closed")), None], ids=["closed", "none"])
def test_a_closed_connection_refuses(socket: Any) -> None:
    """The answer is there at once: nothing else would ever settle it."""
    pending = session_whose_waker(socket).send(Get("/a"))
    assert pending.ready()
    assert isinstance(pending.outcome(), SessionLost)
