"""FrameServer: requests as frames on a free port of loopback, one thread for each connection.

class Echo(FrameServer):
    def respond(self, payload: bytes) -> bytes | None: ...

with Echo() as server:
    Connection("127.0.0.1", server.port)
"""

from __future__ import annotations

import socket
import threading
from abc import abstractmethod
from collections.abc import Callable
from contextlib import suppress

from kafka08.lifecycle import Closeable
from kafka08.protocol.frame import SIZE


class FrameServer(Closeable):
    """Listens from its construction on."""

    def __init__(self) -> None:
        self._connections: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._start(self._accept)

    @abstractmethod
    def respond(self, payload: bytes) -> bytes | None:
        """The response of a request, as a frame; None closes the connection. Called in its
        thread."""

    def close(self) -> None:
        """Stop listening, and close all connections."""
        for sock in (self._listener, *self._connections):
            with suppress(OSError):  # closed before
                sock.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _start(self, call: Callable[..., None], *args: object) -> None:
        name = type(self).__name__
        threading.Thread(target=call, args=args, name=name, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                connection, _ = self._listener.accept()
                self._connections.append(connection)
                self._start(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError), connection, connection.makefile("rb") as stream:
            while len(prefix := stream.read(SIZE.size)) == SIZE.size:
                response = self.respond(stream.read(SIZE.unpack(prefix)[0]))
                if response is None:
                    return
                connection.sendall(response)
