"""The HTTP server of a broker's metrics, on gevent."""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import gevent
from gevent.pool import Pool
from gevent.pywsgi import WSGIHandler, WSGIServer

CONNECTIONS_MAX: Final = 64
IDLE_S: Final = 120.0
"""Longer than the usual time between two scrapes, which use one connection."""
HEADERS_S: Final = 5.0
RESPONSE_S: Final = 30.0
"""For a client to take the response, and to send the body that nobody reads."""


def serve(host: str, port: int, app: Callable[..., Any]) -> int:
    """Serve a WSGI application; the port. OSError if the address is taken."""
    server = WSGIServer(
        (host, port), app, spawn=Pool(CONNECTIONS_MAX), log=None, handler_class=Handler
    )
    server.start()
    taken: int = server.server_port
    return taken


class Handler(WSGIHandler):  # type: ignore[misc]  # it has no types
    """Gives up a client that drips, or does not take its response: it holds one of few places."""

    ignored_socket_errors = (*WSGIHandler.ignored_socket_errors, errno.EBADF)
    """The last one is that of a wait at a connection that `_end` has ended."""
    _idle_s = HEADERS_S

    def read_requestline(self) -> str:
        try:
            with gevent.Timeout(self._idle_s):
                return str(super().read_requestline())
        except gevent.Timeout:
            return ""

    def read_request(self, raw_requestline: str) -> bool:
        late = ValueError("the headers did not arrive in time")
        with gevent.Timeout(HEADERS_S, late):
            return bool(super().read_request(raw_requestline))

    def handle_one_response(self) -> None:
        """Behind the response the base class reads the rest of the request's body."""
        self._idle_s = IDLE_S
        timer = gevent.get_hub().loop.timer(RESPONSE_S)
        timer.start(self._end)
        try:
            super().handle_one_response()
        finally:
            timer.close()

    def _end(self) -> None:
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)

    def log_error(self, msg: str, *_: object) -> None:
        """No line for what a client sends."""
