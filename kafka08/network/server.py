"""SocketServer: accepts connections, on the event loop of a BrokerRuntime, and keeps their limits:
size of a request, time without a request, and the broker's connections from one address.

Everything runs in the hub and nothing switches. Source: kafka.network.SocketServer 0.8.2.2.
"""

from __future__ import annotations

import errno
import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Final

from kafka08.log_limit import caused_by
from kafka08.network.accepted_connection import AcceptedConnection
from kafka08.network.connection_quotas import ConnectionQuotas
from kafka08.network.server_connection import RequestHandlers
from kafka08.protocol.frame import BufferPool
from kafka08.runtime import BrokerRuntime, Cancellable, IoWatch, Listener
from kafka08.runtime.transport import AcceptedStream, Address

logger = logging.getLogger("kafka.network.Processor")

ACCEPTS_MAX: Final = 64
"""Connections accepted in one callback."""
ACCEPT_PAUSE_S: Final = 0.1
"""Pause after accept failed for want of descriptors."""
END_GRACE_S: Final = 10.0
"""How long a client that has closed its side may wait for the response to its parked request."""
ADVICE: Final[Mapping[int, str]] = {
    errno.EMFILE: ". Raise this process's limit of open files (ulimit -Hn): it needs one for each "
    "log segment and one for each connection, and keeps some for new segments.",
    errno.ENFILE: ". Raise the system's limit of open files (fs.file-max).",
}

CallLater = Callable[[float, Callable[[], object]], Cancellable]
"""`call_later(ms, call)`: the broker's timing wheel."""


class SocketServer:
    """Accepts connections of one listener and gives their requests to `handlers` in turn.

    request_bytes_max   larger frames close the connection (socket.request.max.bytes)
    quotas              of the broker: a connection above the limit of its address is closed at once
    idle_ms             a connection that sends nothing for this time is closed
                        (connections.max.idle.ms); checked by `call_later`
    handshake           makes the handlers of what a connection must send before its first request.
                        Its iterator repeats a handler until that has what it wants (a turn without
                        a frame uses one up), and ends when requests may follow
    """

    def __init__(
        self,
        runtime: BrokerRuntime,
        listener: Listener,
        handlers: RequestHandlers,
        *,
        request_bytes_max: int,
        call_later: CallLater,
        quotas: ConnectionQuotas,
        idle_ms: int,
        handshake: Callable[[], RequestHandlers] | None = None,
    ) -> None:
        self.runtime = runtime
        self.handlers = handlers
        self.handshake = handshake
        self.request_bytes_max = request_bytes_max
        self.buffers = BufferPool()
        self.port = listener.port
        self._listener = listener
        self._accepting: IoWatch | None = None
        self._call_later = call_later
        self._quotas = quotas
        self._idle_seconds = idle_ms / 1000
        self._by_age: OrderedDict[AcceptedConnection, float] = OrderedDict()
        """Connections by when they were last known to have sent something, oldest first."""
        self._idle_check: Cancellable | None = None

    def __len__(self) -> int:
        """Open connections."""
        return len(self._by_age)

    def handle_by(self, handlers: RequestHandlers) -> None:
        """Give the requests of all connections, open ones too, to these handlers."""
        self.handlers = handlers
        for connection in self._by_age:
            connection.handle_by(handlers)

    def queued(self) -> tuple[int, int]:
        """(connections with received requests that wait for their next turn, connections with
        responses that wait for room in their socket)."""
        requests = sum(connection.scheduled for connection in self._by_age)
        return requests, sum(bool(connection.outbox) for connection in self._by_age)

    def start(self) -> None:
        """Begin to accept."""
        self._accepting = self.runtime.when_acceptable(self._listener)
        self._accepting.start(self._on_acceptable)

    def stop(self) -> None:
        """Stop accepting and close every connection; parked requests are abandoned."""
        if self._accepting is not None:
            self._accepting.close()
            self._accepting = None
        self._listener.close()
        if self._idle_check is not None:
            self._idle_check.cancel()
        for connection in list(self._by_age):
            connection.close()

    def _on_acceptable(self) -> None:
        for _ in range(ACCEPTS_MAX):
            try:
                accepted, address = self._listener.accept()
            except BlockingIOError:
                return
            except OSError as error:
                advice = ADVICE.get(error.errno or 0, "")
                logger.error(
                    "Error while accepting connection: %s%s", error, advice, extra=caused_by("")
                )
                if error.errno in {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}:
                    self._pause_accepting()
                return
            try:
                self._take(accepted, address)
            except Exception as error:
                accepted.close()
                expected = isinstance(error, OSError)
                logger.error(
                    "Closing socket connection to /%s, which was just accepted: %s",
                    address[0],
                    error,
                    exc_info=None if expected else error,
                    extra=caused_by(address[0]),
                )

    def _pause_accepting(self) -> None:
        """Stop accepting for a moment: without a free file descriptor the listener stays
        readable."""
        assert self._accepting is not None
        self._accepting.stop()

        def go_on() -> None:
            if self._accepting is not None:
                self._accepting.start(self._on_acceptable)

        self._call_later(ACCEPT_PAUSE_S * 1000, go_on)

    def _take(self, accepted: AcceptedStream, address: Address) -> None:
        host = address[0]
        if self._quotas.is_full(host):
            logger.info(
                "Rejected connection from /%s, address already has the configured maximum of %d "
                "connections.",
                host,
                self._quotas.limit(host),
                extra=caused_by(host),
            )
            accepted.close()
            return
        connection = AcceptedConnection(self, accepted, address)
        self._quotas.add(host)
        self._by_age[connection] = connection.last_read
        if self._idle_check is None:
            self._idle_check = self._call_later(self._idle_seconds * 1000, self._close_idle)

    def close_later(self, connection: AcceptedConnection) -> None:
        """Close a connection whose client has closed its side, unless its parked request has its
        response by then. None of Kafka's clients waits for one; programs such as nc do."""

        def close() -> None:
            if connection.parked:
                connection.close("its client has closed its side")

        self._call_later(END_GRACE_S * 1000, close)

    def look_after(self, connection: AcceptedConnection) -> None:
        """`close_later` for a client that has sent more behind its parked request: the bytes hide
        its end, so look for that now and then. No more than one timer for each connection."""
        if connection.is_looked_after:
            return
        connection.is_looked_after = True

        def look() -> None:
            connection.is_looked_after = False
            if connection.parked and not connection.closed:
                if connection.has_finished():
                    connection.close("its client has closed its side")
                else:
                    self.look_after(connection)

        self._call_later(END_GRACE_S * 1000, look)

    def forget(self, connection: AcceptedConnection) -> None:
        """A connection has closed."""
        del self._by_age[connection]
        self._quotas.remove(connection.host)

    def _close_idle(self) -> None:
        """Close what sent nothing for too long. Reading itself keeps no order: a connection at the
        head that did send something goes to the end when its turn comes, so each is looked at
        about once in an idle period and closed after one to two of them."""
        self._idle_check = None
        now = self.runtime.monotonic()
        while self._by_age:
            connection, noted = next(iter(self._by_age.items()))
            remaining = noted + self._idle_seconds - now
            if remaining > 0:
                self._idle_check = self._call_later(remaining * 1000, self._close_idle)
                return
            if connection.last_read > noted:
                self._by_age[connection] = connection.last_read
                self._by_age.move_to_end(connection)
            else:
                connection.close("About to close the idle connection")
