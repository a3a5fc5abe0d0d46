"""Tells when ZooKeeper last heard from this session, as far as the client can prove.

The server ends a session that it has not heard from for the negotiated timeout. A reply proves
only that the server had the *request*: after a pause of the process (SIGSTOP, a long collection)
old replies wait in the socket of a session that may be over. So the server last heard from us when
the newest request or heartbeat with a reply was **sent**. Replies come in the order of requests.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final

from kafka08.clock import Clock

if TYPE_CHECKING:
    from kazoo.protocol.connection import ConnectionHandler

WATCH_EVENT: Final = -1
"""The xid of a watch event in ZooKeeper's protocol: it is no reply."""


class LastHeard:
    """Records the times of one kazoo connection, which keeps none itself.

    at           monotonic time of the newest request that has a reply
    timeout_ms   the session timeout that the server granted, within its own bounds
    requests     number of requests sent, without heartbeats; a transaction counts as one
    """

    def __init__(self, connection: ConnectionHandler, clock: Clock, timeout_ms: int) -> None:
        self.at = clock.monotonic()
        self.timeout_ms = timeout_ms
        self.requests = 0
        self._clock = clock
        self._in_flight: deque[float] = deque()
        self._submit = connection._submit
        self._read_header = connection._read_header
        self._invoke = connection._invoke
        connection._submit = self._note_request
        connection._read_header = self._note_reply
        connection._invoke = self._note_connect

    def _note_request(self, request: Any, timeout: float, xid: int | None = None) -> None:
        if xid:
            self._in_flight.append(self._clock.monotonic())
            self.requests += xid > 0  # heartbeats, credentials and watches have numbers below
        self._submit(request, timeout, xid)

    def _note_reply(self, timeout: float) -> Any:
        reply = self._read_header(timeout)
        if reply[0].xid != WATCH_EVENT and self._in_flight:
            self.at = self._in_flight.popleft()
        return reply

    def _note_connect(self, timeout: float, request: Any, xid: int | None = None) -> Any:
        """The handshake of a connection; requests sent before it get no reply."""
        if xid:
            return self._invoke(timeout, request, xid)
        self._in_flight.clear()
        sent_at = self._clock.monotonic()
        result = self._invoke(timeout, request, xid)
        granted_ms = result[0].time_out
        if granted_ms > 0:
            self.at, self.timeout_ms = sent_at, granted_ms
        return result
