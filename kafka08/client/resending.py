"""A connection that sends a request once more after an I/O error."""

from __future__ import annotations

import logging

from kafka08.errors import Closed, ConnectionFailed, RequestTimeout
from kafka08.network.connection import Connection
from kafka08.protocol.types import Request, Response

logger = logging.getLogger(__name__)


class PendingRequest:
    """A request in flight, see `ResendingConnection.start`."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.response: Response | None = None
        """The response once it was read; it stays None if the connection broke."""


class ResendingConnection:
    """Send only idempotent requests: the first attempt may have been executed, and only its
    response lost. Thread-safe: one request at a time.

    Each method raises the error of the second attempt, ConnectionFailed, RequestTimeout or
    ProtocolError (after which nothing is sent again), and Closed after `close`. Source:
    kafka.consumer.SimpleConsumer.sendRequest 0.8.2.2.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = connection.runtime.rlock()
        self._pending: PendingRequest | None = None
        self._closed = False

    def __str__(self) -> str:
        return str(self._connection)

    def send(self, request: Request) -> Response:
        """The response to `request`."""
        with self._lock:
            self._settle()
            return self._exchange(request)

    def start(self, request: Request) -> PendingRequest:
        """Send `request` without waiting for its response, which `result` returns. One request is
        pending at a time: the next one, of any kind, first waits for its response."""
        with self._lock:
            self._settle()
            pending = PendingRequest(request)
            self._check_open()
            try:
                self._connection.write(request)
            except (ConnectionFailed, RequestTimeout) as error:
                logger.info("Reconnect due to socket error: %s", error)
            else:
                self._pending = pending
            return pending

    def result(self, pending: PendingRequest) -> Response:
        """The response to a started request."""
        with self._lock:
            self._settle()
            if pending.response is None:
                pending.response = self._exchange(pending.request)
            return pending.response

    def close(self) -> None:
        """Close; a thread that waits in another method gets Closed or ConnectionFailed."""
        self._closed = True
        # Before the lock, which a thread that waits for a response holds: this ends its wait.
        self._connection.abort()
        with self._lock:
            self._connection.close()

    def _settle(self) -> None:
        """Read the pending response, so that the connection is free."""
        pending, self._pending = self._pending, None
        if pending is None or not self._connection.in_flight:
            return
        try:
            pending.response = self._connection.read_response()
        except (ConnectionFailed, RequestTimeout) as error:
            logger.info("Reconnect due to socket error: %s", error)

    def _exchange(self, request: Request) -> Response:
        self._check_open()
        try:
            return self._connection.send(request)
        except (ConnectionFailed, RequestTimeout) as error:
            logger.info("Reconnect due to socket error: %s", error)
        self._check_open()
        return self._connection.send(request)

    def _check_open(self) -> None:
        if self._closed:
            raise Closed(f"the client of {self} is closed")
