"""RequestMetrics: the number of requests of each API, and their times.

    queue          from the event loop's wake-up for their bytes to the handler
    local          in the handler
    remote         in a purgatory, or in a greenlet of its own
    response send  from the response until the socket has accepted it
    total          the sum

Every request is counted, by the Dispatcher. Of the three APIs that make up nearly all traffic some
are timed, one in TIMED_EVERY or, on a busy broker, about 25 a second; of the others each one.
Reading a clock for every Produce would cost too much.
The names are those of kafka.network.RequestMetrics 0.8.2.2, whose response queue does not exist
here: the event loop sends a response as soon as it has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain, repeat
from typing import Final, NamedTuple

from kafka08.levels import Level
from kafka08.metrics import Family, Labels, Sample, Timings, meter
from kafka08.network.forwarding import ForwardingConnection
from kafka08.network.server_connection import (
    RequestConnection,
    RequestHandler,
    RequestHandlers,
    ResponseFrame,
)
from kafka08.protocol.apis import APIS
from kafka08.runtime import BrokerRuntime

TIMED_EVERY: Final = 15
TIMED_EVERY_MAX: Final = 4095
"""Odd, as all between them, so that it is not always the first of those that a client sends
together."""
PERIOD_S: Final = (0.02, 0.08)
"""From one timed request to the next; outside of it their distance doubles or halves."""
FREQUENT: Final = frozenset({0, 1, 3})
"""Produce, Fetch, Metadata."""
FETCH: Final = 1
GROUP_COORDINATOR: Final = 10
CLIENT_LENGTH: Final = slice(8, 10)
"""The position of the client id's length in a request."""
HEADER_BYTES: Final = 10
"""The size of a request's header without the client id."""
NAMES: Final[Mapping[int, str]] = {api.key: api.name for api in APIS}
NAMES_0_9: Final[Mapping[int, str]] = {**NAMES, GROUP_COORDINATOR: "GroupCoordinator"}
"""From 0.9.0 on."""
PARTS: Final = (
    "totaltimems",
    "requestqueuetimems",
    "localtimems",
    "remotetimems",
    "responsesendtimems",
)
KEYS_MAX: Final = 256
KEY_MASK: Final = KEYS_MAX - 1


class RequestTimes(NamedTuple):
    """The times of one kind of request, in ms, in the order of PARTS."""

    total: Timings
    queue: Timings
    local: Timings
    remote: Timings
    send: Timings


class RequestMetrics:
    """Times the requests of a broker, all of its listeners together.

    counts        requests by the low byte of their API key, which Dispatchers count; without those
                  that others count, see `counted_by`
    takes_times   whether requests are timed; see `is_frequent`
    times         request name → RequestTimes; stays empty unless `takes_times`
    """

    def __init__(self, runtime: BrokerRuntime, level: Level, *, takes_times: bool = False) -> None:
        self.counts = [0] * KEYS_MAX
        self.times: dict[str, RequestTimes] = {}
        self._runtime = runtime
        self._names = NAMES if level < Level.V0_9_0 else NAMES_0_9
        self._others: list[Callable[[], Mapping[int, int]]] = []
        self.takes_times = takes_times

    def counted_by(self, counts: Callable[[], Mapping[int, int]]) -> None:
        """Add what `counts` returns, API key → requests, whenever they are read."""
        self._others.append(counts)

    def totals(self) -> dict[int, int]:
        """API key (its low byte) → all requests, without those that never came."""
        found = {key: count for key, count in enumerate(self.counts) if count}
        for counts in self._others:
            for key, count in counts().items():
                if count:
                    found[key] = found.get(key, 0) + count
        return dict(sorted(found.items()))

    def handlers(self, handle: RequestHandler) -> RequestHandlers:
        """For the requests of one listener: `handle`, and now and then one that measures too."""
        if not self.takes_times:
            return repeat(handle)

        def measured(payload: memoryview, link: RequestConnection) -> ResponseFrame | None:
            if len(payload) < HEADER_BYTES or not is_frequent(payload):
                return handle(payload, link)
            return self.measure(payload, link, partial(handle, payload))

        def in_turn() -> Iterator[Iterable[RequestHandler]]:
            every = TIMED_EVERY
            began = self._runtime.monotonic()
            while True:
                yield (measured,)
                yield repeat(handle, every - 1)
                began, took = (now := self._runtime.monotonic()), now - began
                if took < PERIOD_S[0]:
                    every = min(every * 2 + 1, TIMED_EVERY_MAX)
                elif took > PERIOD_S[1]:
                    every = max(every // 2, TIMED_EVERY)

        return chain.from_iterable(in_turn())

    def measure(
        self,
        payload: memoryview,
        link: RequestConnection,
        handle: Callable[[RequestConnection], ResponseFrame | None],
    ) -> ResponseFrame | None:
        """Call `handle` with a connection that notes when the response comes; take the times."""
        times = self._times_of(payload)
        monotonic = self._runtime.monotonic
        # Wall time since the loop woke up for this connection; requests that were received
        # together wait for those before them.
        start = monotonic()
        queued = max(0.0, start - getattr(link, "last_read", start))
        timed = TimedConnection(link, monotonic)
        response = handle(timed)
        handled = monotonic()
        times.queue.add(queued * 1000)
        times.local.add((handled - start) * 1000)
        if response is None and timed.responded_at is None:
            timed.on_response = partial(self._await_sent, times, start - queued, handled)
        elif response is not None and not response:
            times.total.add((handled - start + queued) * 1000)  # acks 0: there is no response
        else:
            self._await_sent(times, start - queued, handled, link, handled)
        return response

    def _await_sent(
        self,
        times: RequestTimes,
        began: float,
        handled: float,
        link: RequestConnection,
        at: float,
    ) -> None:
        """Record the remote time; the rest once the response is sent."""
        times.remote.add(max(0.0, at - handled) * 1000)

        def sent() -> None:
            now = self._runtime.monotonic()
            times.send.add((now - at) * 1000)
            times.total.add((now - began) * 1000)

        link.when_sent(sent)

    def _times_of(self, payload: memoryview) -> RequestTimes:
        key = payload[1]
        name = self._names.get(key, "Unknown")
        if key == FETCH and len(payload) > HEADER_BYTES:
            client = int.from_bytes(payload[CLIENT_LENGTH], signed=True)
            start = HEADER_BYTES + max(0, client)
            # The replica id of a consumer is negative.
            is_follower = start < len(payload) and payload[start] < 128
            name = "FetchFollower" if is_follower else "FetchConsumer"
        times = self.times.get(name)
        if times is None:
            times = self.times[name] = RequestTimes(*(Timings() for _ in PARTS))
        return times

    def families(self) -> Iterator[Family]:
        """The families that dashboards for the JMX exporter expect. Times are in ms; their `_count`
        counts timed requests, `requestspersec` all of them."""
        yield from meter(
            "kafka_network_requestmetrics_requests",
            "Requests handled, by API.",
            [
                ({"request": self._names.get(key, "Unknown")}, count)
                for key, count in self.totals().items()
            ],
        )
        for number, part in enumerate(PARTS):
            yield Family(
                f"kafka_network_requestmetrics_{part}",
                "Time of requests in ms, by API: see kafka08/broker/requests/request_metrics.py.",
                self._samples(number),
                "summary",
            )

    def _samples(self, number: int) -> Iterator[Sample]:
        for name, times in sorted(self.times.items()):
            yield from times[number].samples(Labels(request=name))


def is_frequent(payload: memoryview) -> bool:
    """Whether it is a request of one of the APIs that make up nearly all traffic: few of them are
    timed, of the others each one."""
    return payload[1] in FREQUENT


class TimedConnection(ForwardingConnection):
    """The RequestConnection of a timed request: it records when the response came.

    responded_at   the time of the response; None: not yet
    on_response     called with the connection and that time, once the handler has returned without
                    a response; it holds neither, or they would hold each other
    """

    def __init__(self, link: RequestConnection, monotonic: Callable[[], float]) -> None:
        super().__init__(link)
        self._monotonic = monotonic
        self.responded_at: float | None = None
        self.on_response: Callable[[RequestConnection, float], object] | None = None

    def send_response(self, response: ResponseFrame) -> None:
        """As ServerConnection.send_response."""
        self.responded_at = self._monotonic()
        if self.on_response is not None:
            self.on_response(self._link, self.responded_at)
        self._link.send_response(response)
