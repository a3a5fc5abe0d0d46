"""BrokerChannel: one non-blocking connection of the sender to a broker.

Responses arrive in the order of the requests. Any error closes the channel and returns its requests
in flight to its owner, which fails them or sends them again. kafka08.protocol reads and writes
frames; `NetworkClient` waits for sockets. Source:
org.apache.kafka.common.network.Selector 0.8.2.2.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from kafka08.errors import ConnectionFailed, KafkaError, ProtocolError
from kafka08.protocol import codec
from kafka08.protocol.frame import FrameReader
from kafka08.protocol.negotiation import Negotiation
from kafka08.protocol.types import Request, Response
from kafka08.protocol.version_ranges import OF_0_8, VersionRanges
from kafka08.runtime import ClientRuntime, Connecting, Stream
from kafka08.runtime.transport import Address

MAX_RESPONSE_BYTES: Final = 64 << 20
NEGOTIATION_IDS: Final = range(3)
"""Correlation ids of a negotiation, whose responses all come before the first request."""


class State(Enum):
    CLOSED = "closed"
    CONNECTING = "connecting"
    NEGOTIATING = "negotiating"
    OPEN = "open"


@dataclass(slots=True, eq=False)
class InFlightRequest:
    """A request without a response yet. `context` belongs to the caller.

    expects_response  False for a request without one (acks=0): it is done when it is written
    deadline  monotonic seconds by which the response must have arrived
    """

    request: type[Request]
    correlation_id: int
    context: Any
    deadline: float
    expects_response: bool = True
    version: int = 0
    """Of the request."""


@dataclass(slots=True)
class ClientResponse:
    """`response` to a request; None for a request without a response."""

    sent: InFlightRequest
    response: Response | None


OnResponse = Callable[[ClientResponse], object]


class BrokerChannel:
    """A channel to one broker. `error` is why it is closed; None before it was first opened.

    in_flight  requests without a response yet, oldest first
    retry_at   a closed channel is not opened again before this time (monotonic seconds)
    backoff_s  the last backoff in seconds; 0 since it was connected
    is_missed  whether it could not be opened since it was last open
    used_at    when it last sent or received something (monotonic seconds)
    versions   what the broker serves, while the channel is open; OF_0_8 if it was not asked
    watched    its owner's: for what its poller waits, (read, write); None: it waits for nothing
    """

    def __init__(
        self,
        address: Address,
        *,
        client_id: str,
        send_buffer: int,
        receive_buffer: int,
        runtime: ClientRuntime,
    ) -> None:
        self.address = address
        self.state = State.CLOSED
        self.error: KafkaError | None = None
        self.in_flight: deque[InFlightRequest] = deque()
        self.stream: Stream | None = None
        self.connect_by = 0.0
        self.retry_at = 0.0
        self.backoff_s = 0.0
        self.is_missed = False
        self.used_at = 0.0
        self.versions: VersionRanges = OF_0_8
        self.watched: tuple[bool, bool] | None = None
        self._client_id = client_id
        self._send_buffer = send_buffer
        self._receive_buffer = receive_buffer
        self._runtime = runtime
        self._connecting: Connecting | None = None
        self._negotiation: Negotiation | None = None
        self._outbox: deque[tuple[bytes | memoryview, InFlightRequest | None]] = deque()
        """Unwritten parts of frames, in order; None for the requests of a negotiation."""
        self._reader = FrameReader(MAX_RESPONSE_BYTES)

    def __str__(self) -> str:
        return f"{self.address[0]}:{self.address[1]}"

    @property
    def wants_write(self) -> bool:
        """Whether it waits until the socket is writable."""
        return self.state is State.CONNECTING or bool(self._outbox)

    @property
    def is_opening(self) -> bool:
        return self.state is State.CONNECTING or self.state is State.NEGOTIATING

    @property
    def is_of_0_8(self) -> bool:
        """Whether a broker that closes the connection now is of 0.8, for it was asked."""
        return self._negotiation is not None and self._negotiation.is_of_0_8

    def open(self, *, negotiates: bool = False) -> None:
        """Start to connect; `negotiates`: then ask the broker for its versions before it is open.
        Only the name lookup may block. ConnectionFailed."""
        assert self.state is State.CLOSED
        self.versions = OF_0_8
        self._negotiation = (
            Negotiation(NEGOTIATION_IDS, recognizes_0_8=True) if negotiates else None
        )
        try:
            self._connecting = self._runtime.start_connect(
                self.address, receive_buffer=self._receive_buffer, send_buffer=self._send_buffer
            )
        except (OSError, UnicodeError) as error:
            raise ConnectionFailed(f"cannot connect to {self}: {error}") from error
        self.stream = self._connecting.stream
        self.state = State.CONNECTING

    def _finish_connecting(self) -> None:
        assert self._connecting is not None
        try:
            connected = self._connecting.finish()
        except OSError as error:
            raise ConnectionFailed(f"cannot connect to {self}: {error}") from error
        self.stream = self._connecting.stream
        if connected:
            self._connecting = None
            if self._negotiation is None:
                self._opened()
            else:
                self.state = State.NEGOTIATING
                requests = zip(self._negotiation.requests, NEGOTIATION_IDS, strict=True)
                for request, correlation_id in requests:
                    frame = codec.encode_request(request, correlation_id, self._client_id)
                    self._outbox.append((frame, None))

    def _opened(self) -> None:
        self.state = State.OPEN
        self.backoff_s = 0.0
        self.is_missed = False

    def _negotiate(self, negotiation: Negotiation, payload: memoryview) -> None:
        try:
            negotiation.take(payload)
        except ProtocolError as error:
            raise ProtocolError(f"from {self}: {error}") from error
        if negotiation.versions is not None:
            self.versions = negotiation.versions
            self._negotiation = None
            self._opened()

    def send(self, request: Request, sent: InFlightRequest) -> None:
        """Queue a request for `write`. ProtocolError for one that cannot be encoded; `sent` is not
        in flight then."""
        frame = codec.encode_request(request, sent.correlation_id, self._client_id)
        self.in_flight.append(sent)
        self._outbox.append((frame, sent))

    def write(self, now: float, done: OnResponse) -> None:
        """Finish connecting, or write as much as the socket accepts; calls `done` for the requests
        without a response that are completely written. ConnectionFailed."""
        assert self.stream is not None
        if self.state is State.CONNECTING:
            self._finish_connecting()
            if self.state is State.CONNECTING:
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
            raise ConnectionFailed(f"lost the connection to {self}: {error}") from error

    def read_responses(self, now: float, done: OnResponse) -> None:
        """Call `done` for each complete response that has arrived. ConnectionFailed,
        ProtocolError: the responses before it are good."""
        assert self.stream is not None
        self.used_at = now
        try:
            count = self.stream.recv_into(self._reader.buffer())
        except BlockingIOError:
            return
        except OSError as error:
            raise ConnectionFailed(f"lost the connection to {self}: {error}") from error
        if count == 0:
            raise ConnectionFailed(f"{self} closed the connection")
        self._reader.advance(count)
        while (payload := self._reader.next_payload()) is not None:
            if self._negotiation is not None:
                self._negotiate(self._negotiation, payload)
            else:
                done(self._decoded(payload))
        self._reader.release()

    def _decoded(self, payload: memoryview) -> ClientResponse:
        if not self.in_flight or not self.in_flight[0].expects_response:
            raise ProtocolError(f"from {self}: a response without a request")
        sent = self.in_flight[0]
        try:
            correlation_id, response = codec.decode_response(sent.request, payload, sent.version)
        except ProtocolError as error:
            raise ProtocolError(f"from {self}: {error}") from error
        if correlation_id != sent.correlation_id:
            raise ProtocolError(
                f"from {self}: response {correlation_id}, although the next one is to request "
                f"{sent.correlation_id}"
            )
        self.in_flight.popleft()
        return ClientResponse(sent, response)

    def close(self, error: KafkaError | None, retry_at: float) -> list[InFlightRequest]:
        """Close; returns the requests in flight, oldest first, which the broker may have
        handled."""
        lost = list(self.in_flight)
        self.in_flight.clear()
        self._outbox.clear()
        self._negotiation = None
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
            self.stream = None
