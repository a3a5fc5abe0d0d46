"""Connection: a client's connection to a broker, for threads and greenlets, which it blocks.

`write` may be called several times before the first `read_response`: the next fetch is in flight
while the last one is processed. `send` does both. After an I/O error, a timeout or an unexpected
response the position in the stream is unknown, so the connection closes itself; the next `write`
opens a new one. Source: kafka.network.BlockingChannel 0.8.2.2.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from math import inf
from typing import Final

from kafka08.errors import (
    AuthenticationFailed,
    ConnectionFailed,
    KafkaError,
    ProtocolError,
    RequestTimeout,
)
from kafka08.lifecycle import Closeable
from kafka08.listing import reason_of
from kafka08.network.session import (
    PLAINTEXT,
    InFlightRequest,
    Security,
    Session,
    protocol_error,
)
from kafka08.protocol import codec, growing_buffer
from kafka08.protocol.frame import SIZE, frame_size
from kafka08.protocol.offset_commit import OffsetCommitRequest
from kafka08.protocol.types import Buffer, Request, Response
from kafka08.protocol.version_ranges import VersionRanges
from kafka08.runtime import Buffers, Runtime, Stream
from kafka08.runtime.threads import THREADS
from kafka08.structs import host_port
from kafka08.waiting import give_up_at, is_announced, waiting_for

logger = logging.getLogger(__name__)

DEFAULT_TIMEOUT_MS: Final = 30_000
LATE_S: Final = 0.1
"""A response that comes in pieces may take so much longer than its timeout."""
NEVER_LATE: Final = frozenset({OffsetCommitRequest})
"""Requests that do not arrive once their connection is closed. Nothing at an 0.8 broker stops a
commit by a former owner: when a network fails and comes back, the system would deliver it after the
commits of the next one. Other requests are harmless, or have an epoch or a generation."""
MAX_RESPONSE_BYTES: Final = 256 * 1024 * 1024
AT_ONCE_BYTES: Final = 16 * 1024 * 1024
"""A response up to this size gets its memory at once, which the allocator keeps warm from one fetch
to the next; a larger one gets memory as its bytes arrive, whatever size was announced."""


class Connection(Closeable):
    """A connection to `host`:`port`, opened by the first write. One thread at a time uses it; any
    other thread may call `abort`.

    timeout_ms          longest wait for one write, and for one response from the start of its read
    connect_timeout_ms  longest wait for the connection (to each address of the host)
                        Both are shorter within `giving_up_at` (kafka08.waiting)
    buffers             of the socket
    max_response_bytes  a response that announces more is refused before it is read
    negotiates          whether to request the broker's API versions whenever it is opened; they are
                        in `versions` then. For brokers from 0.9 on
    accepts_0_8         with `negotiates`: also for brokers of 0.8. They close the connection that
                        asks; another one does not ask
    security            TLS, and the login before the first request
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        client_id: str | None = "",
        timeout_ms: int = DEFAULT_TIMEOUT_MS,
        connect_timeout_ms: int | None = None,
        buffers: Buffers = Buffers(),
        max_response_bytes: int = MAX_RESPONSE_BYTES,
        negotiates: bool = False,
        accepts_0_8: bool = False,
        security: Security = PLAINTEXT,
        runtime: Runtime = THREADS,
    ) -> None:
        self.host = host
        self.port = port
        self._server = f"broker {host_port(host, port)}"
        self.timeout_ms = timeout_ms
        self._connect_timeout_ms = timeout_ms if connect_timeout_ms is None else connect_timeout_ms
        self._buffers = buffers
        self._max_response_bytes = max_response_bytes
        self.runtime = runtime
        self._tls = security.tls
        self._session = Session(
            client_id, asks_versions=negotiates, accepts_0_8=accepts_0_8, security=security
        )
        self._stream: Stream | None = None
        self._log_in_at = inf
        self._aborts = 0
        self.take_correlation_id = self._session.take_correlation_id
        self.sent_unconfirmed = False
        """A request without a response (acks 0) was sent since the connection was opened. The only
        sign of its failure is that the broker closes the connection."""

    def __str__(self) -> str:
        return host_port(self.host, self.port)

    def __repr__(self) -> str:
        state = "open" if self.is_open else "closed"
        return f"<Connection {self} {state}, {self.in_flight} in flight>"

    @property
    def is_open(self) -> bool:
        return self._stream is not None

    @property
    def in_flight(self) -> int:
        """The number of responses still to be read."""
        return len(self._session.in_flight)

    @property
    def client_id(self) -> str | None:
        return self._session.client_id

    @property
    def versions(self) -> VersionRanges:
        """The versions that the broker serves, once it is open; those of 0.8 if it is not asked."""
        return self._session.versions

    def open(self) -> None:
        """Connect now, if it is not open. ConnectionFailed if that fails or takes too long, or if
        `abort` was called meanwhile. NoApiVersions from a broker of 0.8 that is asked for them.
        AuthenticationFailed."""
        if self._stream is not None:
            return
        stream, session = self._connect(), self._session
        try:
            if self._tls is not None:
                from kafka08.network.tls import TlsStream  # loading OpenSSL takes 10 ms

                stream.settimeout(self._limited_ms(self.timeout_ms) / 1000)
                self._stream = stream = TlsStream(stream, self._tls(), self.host)
                stream.handshake()
            self._open_session(session.begin())
        except (OSError, KafkaError) as error:
            is_of_0_8 = session.is_of_0_8 and not isinstance(error, TimeoutError | ProtocolError)
            why = session.opening_error(str(self), error)
            self.close()
            if not is_of_0_8:
                raise why from error
            self._connect()
        except BaseException:
            self.close()
            raise

    def _open_session(self, data: bytes) -> None:
        """Send `data` and what the session has to say then. OSError, KafkaError."""
        session = self._session
        while session.is_opening:
            timeout_ms = self._limited_ms(self.timeout_ms)
            assert self._stream is not None
            if data:
                self._stream.settimeout(timeout_ms / 1000)
                self._stream.sendall(data)
            with waiting_for(self._server):
                frame = self._receive_frame(timeout_ms)
            data = session.advance(frame)
        self._log_in_at = session.log_in_at(self.runtime.monotonic())

    def _log_in_again(self) -> None:
        """Before a request, where the login is soon over: a broker closes the connection then."""
        if self._session.in_flight or self.runtime.monotonic() < self._log_in_at:
            return
        try:
            self._open_session(self._session.log_in_again())
        except (OSError, KafkaError) as error:
            why = self._session.opening_error(str(self), error)
            self.close()
            raise why from error
        except BaseException:
            self.close()
            raise

    def _connect(self) -> Stream:
        aborts = self._aborts
        try:
            with waiting_for(self._server):
                seconds = self._limited_ms(self._connect_timeout_ms) / 1000
                stream = self.runtime.connect((self.host, self.port), seconds, self._buffers)
        except (OSError, UnicodeError) as error:  # UnicodeError: a host name that cannot be one
            raise ConnectionFailed(f"cannot connect to {self}: {reason_of(error)}") from error
        self.sent_unconfirmed = False
        # First set the stream, then check the count; `abort` does it in reverse. So one of the two
        # sees the other, however they interleave.
        self._stream = stream
        if self._aborts != aborts:
            self.close()
            raise ConnectionFailed(f"the connection to {self} was aborted while it was opened")
        return stream

    def send(self, request: Request, *, timeout_ms: int | None = None) -> Response:
        """Write `request` and read its response; nothing else may be in flight."""
        assert not self._session.in_flight, "send would read the response to an earlier request"
        self.write(request)
        return self.read_response(timeout_ms=timeout_ms)

    def write(self, request: Request, *, has_response: bool = True) -> None:
        """Send `request`, connecting first if needed. `has_response`: False for a request without a
        response (Produce with acks 0). Raises ConnectionFailed, RequestTimeout."""
        if self._stream is None:
            self.open()
        elif self._log_in_at != inf:
            self._log_in_again()
        self._session.check(request)
        correlation_id = self.take_correlation_id()
        frame = codec.encode_request(request, correlation_id, self.client_id)
        self.write_frame(
            frame, correlation_id, type(request), version=request.version, has_response=has_response
        )

    def write_frame(
        self,
        frame: bytes | bytearray,
        correlation_id: int,
        request_class: type[Request],
        *,
        version: int = 0,
        has_response: bool = True,
    ) -> None:
        """`write` for an encoded frame, which several connections may send."""
        if self._stream is None:
            self.open()
        elif self._log_in_at != inf:
            self._log_in_again()
        assert self._stream is not None
        timeout_ms = self._limited_ms(self.timeout_ms)
        try:
            self._stream.settimeout(timeout_ms / 1000)
            if request_class in NEVER_LATE:
                self._stream.drop_undelivered(True)
            self._stream.sendall(frame)
        except BaseException as error:
            self._lose(error, f"did not take a {request_class.__name__} within {timeout_ms} ms")
            raise
        if has_response:
            sent = InFlightRequest(request_class, version, correlation_id)
            self._session.in_flight.append(sent)
        else:
            self.sent_unconfirmed = True

    def read_response(
        self, *, timeout_ms: int | None = None, room: memoryview | None = None
    ) -> Response:
        """The response to the oldest request in flight. Raises RequestTimeout, ConnectionFailed,
        and ProtocolError for a response that is too long, out of order, or malformed.

        room   memory of the caller for it, of which the response keeps views; then only one request
               may be in flight. A larger response, and without it each one, gets memory of its own
        """
        assert self._session.in_flight, "nothing is in flight"
        sent = self._session.in_flight[0]
        payload = self.read_payload(timeout_ms=timeout_ms, room=room)
        return self.decode(sent.request, payload, sent.version)

    def decode(self, request_class: type[Request], payload: memoryview, version: int) -> Response:
        """Decodes a payload from `read_payload`. ProtocolError if it is malformed."""
        try:
            response: Response = codec.decode_response(request_class, payload, version)[1]
        except BaseException as error:
            self._lose(error)
            raise
        return response

    def read_payload(
        self, *, timeout_ms: int | None = None, room: memoryview | None = None
    ) -> memoryview:
        """`read_response` for callers that decode; the payload starts with the correlation id."""
        in_flight = self._session.in_flight
        assert in_flight, "nothing is in flight"
        timeout_ms = self._limited_ms(self.timeout_ms if timeout_ms is None else timeout_ms)
        request_class = in_flight[0].request
        try:
            if is_announced():
                with waiting_for(self._server):
                    payload = self._receive_frame(timeout_ms, room)
            else:
                payload = self._receive_frame(timeout_ms, room)
            self._session.answered(payload)
        except BaseException as error:
            name = request_class.__name__
            self._lose(error, f"did not respond to a {name} within {timeout_ms} ms")
            raise
        if request_class in NEVER_LATE and not in_flight:
            assert self._stream is not None
            with suppress(OSError):  # macOS: the broker has closed it since
                self._stream.drop_undelivered(False)
        return payload

    def awaits_response(self, seconds: float) -> bool:
        """Whether no byte of the response to the request in flight comes within `seconds`. A
        connection that was lost does not await it: `read_response` raises why."""
        assert self._session.in_flight, "nothing is in flight"
        assert self._stream is not None
        try:
            with waiting_for(self._server):
                self._stream.settimeout(seconds)
                self._stream.peek()
        except TimeoutError:
            return True
        except OSError:
            pass
        return False

    def is_stale(self) -> bool:
        """Whether an idle connection is unusable: the broker has closed it, or has sent bytes
        without a request. Never waits."""
        assert not self._session.in_flight, "only an idle connection can be stale"
        if self._stream is None:
            return False
        try:
            self._stream.settimeout(0)
            self._stream.peek()
        except BlockingIOError:
            return False
        except OSError:
            return True
        return True

    def abort(self) -> None:
        """Make a write or read that another thread waits in fail at once, and an `open` as soon as
        it has connected. The descriptor stays open, so that it cannot be reused while that thread
        uses it; `close` frees it."""
        self._aborts += 1
        stream = self._stream
        if stream is not None:
            try:
                stream.abort()
            except OSError as error:
                logger.debug("%s was gone before it was aborted: %s", self, error)

    def close(self) -> None:
        """Close, and forget the requests in flight. May be called again."""
        stream, self._stream = self._stream, None
        self._session.end()
        if stream is not None:
            stream.close()

    def _lose(self, error: BaseException, late: str = "") -> None:
        """Close after an error. Raises what it means to a client: `late` for a timeout."""
        self.close()
        if isinstance(error, TimeoutError):
            raise RequestTimeout(f"{self} {late}") from error
        if isinstance(error, OSError):
            raise ConnectionFailed(f"lost the connection to {self}: {reason_of(error)}") from error
        if isinstance(error, ProtocolError):
            raise protocol_error(str(self), error) from error
        if isinstance(error, AuthenticationFailed):
            raise AuthenticationFailed(f"from {self}: {error}") from error

    def _limited_ms(self, timeout_ms: int) -> int:
        """`timeout_ms`, or what is left until the deadline of `giving_up_at`; at least 1."""
        deadline = give_up_at()
        if deadline == inf:
            return timeout_ms
        return min(timeout_ms, max(1, round((deadline - self.runtime.monotonic()) * 1000)))

    def _receive_frame(self, timeout_ms: int, room: memoryview | None = None) -> memoryview:
        """The payload of the next frame, in `room` if it has enough; OSError, TimeoutError or
        ProtocolError."""
        deadline = self.runtime.monotonic() + timeout_ms / 1000
        assert self._stream is not None
        if not room:
            prefix = self._receive(SIZE.size, deadline)
            least = self._session.least
            size = frame_size(prefix, self._max_response_bytes, least=least)
            return self._receive(size, deadline)
        self._stream.settimeout(timeout_ms / 1000)
        received = self._stream.recv_into(room)  # mostly the whole response
        if received < SIZE.size:
            received += self._fill(room[received:], deadline, SIZE.size - received)
        (size,) = SIZE.unpack_from(room)
        if not 0 < size <= self._max_response_bytes:
            frame_size(room, self._max_response_bytes)  # which raises
        end = SIZE.size + size
        if received > end:
            raise ProtocolError(f"{received - end} bytes follow the response")
        if end > len(room):
            return self._receive(size, deadline, room[SIZE.size : received])
        if received < end:
            self._fill(room[received:end], deadline)
        return room[SIZE.size : end]

    def _receive(self, size: int, deadline: float, begun: Buffer = b"") -> memoryview:
        """Exactly `size` bytes, in a new buffer, which the response may keep views of. `begun`:
        those that were received already."""
        received = len(begun)
        if size <= AT_ONCE_BYTES:
            data = growing_buffer.whole(size)
            data[:received] = begun
            self._fill(memoryview(data)[received:], deadline)
            return memoryview(data)
        large = growing_buffer.begin(size)
        large[:received] = begun
        while received < size:
            if received == len(large):
                large = growing_buffer.grow(large, size)
            self._fill(memoryview(large)[received:], deadline)
            received = len(large)
        return memoryview(large)

    def _fill(self, rest: memoryview, deadline: float, least: int | None = None) -> int:
        """Receive until `rest` is full, or has `least` bytes; returns their number.
        OSError, TimeoutError."""
        assert self._stream is not None
        limit = inf
        left = len(rest) if least is None else least
        total = 0
        while left > 0:
            seconds = deadline - self.runtime.monotonic()
            if seconds <= 0:
                raise TimeoutError
            if limit - seconds > LATE_S:  # each change of it is a system call
                limit = seconds
                self._stream.settimeout(seconds)
            received = self._stream.recv_into(rest)
            if received == 0:
                raise ConnectionResetError("the broker closed it before the response was complete")
            rest = rest[received:]
            total += received
            left -= received
        return total
