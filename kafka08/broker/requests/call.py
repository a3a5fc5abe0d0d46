"""Call: one request from its arrival to its response, as a handler sees it."""

from __future__ import annotations

import enum
import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar

from kafka08.errors import ApiError, ProtocolError, StorageError, code_of
from kafka08.log_limit import caused_by
from kafka08.protocol.codec import RequestHeader, encode_response
from kafka08.protocol.types import Request, Response
from kafka08.runtime.yielding import PARTITIONS_AT_ONCE

if TYPE_CHECKING:
    from kafka08.broker.requests.context import BrokerContext
    from kafka08.network.server_connection import RequestConnection, ResponseFrame

logger = logging.getLogger(__name__)


class NoResponse(enum.Enum):
    """Returned by a handler without a response: not yet, or never."""

    PARKED = "the call keeps its connection until `respond` or `close` is called on it"
    SILENT = "there is no response (acks 0); the connection continues with its next request"


class ApiHandler(Protocol):
    """`handle` of a handler module; see kafka08.broker.requests.handlers."""

    def __call__(
        self, broker: BrokerContext, request: Any, call: Call, /
    ) -> Response | ResponseFrame | NoResponse: ...


class Refuse(Protocol):
    """`refuse` of a handler module: the normal response with `code` everywhere."""

    def __call__(self, request: Any, code: int, /) -> Response: ...


P = ParamSpec("P")
R = TypeVar("R", bound="Response | ResponseFrame | NoResponse")


def send(
    link: RequestConnection, encode: Callable[P, bytes], *args: P.args, **kwargs: P.kwargs
) -> None:
    """Send the response of a parked request, which `encode` makes; see Call.respond."""
    try:
        frame = encode(*args, **kwargs)
    except ProtocolError as error:
        link.finish(f"the response to its request cannot be encoded: {error}")
    else:
        # Before it is sent: from now on there is nothing to abandon.
        link.on_close = None
        link.send_response(frame)


def host_of(link: RequestConnection) -> str:
    """The client's address, without its port."""
    return link.peer.rpartition(":")[0]


def answering(link: RequestConnection, finish: Callable[P, object]) -> Callable[P, None]:
    """See Call.answering."""

    def answer_or_close(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            finish(*args, **kwargs)
        except Exception as error:  # noqa: BLE001 - logged by `fail`, or halts the broker
            link.fail(error)

    return answer_or_close


class Call:
    """One request in flight. Its connection reads no further request until the response.

    header.correlation_id  the response's correlation id
    header.client_id       the client's name, or None
    link                   its connection
    peer                   host:port of the client, for log lines
    """

    __slots__ = ("_broker", "_refuse", "header", "link", "request")

    def __init__(
        self,
        broker: BrokerContext,
        link: RequestConnection,
        header: RequestHeader,
        request: Request,
        refuse: Refuse,
    ) -> None:
        self._broker = broker
        self.link = link
        self._refuse = refuse
        self.header = header
        self.request = request

    @property
    def peer(self) -> str:
        return self.link.peer

    @property
    def host(self) -> str:
        """The client's address, whose requests take turns with those of others."""
        return host_of(self.link)

    @property
    def connection(self) -> int:
        """The connection's number, as of ServerConnection."""
        return self.link.number

    def is_abandoned(self) -> bool:
        """Whether the client has closed its side of the connection. A client may do that and still
        wait for the response; none of Kafka's does."""
        return self.link.is_abandoned()

    def check_controller(self, controller_epoch: int) -> None:
        """StaleControllerEpoch for a request over a connection that the controller has given up."""
        self._broker.controller_connection.check(controller_epoch, self.connection)

    @property
    def cause(self) -> dict[str, str]:
        """`extra` for a log line that the client causes (log_limit.py)."""
        return caused_by(self.host)

    def respond(self, response: Response) -> None:
        """Send the response of a parked call, once. Never switches. Does nothing if the client is
        gone. A response that cannot be encoded (it repeats names of the request) closes the
        connection."""
        correlation_id = self.header.correlation_id
        send(self.link, encode_response, response, correlation_id, self.request.version)

    def respond_from_thread(self, response: Response) -> None:
        """As `respond`, for a response that takes long to encode: in a native thread. Switches."""
        encode = partial(self._broker.runtime.run_native, encode_response)
        send(self.link, encode, response, self.header.correlation_id, self.request.version)

    def respond_encoded(self, frame: ResponseFrame) -> None:
        """As `respond`, with an encoded frame (for Fetch, whose sets stay in their files)."""
        self.link.on_close = None
        self.link.send_response(frame)

    def close(self, reason: str) -> None:
        """End a call by closing its connection, after the responses to earlier ones; logs the
        reason."""
        self.link.finish(reason)

    def fail(self, error: Exception) -> None:
        """End a call that cannot be answered: closes its connection, and logs the error. A storage
        error halts the broker."""
        self.link.fail(error)

    def answering(self, finish: Callable[P, object]) -> Callable[P, None]:
        """`finish`, which responds to this parked call. If it raises, the connection closes: a
        client that gets neither would wait for ever."""
        return answering(self.link, finish)

    def when_closed(self, abandon: Callable[[], object]) -> None:
        """Call `abandon` if the connection closes before the response of the parked call; now if it
        has closed."""
        if self.link.ending:
            abandon()
        else:
            self.link.on_close = abandon

    def refusal(self, error: Exception) -> Response:
        """The response of 0.8.2.2 after an exception: the error's code in every code field. A
        storage error is raised: it halts the broker."""
        if isinstance(error, StorageError):
            raise error
        if not isinstance(error, ApiError):
            logger.error(
                "error when handling request %s", self.request, exc_info=error, extra=self.cause
            )
        return self._refuse(self.request, code_of(error))

    def answer(
        self, handle: Callable[[], Response | ResponseFrame | NoResponse]
    ) -> ResponseFrame | None:
        """The frame of the response that `handle` makes; None if the call is parked. An exception
        becomes the refusal, but ProtocolError is raised: no response can say it."""
        try:
            outcome = handle()
        except ProtocolError:
            raise
        except Exception as error:  # noqa: BLE001 - the root of a request: becomes its response
            outcome = self.refusal(error)
        if isinstance(outcome, Response):
            return encode_response(outcome, self.header.correlation_id, self.request.version)
        if isinstance(outcome, NoResponse):
            return None if outcome is NoResponse.PARKED else b""
        return outcome

    def run_by_count(
        self, name: str, count: int, run: Callable[[], R], *, is_large: bool = False
    ) -> R | NoResponse:
        """The result of `run`, or `run_in_greenlet` for more than PARTITIONS_AT_ONCE partitions or
        groups."""
        if count <= PARTITIONS_AT_ONCE:
            return run()
        return self.run_in_greenlet(name, run, is_large=is_large)

    def run_in_greenlet(
        self,
        name: str,
        run: Callable[[], Response | ResponseFrame | NoResponse],
        *,
        is_large: bool = False,
    ) -> NoResponse:
        """Park the call, and respond with the result of `run`, which runs in a greenlet of that
        name and may switch; an exception becomes the refusal, but ProtocolError closes the
        connection. For ZooKeeper, changes of the whole broker, fsync, and requests with very many
        partitions. `is_large`: a thread encodes the response."""

        def run_and_respond() -> None:
            try:
                try:
                    response = run()
                except ProtocolError as error:
                    self.close(str(error))
                    return
                except Exception as error:  # noqa: BLE001 - becomes the response
                    response = self.refusal(error)
                if isinstance(response, Response):
                    (self.respond_from_thread if is_large else self.respond)(response)
                elif not isinstance(response, NoResponse):
                    self.respond_encoded(response)
                elif response is NoResponse.SILENT:
                    self.respond_encoded(b"")
            except Exception as error:  # noqa: BLE001 - a client without a response must notice
                self.fail(error)

        self._broker.runtime.spawn(run_and_respond, name=f"{name} for {self.peer}")
        return NoResponse.PARKED
