"""Which requests are counted and timed, and how their time is split."""

from __future__ import annotations

import struct
import weakref
from functools import partial
from pathlib import Path

import pytest

from kafka08.broker.requests.dispatcher import Dispatcher
from kafka08.broker.requests.request_metrics import TIMED_EVERY, RequestMetrics, is_frequent
from kafka08.errors import ProtocolError
from kafka08.levels import Level
from kafka08.network.server_connection import RequestConnection, ResponseFrame, ServerConnection
from kafka08.protocol.frame import FrameReader
from kafka08.protocol.metadata import MetadataRequest
from kafka08.protocol.offsets import OffsetsRequest
from kafka08.protocol.served import SERVED
from tests.broker.fake_runtime import FakeRuntime
from tests.broker.world import Client, World

PRODUCE, FETCH, OFFSETS, METADATA, COORDINATOR, HEARTBEAT = 0, 1, 2, 3, 10, 12
NO_API = 99


class Served:
    """A connection whose requests take and wait as long as the test says."""

    def __init__(self, level: Level = Level.V0_8_2) -> None:
        self.runtime = FakeRuntime()
        self.metrics = RequestMetrics(self.runtime, level, takes_times=True)
        self.local_seconds = 0.0
        self.parks = False
        self.response = b"response"
        self.links: list[RequestConnection] = []
        self.connection = ServerConnection(
            "client:1", FrameReader(1000), self.metrics.handlers(self.dispatch)
        )

    def dispatch(self, payload: memoryview, link: RequestConnection) -> ResponseFrame | None:
        """Like the Dispatcher, which first looks for a key."""
        if self.metrics.takes_times and len(payload) > 1 and not is_frequent(payload):
            return self.metrics.measure(payload, link, partial(self.handle, payload))
        return self.handle(payload, link)

    def handle(self, payload: memoryview, link: RequestConnection) -> ResponseFrame | None:
        self.links.append(link)
        self.runtime.advance(self.local_seconds)
        return None if self.parks else self.response

    def request(self, key: int, body: bytes = b"") -> None:
        payload = struct.pack(">hhih", key, 0, 1, -1) + body
        data = struct.pack(">i", len(payload)) + payload
        self.connection.reader.buffer()[: len(data)] = data
        self.connection.reader.advance(len(data))
        self.connection.handle_frames(self.runtime.monotonic)

    def flush(self) -> None:
        self.connection.outbox.clear()
        self.connection.sent()

    def totals(self, name: str) -> list[int]:
        """Total, queue, local, remote and send time in ms, rounded."""
        return [round(part.total) for part in self.metrics.times[name]]


def test_rare_requests_are_all_timed_and_frequent_ones_now_and_then() -> None:
    """Rare requests are all timed; at a hundred a second one Produce of TIMED_EVERY is."""
    served = Served()
    served.local_seconds = 0.01
    for _ in range(4 * TIMED_EVERY):
        served.request(PRODUCE)
        served.flush()
    for _ in range(TIMED_EVERY):
        served.request(HEARTBEAT)
        served.flush()
    assert 4 == served.metrics.times["Produce"].total.count
    assert TIMED_EVERY == served.metrics.times["Heartbeat"].total.count


@pytest.mark.parametrize(
    ("level", "name"),
    [
        (Level.V0_8_2, "ConsumerMetadata"),
        (Level.V0_9_0, "GroupCoordinator"),
        (Level.V0_10_2, "GroupCoordinator"),
    ],
)
def test_requests_have_the_names_of_their_level(level: Level, name: str) -> None:
    """Key 10 was renamed: RequestKeys of 0.8.2.2, ApiKeys of 0.9.0.1 and 0.10.2.2. Counts and times
    have the same name."""
    served = Served(level)
    served.metrics.counts[COORDINATOR] += 1
    served.request(COORDINATOR)
    assert {name} == set(served.metrics.times)
    [family, *_] = served.metrics.families()
    assert [{"request": name}] == [sample.labels for sample in family.samples]


def test_a_busy_broker_times_about_25_a_second() -> None:
    """Of fifty thousand requests a second about 25 are timed. When it is quiet again, one of
    TIMED_EVERY."""
    served = Served()
    for seconds, requests, fewest, most in ((2e-5, 50_000, 12, 55), (0.01, 10_000, 550, 700)):
        served.local_seconds = seconds
        times = served.metrics.times.get("Produce")
        before = times.total.count if times is not None else 0
        for _ in range(requests):
            served.request(PRODUCE)
            served.flush()
        assert fewest <= served.metrics.times["Produce"].total.count - before <= most


def test_the_dispatcher_counts_all_requests_and_times_the_rare_ones(tmp_path: Path) -> None:
    """The dispatcher counts all requests by API, with those of the fast path and those that close a
    connection. It times the rare ones."""
    requests = RequestMetrics(FakeRuntime(), Level.V0_8_2, takes_times=True)
    world = World(tmp_path)
    client = Client(world, Dispatcher(world.context, SERVED[world.config.level], requests))
    for _ in range(3):
        client.call(MetadataRequest(["t"]))
    client.call(OffsetsRequest(-1, []))
    with pytest.raises(ProtocolError):
        client.send(struct.pack(">ihhih", 10, NO_API, 0, 1, -1))
    assert {METADATA: 3, OFFSETS: 1, NO_API: 1} == requests.totals()
    assert {"Offsets", "Unknown"} == set(requests.times)


def test_the_parts_of_a_parked_request() -> None:
    """A request takes 2 s in the handler, 3 s parked and 4 s until its response is sent: 9 s."""
    served = Served()
    served.local_seconds, served.parks = 2.0, True
    served.request(HEARTBEAT)
    served.runtime.advance(3.0)
    served.links[0].send_response(b"late")
    assert [b"late"] == served.connection.outbox
    served.runtime.advance(4.0)
    served.flush()
    assert [9000, 0, 2000, 3000, 4000] == served.totals("Heartbeat")


def test_a_timed_request_ends_with_its_response() -> None:
    """What notes the time of a late response lives no longer than that: with its connection and the
    request's bytes it stayed until the garbage collector came."""
    served = Served()
    served.parks = True
    served.request(HEARTBEAT)
    note = weakref.ref(served.links[0])
    served.links.pop().send_response(b"late")
    assert note() is None


def test_a_request_without_a_response_takes_no_time_to_send() -> None:
    """With acks 0 nothing is sent. The next response on that connection belongs to another
    request."""
    served = Served()
    served.local_seconds, served.response = 1.0, b""
    served.request(HEARTBEAT)
    served.runtime.advance(60.0)
    served.flush()
    assert [1000, 0, 1000, 0, 0] == served.totals("Heartbeat")


def test_requests_answered_together_are_all_timed() -> None:
    """Two requests of one delivery, whose responses are sent together, are both timed."""
    served = Served()
    served.request(HEARTBEAT)
    served.request(HEARTBEAT)
    served.runtime.advance(1.0)
    served.flush()
    assert 2 == served.metrics.times["Heartbeat"].total.count


def test_fetches_of_followers_and_consumers_count_separately() -> None:
    """The replica id distinguishes followers from consumers, whose id is negative."""
    served = Served()
    served.local_seconds = 0.01
    for replica_id in (-1, 3):
        for _ in range(TIMED_EVERY):
            served.request(FETCH, struct.pack(">i", replica_id))
    assert {"FetchConsumer", "FetchFollower"} == set(served.metrics.times)


def test_a_request_too_short_to_have_a_key_is_the_handlers_to_refuse() -> None:
    """A request too short to have a key goes to the handler, which refuses it, as without
    metrics."""
    served = Served()
    data = struct.pack(">i", 1) + b"\0"
    served.connection.reader.buffer()[: len(data)] = data
    served.connection.reader.advance(len(data))
    served.connection.handle_frames(served.runtime.monotonic)
    assert 1 == len(served.links)
