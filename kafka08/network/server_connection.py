"""ServerConnection: the state of one connection to the server, without its socket.

Bytes come in, complete frames go to the request handler one after the other, answers queue up in
`outbox` in the order of their requests. While a request is parked (a long poll, a produce that
waits for replicas) the requests behind it wait too: answers are strictly in request order, as a
client of 0.8 expects. Source: kafka.network.Processor 0.8.2.2.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Final, Protocol, TypeAlias

from kafka08.protocol.frame import FrameReader
from kafka08.runtime.disk import File

REQUESTS_MAX: Final = 64
"""Requests handled in one go, before other connections get their turn."""
SECONDS_MAX: Final = 0.002
"""Time spent in one go, looked at after each request above LARGE_BYTES."""
LARGE_BYTES: Final = 4096


class FileSlice(Protocol):
    """Bytes of a file that are sent without being read (kafka08.log.slices.LogSlice)."""

    @property
    def file(self) -> File: ...

    @property
    def position(self) -> int: ...

    @property
    def size(self) -> int: ...


Made: TypeAlias = Callable[["bytes | None", "BaseException | None"], object]


class MadeBytes(ABC):
    """Bytes that are made while they are sent, so that few of them are in memory at once."""

    __slots__ = ()

    @property
    @abstractmethod
    def size(self) -> int:
        """Bytes that `make` is still to give."""

    @abstractmethod
    def make(self, done: Made) -> bytes | None:
        """The next of them, at least one. None: `done` is called in the hub with them, or with the
        reason why there are none, and until then `make` is not called."""


Piece: TypeAlias = bytes | bytearray | FileSlice | MadeBytes
ResponseFrame: TypeAlias = bytes | bytearray | Sequence[Piece]
"""A whole frame, in one piece or several. Empty bytes: there is no answer."""

RequestHandler: TypeAlias = Callable[[memoryview, "ServerConnection"], ResponseFrame | None]
"""Handles one payload, without switching. None parks the connection until `answer` is called on it.
The payload is valid until the handler returns. ProtocolError ends the connection."""


class ServerConnection:
    """One connection's requests and answers.

    peer       host:port of the other side
    outbox     pieces of answers that are to be sent, in order
    parked     a request was handled and its answer is still to come
    ending     nothing is read or handled any more
    closed     nor is anything sent
    on_close   called once if the connection closes while a request is parked; set by whoever parks
    on_sent    called once when `outbox` has been sent whole; for timing
    """

    __slots__ = ("_early", "_handle", "_handling", "closed", "ending", "on_close", "on_sent",
                 "outbox", "parked", "peer", "reader")  # fmt: skip

    def __init__(self, peer: str, reader: FrameReader, handle: RequestHandler) -> None:
        self.peer = peer
        self.reader = reader
        self.outbox: list[Piece] = []
        self.parked = False
        self.ending = False
        self.closed = False
        self.on_close: Callable[[], object] | None = None
        self.on_sent: Callable[[], object] | None = None
        self._handle = handle
        self._handling = False
        self._early: ResponseFrame | None = None

    def handle_frames(self, monotonic: Callable[[], float]) -> bool:
        """Handle the complete frames received so far, until one parks or it is others' turn. True
        if frames may be left for the next turn. ProtocolError for a frame that cannot be."""
        deadline = 0.0
        next_payload, handle, outbox = self.reader.next_payload, self._handle, self.outbox
        for _ in range(REQUESTS_MAX):
            payload = next_payload()
            if payload is None:
                return False
            self._handling = True
            answer = handle(payload, self)
            self._handling = False
            if answer is None:
                # The answer may have come while the handler was running.
                answer, self._early = self._early, None
                if answer is None:
                    self.parked = not self.ending
                    return False
            if self.ending:
                return False
            if type(answer) is not bytes:
                self._queue(answer)
            elif answer:
                outbox.append(answer)
            if len(payload) > LARGE_BYTES:
                now = monotonic()
                if deadline == 0.0:
                    deadline = now + SECONDS_MAX
                elif now > deadline:
                    return True
        return True

    def answer(self, answer: ResponseFrame) -> None:
        """Give the answer of the parked request. Nothing if the connection ended meanwhile."""
        if self.ending:
            return
        if self._handling:
            self._early = answer
            return
        assert self.parked, f"{self.peer} is answered twice"
        self.parked = False
        self.on_close = None
        self._queue(answer)
        self.answered()

    def answered(self) -> None:
        """A parked request was answered: `outbox` waits to be sent, frames may wait to be
        handled. For the owner of the socket to override."""

    def sent(self) -> None:
        """`outbox` was sent whole, and somebody waits for that."""
        on_sent, self.on_sent = self.on_sent, None
        if on_sent is not None:
            on_sent()

    def finish(self, reason: str = "") -> None:
        """Handle nothing more, the parked request included, and close once the answers in `outbox`
        are sent: they are those of earlier requests. `reason` is for the log of whoever owns the
        socket."""
        if self.ending:
            return
        self.ending = True
        self.parked = False
        self.on_close = None
        self.reader.close()
        if self.outbox:
            self.answered()
        else:
            self.close()

    def close(self, reason: str = "") -> None:
        """Read and send nothing more, at once. `reason` as for `finish`."""
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

    def _queue(self, answer: ResponseFrame) -> None:
        if not isinstance(answer, bytes | bytearray):
            self.outbox.extend(answer)
        elif answer:
            self.outbox.append(answer)
