"""ServerConnection: the state of one connection to the server, without its socket.

Bytes come in, complete frames go to the request handler one after the other, and responses queue in
`outbox` in the order of their requests. While a request is parked (a long poll, a produce that
waits for replicas), later requests wait too: responses are strictly in the order of requests, as a
client of 0.8 expects. Source: kafka.network.Processor 0.8.2.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count, islice
from typing import Final, Protocol, TypeAlias

from kafka08.protocol.frame import FrameReader
from kafka08.runtime.disk import File

REQUESTS_MAX: Final = 64
"""The most requests in one turn, before other connections get theirs."""
SECONDS_MAX: Final = 0.002
"""The time limit of one turn, checked after each request above LARGE_BYTES."""
LARGE_BYTES: Final = 4096
RESPONSE_BYTES_MAX: Final = 1 << 20
"""A turn ends with the large response that exceeds this: so much, and no more, waits for a client
that does not receive it. A request of 20 bytes may have a response of a megabyte."""
NUMBERS: Final = count()


class FileSlice(Protocol):
    """Bytes of a file that are sent without reading them (kafka08.log.slices.LogSlice)."""

    @property
    def file(self) -> File: ...

    @property
    def position(self) -> int: ...

    @property
    def size(self) -> int: ...


Made: TypeAlias = Callable[["bytes | None", "BaseException | None"], object]


class GeneratedBytes:
    """Bytes that are produced while they are sent, so that few of them are in memory at once. Not
    an ABC, of which isinstance is a call of Python for each slice."""

    __slots__ = ()

    @property
    def size(self) -> int:
        """The number of bytes that `make` has still to return."""
        raise NotImplementedError

    def make(self, done: Made) -> bytes | None:
        """The next bytes, at least one. None: `done` is called in the hub with them, or with an
        error, and `make` is not called before that."""
        raise NotImplementedError


BYTES: Final = (bytes, bytearray, memoryview)
"""For isinstance, which takes three times as long for a union."""
Piece: TypeAlias = bytes | bytearray | memoryview | FileSlice | GeneratedBytes
ResponseFrame: TypeAlias = bytes | bytearray | Sequence[Piece]
"""A whole frame, in one piece or several. Empty bytes: there is no response."""


class RequestConnection(Protocol):
    """A connection as the handler of one of its requests sees it; see ServerConnection."""

    on_close: Callable[[], object] | None

    @property
    def peer(self) -> str: ...

    @property
    def number(self) -> int: ...

    @property
    def ending(self) -> bool: ...

    def send_response(self, response: ResponseFrame) -> None: ...

    def when_sent(self, call: Callable[[], object]) -> None: ...

    def is_abandoned(self) -> bool: ...

    def finish(self, reason: str = "") -> None: ...

    def fail(self, error: Exception) -> None: ...


RequestHandler: TypeAlias = Callable[[memoryview, RequestConnection], ResponseFrame | None]
"""Handles one payload, without switching. None parks the connection until `send_response`. The
payload is valid until the handler returns. ProtocolError closes the connection."""

RequestHandlers: TypeAlias = Iterator[RequestHandler]
"""Endless: the handler of each request in turn, so that one of many can be measured at no cost for
the others. All connections of a server share it; a turn without a request uses one up too."""


class ServerConnection:
    """One connection's requests and responses.

    peer       host:port of the client
    number     grows from each accepted connection to the next
    outbox     pieces of responses to be sent, in order
    parked     a request was handled and its response is still to come
    ending     nothing more is read or handled
    closed     nothing more is sent either
    on_close   called once if the connection closes while a request is parked; set when it is parked
    on_sent    called once when the whole `outbox` was sent; for timing
    """

    __slots__ = ("_early", "_handlers", "_handling", "closed", "ending", "number", "on_close",
                 "on_sent", "outbox", "parked", "peer", "reader")  # fmt: skip

    def __init__(self, peer: str, reader: FrameReader, handlers: RequestHandlers) -> None:
        self.peer = peer
        self.number = next(NUMBERS)
        self.reader = reader
        self.outbox: list[Piece] = []
        self.parked = False
        self.ending = False
        self.closed = False
        self.on_close: Callable[[], object] | None = None
        self.on_sent: Callable[[], object] | None = None
        self._handlers = handlers
        self._handling = False
        self._early: ResponseFrame | None = None

    def handle_by(self, handlers: RequestHandlers) -> None:
        """Give the requests of later turns to these handlers."""
        self._handlers = handlers

    def handle_frames(self, monotonic: Callable[[], float]) -> bool:
        """Handle the complete frames received so far, until one parks or the turn is over. True if
        frames may be left for the next turn. ProtocolError for an invalid frame."""
        deadline = 0.0
        room = RESPONSE_BYTES_MAX
        next_payload, outbox = self.reader.next_payload, self.outbox
        for handle in islice(self._handlers, REQUESTS_MAX):
            payload = next_payload()
            if payload is None:
                return False
            self._handling = True
            response = handle(payload, self)
            self._handling = False
            if response is None:
                # The response may have come while the handler was running.
                response, self._early = self._early, None
                if response is None:
                    self.parked = not self.ending
                    return False
            if self.ending:
                return False
            if type(response) is not bytes:
                self._queue(response)
            elif response:
                outbox.append(response)
                if len(response) > LARGE_BYTES:
                    room -= len(response)
                    if room < 0:
                        return True
            if len(payload) > LARGE_BYTES:
                now = monotonic()
                if deadline == 0.0:
                    deadline = now + SECONDS_MAX
                elif now > deadline:
                    return True
        return True

    def send_response(self, response: ResponseFrame) -> None:
        """Send the response of the parked request. Does nothing if the connection has closed."""
        if self.ending:
            return
        if self._handling:
            self._early = response
            return
        assert self.parked, f"{self.peer} has two responses"
        self.parked = False
        self.on_close = None
        if type(response) is not bytes:
            self._queue(response)
        elif response:
            self.outbox.append(response)
        self.response_queued()

    def is_abandoned(self) -> bool:
        """Whether the client has closed its side, or the connection is broken. Never switches. The
        owner of the socket overrides this."""
        return self.ending

    def response_queued(self) -> None:
        """A parked request has its response: `outbox` must be sent, and frames may be waiting. The
        owner of the socket overrides this."""

    def when_sent(self, call: Callable[[], object]) -> None:
        """Call it when the outbox is sent, after others; never if the connection closes first."""
        earlier = self.on_sent

        def sent() -> None:
            if earlier is not None:
                earlier()
            call()

        self.on_sent = sent

    def sent(self) -> None:
        """The whole `outbox` was sent: call `on_sent`."""
        on_sent, self.on_sent = self.on_sent, None
        if on_sent is not None:
            on_sent()

    def finish(self, reason: str = "") -> None:
        """Handle nothing more, not even the parked request, and close once `outbox` is sent, which
        has the responses of earlier requests. `reason` is for the log of the socket's owner."""
        if self.ending:
            return
        self.ending = True
        self.parked = False
        self.on_close = None
        self.reader.close()
        if self.outbox:
            self.response_queued()
        else:
            self.close()

    def fail(self, error: Exception) -> None:
        """`finish` because of an error of the handler. The owner of the socket overrides this."""
        self.finish(str(error))

    def close(self, reason: str = "") -> None:
        """Stop reading and sending, at once. `reason` as for `finish`."""
        if self.closed:
            return
        self.ending = True
        self.closed = True
        self.parked = False
        self.outbox.clear()
        self.reader.close()
        abandoned, self.on_close = self.on_close, None
        if abandoned is not None:
            abandoned()

    def _queue(self, response: ResponseFrame) -> None:
        if not isinstance(response, BYTES):
            self.outbox.extend(response)
        elif response:
            self.outbox.append(response)
