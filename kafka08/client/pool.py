"""A pool of connections to brokers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kafka08.errors import Closed, ConnectionFailed
from kafka08.lifecycle import ProcessBound
from kafka08.network.connection import Connection
from kafka08.runtime import Runtime
from kafka08.runtime.threads import THREADS
from kafka08.structs import host_port

IDLE_PER_BROKER = 2
"""Idle connections of one broker beyond this number are closed."""


class ConnectionPool(ProcessBound):
    """Lends each connection to one thread at a time, so its users need no lock of their own.

    `make(host, port)` returns a connection that is not open yet. Thread-safe.

    is_closed   `close` was called
    """

    def __init__(self, make: Callable[[str, int], Connection], runtime: Runtime = THREADS) -> None:
        self._make = make
        self._lock = runtime.rlock()
        """Re-entrant: a signal handler may close connections that its own thread is using."""
        self._idle: dict[tuple[str, int], list[Connection]] = {}
        self._lent: dict[int, Connection] = {}
        self.is_closed = False

    @contextmanager
    def connection(self, host: str, port: int) -> Iterator[Connection]:
        """An open connection for the block. It returns to the pool if it is still open with no
        request in flight. Raises ConnectionFailed, Closed."""
        connection = self._take(host, port)
        try:
            connection.open()
            if self.is_closed:  # before it was open: nothing else would end its next wait
                raise Closed("the client is closed")
            yield connection
        finally:
            self._give_back(connection)

    def close(self) -> None:
        """Close the idle ones and abort those in use; their threads get ConnectionFailed."""
        with self._lock:
            self.is_closed = True
            lent = list(self._lent.values())
        self.close_idle()
        for connection in lent:
            connection.abort()

    def close_idle(self) -> None:
        """Close the idle connections. The pool can still be used."""
        with self._lock:
            idle = [connection for of_broker in self._idle.values() for connection in of_broker]
            self._idle.clear()
        for connection in idle:
            connection.close()

    def _take(self, host: str, port: int) -> Connection:
        while True:
            with self._lock:
                if self.is_closed:
                    raise Closed("the client is closed")
                idle = self._idle.get((host, port))
                connection = idle.pop() if idle else self._make(host, port)
                self._lent[id(connection)] = connection
            if not connection.is_stale():
                return connection
            lost = connection.sent_unconfirmed
            self._give_back(connection, close=True)
            if lost:
                # With acks 0 this is a broker's only sign of an error. The next request must report
                # it, or the client would keep sending to a broker that drops everything.
                raise ConnectionFailed(
                    f"{host_port(host, port)} closed the connection after requests without "
                    "acknowledgement"
                )

    def _give_back(self, connection: Connection, *, close: bool = False) -> None:
        with self._lock:
            del self._lent[id(connection)]
            idle = self._idle.setdefault((connection.host, connection.port), [])
            keep = (
                connection.is_open
                and connection.in_flight == 0
                and len(idle) < IDLE_PER_BROKER
                and not (close or self.is_closed)
            )
            if keep:
                idle.append(connection)
        if not keep:
            connection.close()
