"""The HTTP server of metrics and console: its number of threads, and a port that is in use."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from typing import Any

import pytest

from kafka08.cli import http_server
from kafka08.cli.http_server import CONNECTIONS_MAX, serve_http
from kafka08.errors import ConfigError
from tests.waiting import until


def app(_: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    start_response("200 OK", [("Content-Length", "2")])
    return [b"ok"]


def response_bytes(port: int) -> bytes:
    """The response to a request, or nothing if the connection is closed at once."""
    with socket.create_connection(("127.0.0.1", port), 60) as connection:
        try:
            connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
            return connection.makefile("rb").read()
        except ConnectionError:
            return b""


def test_silent_clients_use_a_bounded_number_of_threads() -> None:
    """Clients that send nothing use a bounded number of threads. One more is closed at once. When
    they leave, others are served."""
    port = int(serve_http(app, "127.0.0.1", 0, "--listen").rpartition(":")[2])
    assert response_bytes(port).endswith(b"ok")
    with ExitStack() as stack:
        for _ in range(CONNECTIONS_MAX):
            stack.enter_context(socket.create_connection(("127.0.0.1", port), 60))
        until(lambda: response_bytes(port) == b"")
    until(lambda: response_bytes(port).endswith(b"ok"))


def test_a_client_that_drips_loses_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole request has one deadline: a byte now and then does not extend it."""
    monkeypatch.setattr(http_server, "REQUEST_S_MAX", 0.5)
    port = int(serve_http(app, "127.0.0.1", 0, "--listen").rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), 60) as client:
        client.settimeout(0.05)

        def is_closed() -> bool:
            try:
                client.sendall(b"G")
                return client.recv(1) == b""
            except TimeoutError:
                return False
            except OSError:
                return True

        until(is_closed)


def test_a_request_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its headers, too: the library takes a hundred of 64 KB each."""
    monkeypatch.setattr(http_server, "REQUEST_BYTES_MAX", 1000)
    port = int(serve_http(app, "127.0.0.1", 0, "--listen").rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), 60) as client:
        client.sendall(b"GET / HTTP/1.0\r\n" + b"x: %s\r\n" % (b"y" * 2000))
        client.shutdown(socket.SHUT_WR)
        with suppress(ConnectionError):
            assert b"ok" not in client.makefile("rb").read()


def test_an_address_that_cannot_be_bound_is_named() -> None:
    """The error for a port in use, or an impossible host, has the option that set it."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"--listen: cannot listen on 127.0.0.1:{port}"):
            serve_http(app, "127.0.0.1", port, "--listen")
    with pytest.raises(ConfigError, match=r"--listen: cannot listen on a\.\.b:0"):
        serve_http(app, "a..b", 0, "--listen")
