"""LastHeard on a simulated connection."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kafka08.zk.kazoo_adapter.last_heard import WATCH_EVENT, LastHeard
from tests.mock_clock import MockClock

PING = -2


class Connection:
    """The methods of kazoo's ConnectionHandler that LastHeard wraps."""

    def __init__(self) -> None:
        self.responses: list[int] = []
        self.granted_ms = 4000

    def _submit(self, request: Any, timeout: float, xid: int | None = None) -> None:
        pass

    def _read_header(self, timeout: float) -> Any:
        return SimpleNamespace(xid=self.responses.pop(0)), b"", 0

    def _invoke(self, timeout: float, request: Any, xid: int | None = None) -> Any:
        return SimpleNamespace(time_out=self.granted_ms), None

    def send(self, xid: int) -> None:
        self._submit(None, 1, xid)

    def receive(self, xid: int) -> None:
        self.responses.append(xid)
        self._read_header(1)


@pytest.fixture
def clock() -> MockClock:
    return MockClock(start_ms=0)


@pytest.fixture
def connection() -> Connection:
    return Connection()


@pytest.fixture
def heard(connection: Connection, clock: MockClock) -> LastHeard:
    return LastHeard(connection, clock, timeout_ms=6000)


def test_a_response_proves_when_its_request_was_sent(
    heard: LastHeard, connection: Connection, clock: MockClock
) -> None:
    """A response counts from the time at which its request was sent, because the process may have
    been suspended before it read the response."""
    clock.advance(1)
    connection.send(1)
    clock.advance(1)
    connection.send(PING)
    clock.advance(60)
    connection.receive(1)
    assert heard.at == 1
    connection.receive(PING)
    assert heard.at == 2
    assert heard.requests == 1


def test_a_watch_event_proves_nothing(
    heard: LastHeard, connection: Connection, clock: MockClock
) -> None:
    """A watch event answers no request, so it does not count."""
    clock.advance(1)
    connection.send(1)
    connection.receive(WATCH_EVENT)
    assert heard.at == 0
    connection.receive(1)
    assert heard.at == 1


def test_a_connection_starts_over(
    heard: LastHeard, connection: Connection, clock: MockClock
) -> None:
    """A new connection forgets the requests of the last one, which get no response, and takes the
    timeout that the server grants."""
    clock.advance(1)
    connection.send(1)
    clock.advance(1)
    connection._invoke(1, None)
    assert (heard.at, heard.timeout_ms) == (2, 4000)
    clock.advance(1)
    connection.send(2)
    connection.receive(2)
    assert heard.at == 3


def test_an_expired_session_was_not_heard(
    heard: LastHeard, connection: Connection, clock: MockClock
) -> None:
    """With a timeout of 0 the server refuses the session. That response does not count."""
    clock.advance(1)
    connection.granted_ms = 0
    connection._invoke(1, None)
    assert (heard.at, heard.timeout_ms) == (0, 6000)
