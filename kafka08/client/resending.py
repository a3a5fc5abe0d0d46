"""A connection that sends a request once more when the first attempt met an I/O error."""

from __future__ import annotations

import logging

from kafka08.errors import Closed, ConnectionFailed, RequestTimeout
from kafka08.network.connection import Connection
from kafka08.protocol.types import Request, Response

logger = logging.getLogger(__name__)


class PendingRequest:
    """A request that is on its way, see `ResendingConnection.start`."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.response: Response | None = None
        """The answer once somebody has read it; None for good if its connection broke."""


class ResendingConnection:
    """Whatever is sent must bear being carried out twice: the first attempt may have been, and only
    its answer lost. Thread-safe: one request at a time.

    Each method raises what the second attempt raised, ConnectionFailed, RequestTimeout or
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
        """The answer to `request`."""
        with self._lock:
            self._settle()
            return self._exchange(request)

    def start(self, request: Request) -> PendingRequest:
        """Send `request` without waiting for its answer, for which `result` is there. One is
        pending at a time: the next request, of whatever kind, first waits for its answer."""
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
        """The answer to a request that was started."""
        with self._lock:
            self._settle()
            if pending.response is None:
                pending.response = self._exchange(pending.request)
            return pending.response

    def close(self) -> None:
        """Close; a thread that waits in another method gets Closed or ConnectionFailed."""
        self._closed = True
        self._connection.abort()
        with self._lock:
            self._connection.close()

    def _settle(self) -> None:
        """Read the answer that is on its way, so that the connection is free."""
        pending, self._pending = self._pending, None
        if pending is None or not self._connection.in_flight:
            return
        try:
            pending.response = self._connection.read()
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
