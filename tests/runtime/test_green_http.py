"""The HTTP server of a broker's metrics: no client holds one of its few places for long."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from typing import Any, Final

import gevent
import gevent.socket
import pytest

from kafka08.runtime import green_http
from kafka08.runtime.green_http import CONNECTIONS_MAX, Handler, serve

DEADLINE_S: Final = 30.0
RESPONSE: Final = bytes(8 << 20)
"""More than the sockets of both ends hold."""


def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    body = RESPONSE if environ["PATH_INFO"] == "/large" else b"ok"
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> int:
    """Of a server that gives up soon."""
    for name in ("IDLE_S", "HEADERS_S", "RESPONSE_S"):
        monkeypatch.setattr(green_http, name, 0.5)
    monkeypatch.setattr(Handler, "_idle_s", 0.5)
    return serve("127.0.0.1", 0, app)


def connected(port: int) -> Any:
    return gevent.socket.create_connection(("127.0.0.1", port), DEADLINE_S)


def is_served(port: int) -> bool:
    with connected(port) as client:
        client.sendall(b"GET / HTTP/1.0\r\n\r\n")
        return bool(client.makefile("rb").read().endswith(b"ok"))


@pytest.mark.parametrize(
    ("sent", "dripped"),
    [
        (b"", b"G"),
        (b"GET / HTTP/1.1\r\n", b"x: y\r\n"),
        (b"POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", b"x"),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
        (b"GET /large HTTP/1.1\r\n\r\n", b""),
    ],
    ids=["request line", "headers", "body", "chunks", "response"],
)
def test_who_is_slow_loses_its_place(
    port: int, sent: bytes, dripped: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    """As many clients as there are places, whatever they are slow with: another one is served, and
    no line is written. (64 that announced a body and sent none held them for ever.)"""
    with ExitStack() as stack:
        clients = [stack.enter_context(connected(port)) for _ in range(CONNECTIONS_MAX)]
        for client in clients:
            client.sendall(sent)

        def drip() -> None:
            while True:
                gevent.sleep(0.1)
                for client in clients:
                    with suppress(OSError):
                        client.sendall(dripped)

        dripping = gevent.spawn(drip)
        began = time.monotonic()
        assert is_served(port)
        assert time.monotonic() - began < DEADLINE_S
        dripping.kill()
    assert ("", "") == capfd.readouterr()


@pytest.mark.parametrize(
    "sent", [b"\r\n\r\n", b"\x1b[2J / x\r\n\r\n", b"GET / HTTP/1.0\r\nContent-Length: x\r\n\r\n"]
)
def test_a_bad_request_writes_no_line(
    port: int, sent: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    """Anybody could fill the broker's log with such lines."""
    with connected(port) as client:
        client.sendall(sent)
        assert b" 400 " in client.makefile("rb").readline()
    assert ("", "") == capfd.readouterr()
