"""BrokerChannel: one non-blocking connection of the sender to a broker, for a poller.

Any error closes the channel and returns its requests in flight to its owner, which fails them or
sends them again. `NetworkClient` waits for streams. Source:
org.apache.kafka.common.network.Selector 0.8.2.2.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from math import inf
from typing import TYPE_CHECKING, Final

from kafka08.errors import AuthenticationFailed, ConnectionFailed, KafkaError, ProtocolError
from kafka08.listing import reason_of
from kafka08.network.session import (
    InFlightRequest,
    Security,
    Session,
    protocol_error,
)
from kafka08.protocol.frame import FrameReader
from kafka08.protocol.types import Request, Response
from kafka08.protocol.version_ranges import VersionRanges
from kafka08.runtime import Buffers, ClientRuntime, Connecting, Stream
from kafka08.runtime.transport import Address

if TYPE_CHECKING:
    from kafka08.network.tls import TlsStream

MAX_RESPONSE_BYTES: Final = 64 << 20


class State(Enum):
    CLOSED = "closed"
    CONNECTING = "connecting"
    SECURING = "securing"
    OPENING = "opening"
    OPEN = "open"


@dataclass(slots=True)
class ClientResponse:
    """`response` to a request; None for a request without a response."""

    sent: InFlightRequest
    response: Response | None


OnResponse = Callable[[ClientResponse], object]


class BrokerChannel:
    """A channel to one broker. `error` is why it is closed; None before it was first opened.

    retry_at   a closed channel is not opened again before this time (monotonic seconds)
    backoff_s  the last backoff in seconds; 0 since it was connected
    is_missed  whether it could not be opened since it was last open
    log_in_at  when an open channel should log in again (monotonic seconds)
    used_at    when it last sent or received something (monotonic seconds)
    watched    its owner's: for what its poller waits, (read, write); None: it waits for nothing
    """

    def __init__(
        self,
        address: Address,
        *,
        client_id: str,
        negotiates: bool,
        security: Security,
        buffers: Buffers,
        runtime: ClientRuntime,
    ) -> None:
        self.address = address
        self.state = State.CLOSED
        self.error: KafkaError | None = None
        self.stream: Stream | None = None
        self.connect_by = 0.0
        self.retry_at = 0.0
        self.backoff_s = 0.0
        self.is_missed = False
        self.log_in_at = inf
        self.used_at = 0.0
        self.watched: tuple[bool, bool] | None = None
        self._session = Session(
            client_id, asks_versions=negotiates, accepts_0_8=True, security=security
        )
        self._tls_context = security.tls
        self._tls: TlsStream | None = None
        self._buffers = buffers
        self._runtime = runtime
        self._connecting: Connecting | None = None
        self._is_known_as_0_8 = False
        self._outbox: deque[tuple[bytes | memoryview, InFlightRequest | None]] = deque()
        """Unwritten parts of frames, in order; None for those that open the session."""
        self._reader = FrameReader(MAX_RESPONSE_BYTES)

    def __str__(self) -> str:
        return f"{self.address[0]}:{self.address[1]}"

    @property
    def wants_write(self) -> bool:
        """Whether it waits until the socket is writable."""
        if self.state is State.SECURING:
            return self._tls is not None and self._tls.wants_write
        return self.state is State.CONNECTING or bool(self._outbox)

    @property
    def is_opening(self) -> bool:
        return self.state is not State.OPEN and self.state is not State.CLOSED

    @property
    def in_flight(self) -> deque[InFlightRequest]:
        """Requests without a response yet, oldest first."""
        return self._session.in_flight

    @property
    def versions(self) -> VersionRanges:
        """The versions that the broker serves; OF_0_8 if not asked, or the channel is closed."""
        return self._session.versions

    @property
    def is_of_0_8(self) -> bool:
        """Whether a broker that closes the connection now is of 0.8, for it was asked."""
        return self._session.is_of_0_8

    def open(self, *, is_of_0_8: bool = False) -> None:
        """Start to connect; a broker that `is_of_0_8` is not asked for its versions. Only the name
        lookup may block. ConnectionFailed."""
        assert self.state is State.CLOSED
        self._is_known_as_0_8 = is_of_0_8
        try:
            self._connecting = self._runtime.start_connect(self.address, self._buffers)
        except (OSError, UnicodeError) as error:
            raise ConnectionFailed(f"cannot connect to {self}: {reason_of(error)}") from error
        self.stream = self._connecting.stream
        self.state = State.CONNECTING

    def _finish_connecting(self) -> None:
        assert self._connecting is not None
        try:
            connected = self._connecting.finish()
        except OSError as error:
            raise ConnectionFailed(f"cannot connect to {self}: {reason_of(error)}") from error
        self.stream = self._connecting.stream
        if connected:
            self._connecting = None
            if self._tls_context is not None:
                from kafka08.network.tls import TlsStream  # loading OpenSSL takes 10 ms

                context = self._tls_context()
                self.stream = self._tls = TlsStream(self.stream, context, self.address[0])
            self.state = State.SECURING
            self._secure()

    def _secure(self) -> None:
        try:
            if self._tls is not None:
                self._tls.handshake()
        except BlockingIOError:
            return
        except (OSError, AuthenticationFailed) as error:
            raise self._session.opening_error(str(self), error) from error
        self.state = State.OPENING
        self._continue_opening(b"" if self._is_known_as_0_8 else self._session.begin())

    def _continue_opening(self, data: bytes) -> None:
        if data:
            self._outbox.append((data, None))
        if not self._session.is_opening:
            self.state = State.OPEN
            self.backoff_s = 0.0
            self.is_missed = False
            self.log_in_at = self._session.log_in_at(self._runtime.monotonic())

    def log_in_again(self) -> None:
        """Before the login of an open channel is over, with nothing in flight; then `write`."""
        self.state = State.OPENING
        self._continue_opening(self._session.log_in_again())

    def send(
        self, request: Request, context: object, deadline: float, *, expects_response: bool
    ) -> InFlightRequest:
        """Queue a request for `write`. ProtocolError for one that cannot be encoded; it is not in
        flight then."""
        frame = self._session.request(request)
        sent = self._session.in_flight[-1]
        sent.context, sent.deadline, sent.expects_response = context, deadline, expects_response
        self._outbox.append((frame, sent))
        return sent

    def write(self, now: float, done: OnResponse) -> None:
        """Finish connecting, or write as much as the socket accepts; calls `done` for the requests
        without a response that are completely written. ConnectionFailed."""
        assert self.stream is not None
        if self.state is State.CONNECTING:
            self._finish_connecting()
        elif self.state is State.SECURING:
            self._secure()
        if self.state is State.CONNECTING or self.state is State.SECURING:
            return
        self.used_at = now
        try:
            while self._outbox:
                rest, sent = self._outbox[0]
                written = self.stream.send(rest)
                if written < len(rest):
                    self._outbox[0] = (memoryview(rest)[written:], sent)
                    continue
                self._outbox.popleft()
                if sent is not None and not sent.expects_response:
                    self.in_flight.remove(sent)
                    done(ClientResponse(sent, None))
        except BlockingIOError:
            pass
        except OSError as error:
            raise self._lost(error) from error

    def read_responses(self, now: float, done: OnResponse) -> None:
        """Call `done` for each complete response that has arrived. ConnectionFailed,
        ProtocolError: the responses before it are good."""
        assert self.stream is not None
        self.used_at = now
        if self.state is State.SECURING:
            self._secure()
            return
        is_full = True
        while is_full:
            try:
                room = self._reader.buffer()
                count = self.stream.recv_into(room)
            except BlockingIOError:
                break
            except (OSError, AuthenticationFailed) as error:
                raise self._lost(error) from error
            if count == 0:
                raise self._lost(ConnectionResetError(f"{self} closed the connection"))
            self._reader.advance(count)
            is_full = count == len(room)
            self._take_frames(done)
        self._reader.release()

    def _lost(self, error: Exception) -> KafkaError:
        """The meaning of an error of the stream."""
        if self._session.is_opening or isinstance(error, AuthenticationFailed):
            return self._session.opening_error(str(self), error)
        if isinstance(error, ConnectionResetError) and error.errno is None:
            return ConnectionFailed(str(error))
        return ConnectionFailed(f"lost the connection to {self}: {reason_of(error)}")

    def _take_frames(self, done: OnResponse) -> None:
        session = self._session
        try:
            while (payload := self._reader.next_payload()) is not None:
                if session.is_opening:
                    self._continue_opening(session.advance(payload))
                    self._reader.least = session.least
                else:
                    sent, response = session.response(payload)
                    done(ClientResponse(sent, response))
        except ProtocolError as error:
            raise protocol_error(str(self), error) from error
        except (AuthenticationFailed, ConnectionFailed) as error:
            raise session.opening_error(str(self), error) from error

    def close(self, error: KafkaError | None, retry_at: float) -> list[InFlightRequest]:
        """Close; returns the requests in flight, oldest first, which the broker may have
        handled."""
        lost = list(self.in_flight)
        self._session.end()
        self._outbox.clear()
        self._close_stream()
        # The old one may hold half a response.
        self._reader = FrameReader(MAX_RESPONSE_BYTES)
        self.state = State.CLOSED
        self.error, self.retry_at = error, retry_at
        return lost

    def _close_stream(self) -> None:
        if self._connecting is not None:
            self._connecting.close()
            self._connecting = None
        if self.stream is not None:
            self.stream.close()
            self.stream = self._tls = None
