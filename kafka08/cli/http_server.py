"""A small HTTP server for a WSGI application, on the standard library."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterable
from io import BufferedReader, RawIOBase, StringIO
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication

    from _typeshed import WriteableBuffer as Buffer

REQUEST_S_MAX: Final = 5.0
"""The whole request must arrive in this time, however it is cut: its sender holds a place."""
RESPONSE_S_MAX: Final = 30.0
"""For a client to take the response."""
REQUEST_BYTES_MAX: Final = 256 << 10
"""Request line, headers and body."""
CONNECTIONS_MAX: Final = 64
"""At a time; those above it are closed at once."""


def serve_http(app: Callable[..., Iterable[bytes]], host: str, port: int, option: str) -> str:
    """Serve `app` from now on, in threads that do not keep the process alive. Returns the address,
    with the port that replaced 0. ConfigError, which names `option`, if it is not free."""
    from socketserver import ThreadingMixIn
    from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

    from kafka08.errors import ConfigError
    from kafka08.runtime.listen_errors import listen_error_text

    class Server(ThreadingMixIn, WSGIServer):
        daemon_threads = True
        block_on_close = False
        request_queue_size = CONNECTIONS_MAX
        address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        places = threading.BoundedSemaphore(CONNECTIONS_MAX)

        def process_request(self, request: Any, client_address: Any) -> None:
            if self.places.acquire(blocking=False):
                super().process_request(request, client_address)
            else:
                self.shutdown_request(request)

        def process_request_thread(self, request: Any, client_address: Any) -> None:
            try:
                super().process_request_thread(request, client_address)
            finally:
                self.places.release()

        def handle_error(self, request: Any, client_address: Any) -> None:
            """Nothing: a client that goes away before it has its response is no error of ours."""

    class Handler(WSGIRequestHandler):
        def setup(self) -> None:
            super().setup()
            self.rfile = BufferedReader(RequestReader(self.connection))

        def log_message(self, *_: object) -> None:
            """Logs no line for a request."""

        def get_stderr(self) -> Any:
            """Logs no traceback of a client that disconnected either."""
            return StringIO()

    wsgi: WSGIApplication = app
    try:
        server = Server((host, port), Handler)
    except (OSError, UnicodeError) as error:  # UnicodeError: a name that no host can have
        reason = listen_error_text(error) if isinstance(error, OSError) else error
        raise ConfigError(f"{option}: cannot listen on {host}:{port}: {reason}") from error
    server.set_app(wsgi)
    threading.Thread(target=server.serve_forever, name="http server", daemon=True).start()
    return f"http://{f'[{host}]' if ':' in host else host}:{server.server_port}"


class RequestReader(RawIOBase):
    """Reads one request from a socket: TimeoutError after REQUEST_S_MAX, OSError after
    REQUEST_BYTES_MAX."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._deadline = time.monotonic() + REQUEST_S_MAX
        self._left = REQUEST_BYTES_MAX

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer, /) -> int:
        remaining = self._deadline - time.monotonic()
        if remaining <= 0:
            raise TimeoutError("the request did not arrive in time")
        if not self._left:
            raise OSError("the request is too large")
        self._connection.settimeout(remaining)
        try:
            count = self._connection.recv_into(memoryview(buffer)[: self._left])
        finally:
            self._connection.settimeout(RESPONSE_S_MAX)
        self._left -= count
        return count
