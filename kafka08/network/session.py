"""Session: a client's connection to a broker, without its stream.

    data = session.begin()                    # on a new stream
    while session.is_opening:
        ...                                   # send `data`
        data = session.advance(payload)       # of the next frame that arrives
    ...                                       # send session.request(MetadataRequest([]))
    session.response(payload)

What comes before the first request is a generator: it yields the bytes to send, and gets the
payload of the next frame. A driver moves bytes, waits and keeps the deadlines: `Connection` in
threads and greenlets, `BrokerChannel` for a poller.

A broker handles the requests of a connection strictly one after the other, so several may be in
flight, and responses come in their order.

Brokers of any release are asked for their versions:

    request       0.8                        0.9              0.10 and later
    OffsetFetch   responds                   responds         responds
    ApiVersions   closes the connection      no response      responds
    ListGroups    -                          responds         responds

The first of these is optional. It tells a broker of 0.8 from one that is starting or gone: only the
former responds, and then closes the connection. Before a login a broker takes ApiVersions alone.
So after a connection that was closed without a response, the next one begins with ApiVersions.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Any, Final

from kafka08 import __version__
from kafka08.config import INT_MAX
from kafka08.errors import (
    NO_ERROR,
    AuthenticationFailed,
    ConnectionFailed,
    KafkaError,
    NoApiVersions,
    ProtocolError,
)
from kafka08.listing import reason_of
from kafka08.protocol import codec
from kafka08.protocol.api_versions import (
    NAMING_VERSION,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from kafka08.protocol.frame import TlsRecord
from kafka08.protocol.list_groups import ListGroupsRequest
from kafka08.protocol.offset_fetch import probe
from kafka08.protocol.types import Buffer, Request, Response
from kafka08.protocol.version_ranges import OF_0_8, OF_0_9, VersionRanges

if TYPE_CHECKING:
    import ssl

Exchange = Generator[bytes, Any, None]
"""Yields the bytes to send, maybe none, and gets the payload of the next frame."""


@dataclass(frozen=True, slots=True)
class Security:
    """How a client secures its connections.

    protocol  PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL
    tls       for a protocol with TLS: the context of a connection that is opened now
    log_in    for one with SASL: the login of a session that has the broker's versions
    """

    protocol: str = "PLAINTEXT"
    tls: Callable[[], ssl.SSLContext] | None = field(default=None, repr=False)
    log_in: Callable[[Session], Exchange] | None = field(default=None, repr=False)


PLAINTEXT: Final = Security()
NAME: Final = "kafka08"
LOGIN_PART: Final = 0.85
"""The part of `Session.login_ms` after which a driver logs in again. Source: KIP-368."""


def protocol_error(peer: str, error: ProtocolError) -> KafkaError:
    """The error of a client for bytes of its broker that are no response."""
    if isinstance(error, TlsRecord):
        return AuthenticationFailed(
            f"{peer} speaks TLS: security.protocol is SSL or SASL_SSL for it"
        )
    return type(error)(f"from {peer}: {error}")


@dataclass(slots=True, eq=False)
class InFlightRequest:
    """A request without a response yet. `context` belongs to the caller.

    expects_response  False for a request without one (acks=0): it is done when it is written
    deadline          monotonic seconds by which the response must have arrived
    """

    request: type[Request]
    version: int
    correlation_id: int
    context: Any = None
    deadline: float = inf
    expects_response: bool = True


class Session:
    """The state of one connection after the other to one broker.

    asks_versions  whether each connection asks the broker which versions it serves
    accepts_0_8    with `asks_versions`: also for brokers of 0.8. See `is_of_0_8`
    security       which login comes first. It needs the versions, and is for no broker of 0.8

    in_flight   requests without a response yet, oldest first
    versions    what the broker serves; OF_0_8 if it was not asked
    is_opening  whether the first request must wait
    least       the smallest payload that is awaited
    login_ms    how long the login counts; 0 without end. `log_in_again` before that
    is_of_0_8   a broker that closes the connection now is of 0.8, for it was asked: on the next one
                do not `begin`
    """

    __slots__ = ("_accepts_0_8", "_asks_versions", "_exchange", "_log_in", "_next_id",
                 "_omits_probe", "_was_answered", "client_id", "in_flight", "is_of_0_8",
                 "is_opening", "least", "login_ms", "versions")  # fmt: skip

    def __init__(
        self,
        client_id: str | None,
        *,
        asks_versions: bool = False,
        accepts_0_8: bool = False,
        security: Security = PLAINTEXT,
    ) -> None:
        self.client_id = client_id
        self._asks_versions = asks_versions or security.log_in is not None
        self._accepts_0_8 = accepts_0_8 and security is PLAINTEXT
        self._log_in = security.log_in
        self._next_id = 0
        self._exchange: Exchange
        self._omits_probe = False
        self._was_answered = self.is_of_0_8 = self.is_opening = False
        self.in_flight: deque[InFlightRequest] = deque()
        self.end()

    def begin(self) -> bytes:
        """A new stream is connected. Returns the first bytes to send."""
        self.end()
        self._exchange = self._open()
        self.is_opening = True
        return self.advance(None)

    def log_in_at(self, now: float) -> float:
        """When to log in again, `now` being the end of the login, in seconds; inf: never."""
        return now + self.login_ms / 1000 * LOGIN_PART if self.login_ms else inf

    def log_in_again(self) -> bytes:
        """As `begin`, on an open connection with no request in flight. Source: KIP-368."""
        assert self._log_in is not None
        assert not self.in_flight, "the broker would close the connection on it"
        self._exchange = self._log_in(self)
        self.is_opening = True
        return self.advance(None)

    def advance(self, payload: Buffer | None) -> bytes:
        """A frame has arrived while it `is_opening`. Returns the next bytes to send.
        ProtocolError."""
        try:
            return self._exchange.send(payload)
        except StopIteration:
            self.is_opening = False
            self.least = 1
            return b""

    def end(self) -> None:
        """Forget all of the connection."""
        if self.is_opening and not self._was_answered and not self.is_of_0_8:
            self._omits_probe = not self._omits_probe
        self.in_flight.clear()
        self.versions = OF_0_8
        self.login_ms = 0
        self.is_opening = self.is_of_0_8 = self._was_answered = False
        self.least = 1

    def opening_error(self, peer: str, error: Exception) -> KafkaError:
        """The meaning of an error while it `is_opening`, or of a stream that was not secured."""
        if isinstance(error, AuthenticationFailed):
            return AuthenticationFailed(f"cannot log in to {peer}: {error}")
        if isinstance(error, ConnectionFailed):  # of a server that issues tokens
            return ConnectionFailed(f"cannot log in to {peer}: {reason_of(error)}")
        if isinstance(error, ProtocolError):
            return protocol_error(peer, error)
        if not self._asks_versions or self._log_in is not None:
            # Before 1.0 a broker says no more about a wrong password.
            hint = "; brokers before 1.0 close it after a wrong password" if not self.least else ""
            return ConnectionFailed(
                f"lost the connection to {peer} while it was opened: {reason_of(error)}{hint}"
            )
        if self._was_answered and not isinstance(error, TimeoutError):
            # Final for this client, unless the broker just stopped.
            return ConnectionFailed(
                f"{peer} closed the connection behind its API versions ({reason_of(error)}): does "
                "its listener want a login (security.protocol SASL_PLAINTEXT or SASL_SSL)?"
            )
        return NoApiVersions(
            f"{peer} does not report its API versions, as brokers from 0.9 on do: "
            f"{reason_of(error)}"
        )

    def request(self, request: Request) -> bytes:
        """The frame of a request, which is in flight from now on. ProtocolError for one that cannot
        be encoded, UnsupportedVersion for one that the broker would not take."""
        self.check(request)
        correlation_id = self.take_correlation_id()
        frame = codec.encode_request(request, correlation_id, self.client_id)
        self.in_flight.append(InFlightRequest(type(request), request.version, correlation_id))
        return frame

    def check(self, request: Request) -> None:
        """UnsupportedVersion for a request on which the broker would close the connection."""
        if self._asks_versions and not self.is_opening:
            self.versions.check(request)

    def take_correlation_id(self) -> int:
        """The next correlation id, for a frame that the caller encodes."""
        correlation_id = self._next_id
        self._next_id = (correlation_id + 1) & INT_MAX
        return correlation_id

    def answered(self, payload: Buffer) -> None:
        """The oldest request has this response, and is no longer in flight. ProtocolError if it is
        the response to another one."""
        self._oldest(payload)
        self.in_flight.popleft()

    def response(self, payload: Buffer) -> tuple[InFlightRequest, Response]:
        """The oldest request, which is no longer in flight, and its response. ProtocolError: the
        request stays in flight."""
        sent = self._oldest(payload)
        response: Response = codec.decode_response(sent.request, payload, sent.version)[1]
        self.in_flight.popleft()
        return sent, response

    def _oldest(self, payload: Buffer) -> InFlightRequest:
        number = codec.correlation_id_of(payload)
        if not self.in_flight or not (oldest := self.in_flight[0]).expects_response:
            raise ProtocolError(f"response {number} without a request")
        if number != oldest.correlation_id:
            raise ProtocolError(
                f"response {number}, but the next one is to request {oldest.correlation_id}"
            )
        return oldest

    def _open(self) -> Exchange:
        if self._asks_versions:
            yield from self._ask_versions()
        if self._log_in is not None:
            yield from self._log_in(self)
        if self.versions.serves_beyond(ApiVersionsRequest, NAMING_VERSION - 1):
            yield from self._say_name()

    def _say_name(self) -> Exchange:
        """For the broker's metrics. Only one that lists the version is told: an older one would
        need a round trip more, to refuse it."""
        request = ApiVersionsRequest(NAME, __version__, version=NAMING_VERSION)
        payload = yield self.request(request)
        _, response = self.response(payload)
        assert isinstance(response, ApiVersionsResponse)
        if response.error_code == NO_ERROR:
            self.versions = VersionRanges(response.apis)

    def _ask_versions(self) -> Exchange:
        frames = b""
        asks_first = self._accepts_0_8 and not self._omits_probe
        if asks_first:
            frames = self.request(probe())
        frames += self.request(ApiVersionsRequest())
        if self._log_in is None:
            frames += self.request(ListGroupsRequest())
        payload = yield frames
        if asks_first:
            self.answered(payload)
            self.is_of_0_8 = True
            payload = yield b""
            self.is_of_0_8 = False
        if codec.correlation_id_of(payload) == self.in_flight[0].correlation_id:
            _, response = self.response(payload)
            assert isinstance(response, ApiVersionsResponse)
            self.versions = VersionRanges(response.apis)
            if self._log_in is not None:
                return
            self._was_answered = True
            payload = yield b""
        else:
            self.in_flight.popleft()  # 0.9 does not respond to it
            self.versions = OF_0_9
        self.answered(payload)
