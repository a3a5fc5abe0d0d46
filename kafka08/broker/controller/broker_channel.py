"""The controller's connections: one per live broker, with one request in flight.

If the broker cannot be reached, the connection breaks, or no valid response arrives, the request is
sent again on a new connection after 300 ms, until the broker leaves /brokers/ids and its channel is
closed. So every broker sees the controller's requests in order, though perhaps twice.
Source: kafka.controller.ControllerChannelManager 0.8.2.2.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kafka08.broker.cluster.peer_protocols import UnreadRequests
from kafka08.broker.controller.request_batch import BrokerRequest
from kafka08.errors import ClientError, ProtocolError
from kafka08.network.connection import Connection
from kafka08.protocol.codec import encode_request
from kafka08.protocol.types import Response
from kafka08.protocol_version import ProtocolVersion
from kafka08.runtime import BrokerRuntime
from kafka08.runtime.uncaught import uncaught
from kafka08.structs import Broker

logger = logging.getLogger(__name__)
state_change_log = logging.getLogger("state.change.logger")

BACKOFF_S: Final = 0.3
LARGE_REQUEST_BYTES: Final = 16 << 10
"""A request of some hundred partitions. Encoding one of 10,000 takes 25 ms."""
MAX_RESPONSE_BYTES: Final = 100 << 20
"""Far above any response to a controller request; a larger one is not from a broker."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request and its encoded frame; equal requests to several brokers share one."""

    request: BrokerRequest
    correlation_id: int
    frame: bytes


class BrokerChannel:
    """The channel to one broker: a queue and the greenlet that sends from it."""

    def __init__(
        self,
        runtime: BrokerRuntime,
        controller_id: int,
        broker: Broker,
        timeout_ms: int,
        protocol: ProtocolVersion,
        on_response: Callable[[BrokerRequest, Any], object],
    ) -> None:
        self.broker = broker
        self._runtime = runtime
        self._prefix = f"[Controller-{controller_id}-to-broker-{broker.id}-send-thread]"
        self._on_response = on_response
        self._queue = runtime.queue()
        self._stopped = runtime.event()
        self._connection = Connection(
            broker.host,
            broker.port,
            timeout_ms=timeout_ms,
            max_response_bytes=MAX_RESPONSE_BYTES,
            runtime=runtime,
        )
        self._unread = UnreadRequests(runtime, broker, protocol)
        self._task = runtime.spawn(
            self._run, name=f"Controller-{controller_id}-to-broker-{broker.id}-send-thread"
        )

    def send(self, outgoing: Outgoing) -> None:
        """Queue a request. Never switches. The queue holds at most the requests of events while the
        broker does not respond; closing the channel drops them."""
        self._queue.put(outgoing)

    def close(self) -> None:
        """Drop queued requests and end. Never switches: the greenlet ends when it runs again."""
        self._stopped.set()
        self._queue.put(None)
        self._connection.abort()

    def _run(self) -> None:
        while (outgoing := self._queue.get()) is not None and not self._stopped.is_set():
            response = self._exchange(outgoing)
            if response is None:
                break
            state_change_log.debug(
                "%s received %s for correlation id %d",
                self._prefix,
                response,
                outgoing.correlation_id,
            )
            try:
                self._on_response(outgoing.request, response)
            except Exception as error:  # noqa: BLE001 - queued requests must reach the broker
                text = "%s Uncaught error while handling a response"
                uncaught(self._runtime, error, logger, text, self._prefix)
        self._connection.close()

    def _exchange(self, outgoing: Outgoing) -> Response | None:
        """Send until a response arrives; None once the channel is closed."""
        while not self._stopped.is_set():
            reused = self._connection.is_open
            try:
                return self._try(outgoing)
            except Exception as error:
                # Whatever it was, the request is sent again: brokers see all requests, in order.
                self._connection.close()
                if self._stopped.is_set():
                    break
                expected = isinstance(error, ClientError | ProtocolError)
                logger.warning(
                    "%s fails to send %s to broker %s (%s). Reconnecting to broker.",
                    self._prefix,
                    type(outgoing.request.request).__name__,
                    self.broker,
                    error,
                    exc_info=None if expected else error,
                )
                request = outgoing.request.request
                if why := self._unread.explain(error, {type(request): request.version}):
                    logger.warning("%s %s", self._prefix, why)
                # A connection that worked before may have been idle for too long.
                if not reused:
                    self._stopped.wait(BACKOFF_S)
        return None

    def _try(self, outgoing: Outgoing) -> Response:
        if not self._connection.is_open:
            self._connection.open()
            logger.info("%s connected to %s for sending requests", self._prefix, self.broker)
        request = outgoing.request.request
        self._connection.write_frame(
            outgoing.frame, outgoing.correlation_id, type(request), version=request.version
        )
        response = self._connection.read_response()
        self._unread.losses = 0
        return response


class ChannelManager:
    """The channels of an active controller, by broker id.

    client_id   the controller's client id: `id_<id>-host_<host.name>-port_<port>`
    protocol    the version of its requests
    on_response   called with every response, in its channel's greenlet: it may only post events
    """

    def __init__(
        self,
        runtime: BrokerRuntime,
        *,
        controller_id: int,
        client_id: str,
        timeout_ms: int,
        protocol: ProtocolVersion,
        on_response: Callable[[BrokerRequest, Any], object],
    ) -> None:
        self._runtime = runtime
        self._controller_id = controller_id
        self._client_id = client_id
        self._timeout_ms = timeout_ms
        self._protocol = protocol
        self._on_response = on_response
        self._channels: dict[int, BrokerChannel] = {}

    def add(self, broker: Broker) -> None:
        if broker.id not in self._channels:
            self._channels[broker.id] = BrokerChannel(
                self._runtime,
                self._controller_id,
                broker,
                self._timeout_ms,
                self._protocol,
                self._on_response,
            )

    def remove(self, broker_id: int) -> None:
        """Close the channel to a broker that left; its unsent requests are dropped."""
        channel = self._channels.pop(broker_id, None)
        if channel is not None:
            channel.close()

    def close(self) -> None:
        for broker_id in list(self._channels):
            self.remove(broker_id)

    def send(self, requests: Sequence[BrokerRequest], correlation_id: int) -> None:
        """Queue the requests of one batch. Those to brokers that have left are dropped. Other
        greenlets run after each large one is encoded. Switches."""
        frames: dict[int, bytes] = {}
        for wanted in requests:
            channel = self._channels.get(wanted.broker_id)
            if channel is None:
                logger.debug("Not sending %s: its broker is offline", wanted)
                continue
            # By identity: RequestBatch makes one object for brokers that get the same.
            key = id(wanted.request)
            if key not in frames:
                client_id = self._client_id if wanted.named else ""
                frames[key] = encode_request(wanted.request, correlation_id, client_id)
                if len(frames[key]) > LARGE_REQUEST_BYTES:
                    self._runtime.sleep(0)
            channel.send(Outgoing(wanted, correlation_id, frames[key]))
