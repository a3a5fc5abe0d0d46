"""NetworkClient: the sender's connections to all brokers, with one poller.

Source: org.apache.kafka.clients.NetworkClient 0.8.2.2.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from kafka08.errors import (
    AuthenticationFailed,
    ConnectionFailed,
    KafkaError,
    ProtocolError,
    RequestTimeout,
)
from kafka08.network.session import PLAINTEXT, InFlightRequest, Security
from kafka08.producer.broker_channel import BrokerChannel, ClientResponse, State
from kafka08.protocol.types import Request
from kafka08.protocol.version_ranges import VersionRanges
from kafka08.runtime import Buffers, ClientRuntime
from kafka08.runtime.transport import Address

logger = logging.getLogger(__name__)

CONNECT_S_MAX: Final = 10.0
RECONNECT_MAX_S: Final = 0.2
"""The longest backoff, unless reconnect.backoff.ms is longer."""
POLL_S_MAX: Final = 86_400.0
"""A longer wait is one without limit: pollers take milliseconds as a 32-bit number."""


@dataclass(slots=True, frozen=True)
class LostRequests:
    """A channel was closed with `sent` in flight, oldest first; the broker may have handled each.
    `error` is that of the first one; the others only lost their connection."""

    sent: list[InFlightRequest]
    error: KafkaError


NetworkEvent = ClientResponse | LostRequests


class NetworkClient:
    """Used by the sender's thread alone, except `wake_up`.

    client_id        the name in requests and broker logs
    max_in_flight    the most requests of one connection that wait for a response
    buffers          of sockets
    reconnect_s      seconds before a failed address is tried again; doubled with each further
                     failure, up to RECONNECT_MAX_S
    max_idle_s       seconds after which an unused connection is closed; 0 or less: never
    negotiates       whether each new connection asks the broker which versions it serves. A broker
                     of 0.8 closes it, and the connection that replaces it at once does not ask
    """

    def __init__(
        self,
        *,
        client_id: str,
        max_in_flight: int,
        reconnect_s: float,
        max_idle_s: float,
        buffers: Buffers,
        runtime: ClientRuntime,
        negotiates: bool = False,
        security: Security = PLAINTEXT,
    ) -> None:
        self._client_id = client_id
        self._negotiates = negotiates
        self._security = security
        self._max_in_flight = max_in_flight
        self._reconnect_s = reconnect_s
        self._max_idle_s = max_idle_s
        self._buffers = buffers
        self._runtime = runtime
        self._channels: dict[Address, BrokerChannel] = {}
        self._poller = runtime.poller()
        self.wake_up = self._poller.wake_up
        """End the current `poll`, or the next one, at once. Any thread."""
        self._events: list[NetworkEvent] = []
        """The events since the last `poll`, in order."""

    def is_ready(self, address: Address, now: float) -> bool:
        """Whether a request can be sent there; if not, start to connect once the backoff is
        over."""
        channel = self._channel(address)
        if channel.state is State.CLOSED and now >= channel.retry_at:
            self._open(channel, now)
        if now >= channel.log_in_at and channel.state is State.OPEN:
            self._log_in_again(channel, now)
            return False  # so that what is in flight comes to an end
        return channel.state is State.OPEN and len(channel.in_flight) < self._max_in_flight

    def is_open(self, address: Address) -> bool:
        """Whether it is connected."""
        channel = self._channels.get(address)
        return channel is not None and channel.state is State.OPEN

    def versions(self, address: Address) -> VersionRanges:
        """The versions that the broker at a connected address served last."""
        return self._channels[address].versions

    def least_loaded(self, addresses: Iterable[Address], now: float) -> Address | None:
        """The ready address with the fewest requests in flight. Without one, start to connect to
        the one that failed longest ago, unless a connection is being opened; None."""
        channels = [self._channel(address) for address in addresses]
        usable = [c for c in channels if c.state is State.OPEN and self.is_ready(c.address, now)]
        if usable:
            return min(usable, key=lambda channel: len(channel.in_flight)).address
        if not any(channel.is_opening for channel in channels):
            due = [c for c in channels if c.state is State.CLOSED and now >= c.retry_at]
            if due:
                first = min(due, key=lambda channel: channel.retry_at)
                self._open(first, now)
        return None

    def send(
        self,
        address: Address,
        request: Request,
        context: object,
        *,
        now: float,
        deadline: float,
        expects_response: bool,
    ) -> InFlightRequest:
        """Send to an address for which `is_ready` was true, as much as the socket accepts. A
        request without a response (or, with acks=0, not written) by `deadline` (monotonic seconds)
        is returned from `poll` as lost."""
        channel = self._channels[address]
        # Otherwise the socket is full: the poller says when the rest can be written, in order.
        is_first = not channel.wants_write
        sent = channel.send(request, context, deadline, expects_response=expects_response)
        if is_first:
            self._step(channel, read=False, write=True, now=now)
        return sent

    def poll(self, timeout_s: float) -> list[NetworkEvent]:
        """Write and read without blocking, after waiting up to `timeout_s` seconds (infinity:
        without limit) until that is possible. Errors of a connection are in the result, as the
        requests that it lost."""
        now = self._runtime.monotonic()
        timer = self._next_timer(now)
        timeout_s = 0.0 if self._events else max(0.0, min(timeout_s, timer - now))
        if timeout_s > POLL_S_MAX:
            timeout_s = float("inf")
        ready = self._poller.poll(None if timeout_s == float("inf") else timeout_s)
        now = self._runtime.monotonic()
        for channel, readable, writable in ready:
            self._step(channel, read=readable, write=writable, now=now)
        if now >= timer:
            self._close_late(now)
        events, self._events = self._events, []
        return events

    @property
    def connection_count(self) -> int:
        """The number of connections that are open or being opened."""
        return sum(1 for _ in self._live())

    def close(self) -> None:
        """Close all connections, whatever is in flight."""
        for channel in list(self._live()):
            self._close(channel, ConnectionFailed(f"closed {channel}"), 0.0)
        self._poller.close()

    # ------------------------------------------------------------------------------- its parts

    def _channel(self, address: Address) -> BrokerChannel:
        channel = self._channels.get(address)
        if channel is None:
            channel = self._channels[address] = BrokerChannel(
                address,
                client_id=self._client_id,
                negotiates=self._negotiates,
                security=self._security,
                buffers=self._buffers,
                runtime=self._runtime,
            )
        return channel

    def _live(self) -> Iterator[BrokerChannel]:
        return (c for c in list(self._channels.values()) if c.state is not State.CLOSED)

    def _open(self, channel: BrokerChannel, now: float, *, is_of_0_8: bool = False) -> None:
        channel.connect_by = now + CONNECT_S_MAX
        channel.used_at = now
        try:
            channel.open(is_of_0_8=is_of_0_8)
        except ConnectionFailed as error:
            self._fail(channel, error, now)
        else:
            self._watch(channel)

    def _log_in_again(self, channel: BrokerChannel, now: float) -> None:
        """Once it has nothing in flight."""
        if not channel.in_flight and not channel.wants_write:
            channel.connect_by = now + CONNECT_S_MAX
            channel.log_in_again()
            self._step(channel, read=False, write=True, now=now)

    def _watch(self, channel: BrokerChannel) -> None:
        """Update the poller's interest in the channel, which may have a new stream."""
        wanted = (channel.state is not State.CONNECTING, channel.wants_write)
        if channel.watched != wanted:
            assert channel.stream is not None
            self._poller.watch(channel.stream, channel, read=wanted[0], write=wanted[1])
            channel.watched = wanted

    def _step(self, channel: BrokerChannel, *, read: bool, write: bool, now: float) -> None:
        """Write and read; a channel that fails is closed, and its responses before that are
        kept."""
        try:
            if read and channel.state is not State.CONNECTING:  # a refusal is readable, too
                channel.read_responses(now, self._events.append)
            if write:
                if channel.state is State.CONNECTING:
                    self._forget(channel)  # the next connection has another stream
                channel.write(now, self._events.append)
            self._watch(channel)
        except (AuthenticationFailed, ConnectionFailed, ProtocolError) as error:
            if channel.is_of_0_8 and isinstance(error, ConnectionFailed):
                # It was asked for its versions, and closed: the next connection does not ask.
                logger.debug("%s is of 0.8: %s", channel, error)
                self._forget(channel)
                channel.close(None, now)
                self._open(channel, now, is_of_0_8=True)
            else:
                self._fail(channel, error, now)

    def _forget(self, channel: BrokerChannel) -> None:
        if channel.stream is not None:
            self._poller.forget(channel.stream)
        channel.watched = None

    def _fail(self, channel: BrokerChannel, error: KafkaError, now: float) -> None:
        """Close it for a backoff. Twenty dead brokers took a tenth of a core at 10 ms each."""
        longest_s = max(self._reconnect_s, RECONNECT_MAX_S)
        channel.backoff_s = min(2 * channel.backoff_s or self._reconnect_s, longest_s)
        is_news = not channel.is_missed and channel.state is not State.OPEN
        channel.is_missed = channel.is_missed or is_news
        self._close(channel, error, now + channel.backoff_s, is_news=is_news)

    def _close(
        self, channel: BrokerChannel, error: KafkaError, retry_at: float, *, is_news: bool = False
    ) -> None:
        """`is_news`: the first time in an outage that the broker cannot be reached."""
        self._forget(channel)
        without_frames(error)
        lost = channel.close(error, retry_at)
        logger.log(logging.WARNING if lost or is_news else logging.INFO, "%s", error)
        self._events.append(LostRequests(lost, error))

    def _next_timer(self, now: float) -> float:
        """When the next channel times out, is idle or may be opened again."""
        times = [float("inf")]
        for channel in self._channels.values():
            if channel.is_opening:  # also with requests in flight: those that open it
                times.append(channel.connect_by)
            elif channel.in_flight:
                times.append(channel.in_flight[0].deadline)
            elif channel.state is State.OPEN:
                if self._max_idle_s > 0:
                    times.append(channel.used_at + self._max_idle_s)
            elif channel.retry_at > now:
                times.append(channel.retry_at)
        return min(times)

    def _close_late(self, now: float) -> None:
        for channel in self._live():
            if channel.is_opening:
                if now >= channel.connect_by:
                    asked = channel.state is State.OPENING
                    why = "it did not report its API versions" if asked else "timed out"
                    self._fail(
                        channel, ConnectionFailed(f"cannot connect to {channel}: {why}"), now
                    )
            elif channel.in_flight:
                first = channel.in_flight[0]
                if now >= first.deadline:
                    name = first.request.__name__
                    late = RequestTimeout(f"{channel} did not respond to a {name} in time")
                    self._fail(channel, late, now)
            elif 0 < self._max_idle_s <= now - channel.used_at:
                logger.info("Closing the idle connection to %s", channel)
                self._forget(channel)
                channel.close(None, 0.0)


def without_frames(error: BaseException | None) -> None:
    """Drop the error's traceback: futures keep the error, and its frames would keep requests."""
    while error is not None:
        error.__traceback__ = None
        error = error.__cause__
