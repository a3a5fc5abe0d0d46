"""The private parts of kazoo that the adapter uses have the expected names and shapes.

setup.cfg allows the versions of kazoo for which this holds. Widen the range only if this passes
with the new version."""

from __future__ import annotations

import inspect
import re

import pytest
from kazoo.client import KazooClient
from kazoo.protocol.connection import AUTH_XID, PING_XID, WATCH_XID, ConnectionHandler
from kazoo.protocol.serialization import Connect, ReplyHeader

from kafka08.zk.kazoo_adapter.last_heard import WATCH_EVENT


@pytest.mark.parametrize(
    ("method", "parameters"),
    [
        ("_submit", ["self", "request", "timeout", "xid"]),
        ("_read_header", ["self", "timeout"]),
        ("_invoke", ["self", "timeout", "request", "xid"]),
    ],
)
def test_the_methods_that_last_heard_wraps(method: str, parameters: list[str]) -> None:
    """Parameters and their order are the same, because the wrappers pass them on by position."""
    assert list(inspect.signature(getattr(ConnectionHandler, method)).parameters) == parameters


@pytest.mark.parametrize("method", ["_submit", "_read_header", "_invoke"])
def test_kazoo_calls_them_through_the_instance(method: str) -> None:
    """kazoo calls each method as `self.<method>(…)`, so it calls the wrapper on the instance."""
    source = inspect.getsource(ConnectionHandler)
    assert f"self.{method}(" in source
    assert f"ConnectionHandler.{method}(" not in source


def test_the_fields_that_the_session_reads() -> None:
    """A client that has not connected has no session, but a connection."""
    client = KazooClient("127.0.0.1:1")
    assert client._session_id is None
    assert isinstance(client._connection, ConnectionHandler)


def test_the_responses_that_last_heard_reads() -> None:
    """A response begins with a header that has `xid`; the first response of a connection has
    `time_out`."""
    assert ReplyHeader._fields[0] == "xid"
    assert "time_out" in Connect._fields
    assert WATCH_XID == WATCH_EVENT
    assert max(PING_XID, AUTH_XID) < 0, "heartbeats are not counted as requests"


def test_what_limits_its_patience() -> None:
    """Connections are opened by the handler, with `timeout` by name, to addresses that were looked
    up before; the first request of one has the session's id."""
    assert "host_ports = self._expand_client_hosts()\n" in inspect.getsource(ConnectionHandler)
    assert "timeout=client._session_timeout / 1000.0," in inspect.getsource(ConnectionHandler)
    assert "self.handler.create_connection(" in inspect.getsource(ConnectionHandler)
    assert "client._session_timeout / 1000.0 / len(client.hosts), connect\n" in inspect.getsource(
        ConnectionHandler
    ), "the request has no xid"
    assert "session_id" in Connect._fields
    assert KazooClient("127.0.0.1:1", timeout=2.5)._session_timeout == 2500


def test_what_it_asks_its_handler_for() -> None:
    """It asks for readers and writers by position, and never for both of one socket."""
    asked = re.findall(
        r"self\.handler\.select\(\s*(.*?)\s*\)\[", inspect.getsource(ConnectionHandler)
    )
    assert sorted(asked) == [
        "[], [self._socket], [], timeout",
        "[self._socket, self._read_sock], [], [], timeout",
        "[self._socket], [], [], timeout",
    ]
