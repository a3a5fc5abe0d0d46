"""Rounds of one fetch thread on brokers in memory: positions, errors, sizes, free room in
streams."""

from __future__ import annotations

import socket
from collections.abc import Callable, Collection
from contextlib import suppress
from math import inf
from typing import Any

import pytest

from kafka08.consumer.fetching import fetcher as fetcher_module
from kafka08.consumer.fetching import positions
from kafka08.consumer.fetching.fetch_settings import FetchSettings
from kafka08.consumer.fetching.fetcher import (
    EARLY_MAX,
    EARLY_PAUSE_S,
    PartitionFetcher,
    response_bytes_max,
)
from kafka08.consumer.fetching.owned_partition import Chunk, OwnedPartition
from kafka08.consumer.zookeeper.config import ConsumerConfig
from kafka08.consumer.zookeeper.member_stream import MemberStream
from kafka08.errors import (
    ConsumerTimeout,
    InvalidMessage,
    KafkaError,
    LeaderNotAvailable,
    MessageTooLarge,
    NotLeaderForPartition,
    SessionLost,
    UnsupportedForMessageFormat,
)
from kafka08.kernel.types import ENTRY_HEADER
from kafka08.network.connection import Connection
from kafka08.protocol import message_set
from kafka08.protocol.fetch import (
    FetchPartitionResponse,
    FetchRequest,
    FetchResponse,
    FetchTopicResponse,
)
from kafka08.protocol.offsets import (
    OffsetsPartitionResponse,
    OffsetsRequest,
    OffsetsResponse,
    OffsetsTopicResponse,
)
from kafka08.protocol.types import Request, Response
from kafka08.runtime.threads import THREADS, ThreadRuntime
from kafka08.structs import NO_OFFSET, TopicPartition
from tests.client.fake_cluster import PORT, FakeCluster

ENTRY_BYTES = len(message_set.encode([(None, b"a")]))
TP0, TP1 = TopicPartition("t", 0), TopicPartition("t", 1)
LedBy = Callable[[Collection[TopicPartition]], Collection[TopicPartition]]


class Supervisor:
    def deadline(self) -> float:
        return inf

    def stall(self) -> tuple[int, KafkaError | None]:
        return 0, None


class PaperStream(MemberStream):
    """A stream whose reader waits when the test says so."""

    waiting = False

    @property
    def is_waited_for(self) -> bool:
        return self.waiting


class Bench:
    """A fetcher on broker 1 of a fake cluster, which the test runs round by round, and a stream. A
    round handles one response. With `bench.stream.waiting = True` the reader waits: a round then
    also sends the request after that one, which the fake broker answers at once."""

    def __init__(self, **keys: Any) -> None:
        self.cluster = FakeCluster({"t": {0: 1, 1: 1}})
        self.config = ConsumerConfig(
            **{"group_id": "g", "zookeeper_connect": "", "auto_offset_reset": "smallest", **keys}
        )
        self.lost: list[OwnedPartition] = []
        self.stream = self.new_stream()
        connection = Connection("b1", PORT, runtime=self.cluster.network.runtime())
        self.led_by: LedBy = list
        self.fetcher = PartitionFetcher(
            "f", connection, self.config, self._lose, THREADS, self._led_by
        )

    def new_stream(self) -> PaperStream:
        return PaperStream(
            supervisor=Supervisor(),
            runtime=THREADS,
            timeout_ms=0,
            capacity=self.config.queued_max_message_chunks,
        )

    def _lose(self, partitions: Collection[OwnedPartition]) -> None:
        self.lost.extend(partitions)

    def _led_by(self, asked: Collection[TopicPartition]) -> Collection[TopicPartition]:
        return self.led_by(asked)

    def own(
        self, tp: TopicPartition, offset: int = NO_OFFSET, stream: MemberStream | None = None
    ) -> OwnedPartition:
        partition = OwnedPartition(
            tp,
            thread_id="c-0",
            sink=stream or self.stream,
            offset=offset,
            fetch_bytes=self.config.fetch_message_max_bytes,
        )
        self.fetcher.add([partition])
        return partition

    def rounds(self, count: int) -> None:
        for _ in range(count):
            self.fetcher._round()

    def read(self) -> list[bytes]:
        """The values of all messages that arrived."""
        values = []
        with suppress(ConsumerTimeout):
            for message in self.stream:
                values.append(message.value or b"")
        return values

    def fetches(self) -> list[list[tuple[int, int]]]:
        """(partition, offset) of each Fetch request so far."""
        return [
            [(p.partition, p.offset) for topic in request.topics for p in topic.partitions]
            for request in self.cluster.network.requests(FetchRequest)
            if isinstance(request, FetchRequest)
        ]


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetcher_module, "HELD_CHECK_S", 0)


def test_continues_behind_the_fetched_messages() -> None:
    """Each request asks for the messages behind the fetched ones, of all partitions at once."""
    bench = Bench()
    bench.cluster.append(TP0, b"a", b"b")
    bench.cluster.append(TP1, b"x")
    bench.own(TP0, 0)
    bench.own(TP1, 0)
    bench.rounds(1)
    assert sorted(bench.read()) == [b"a", b"b", b"x"]
    bench.cluster.append(TP0, b"c")
    bench.rounds(1)
    assert bench.read() == [b"c"]
    assert [sorted(fetch) for fetch in bench.fetches()] == [[(0, 0), (1, 0)], [(0, 2), (1, 1)]]


@pytest.mark.parametrize(("reset", "start"), [("smallest", 0), ("largest", 2)])
def test_without_a_position_the_reset_decides(reset: str, start: int) -> None:
    """Without a committed offset auto.offset.reset decides, and a commit stores that position."""
    bench = Bench(auto_offset_reset=reset)
    bench.cluster.append(TP0, b"a", b"b")
    partition = bench.own(TP0)
    bench.rounds(1)
    assert partition.consumed_offset == start
    assert bench.read() == [b"a", b"b"][start:]


def test_out_of_range_resets_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    """An offset outside the log moves the position as configured, with a warning."""
    bench = Bench()
    bench.cluster.append(TP0, b"a")
    partition = bench.own(TP0, 50)
    bench.rounds(2)
    assert "Current offset 50 for partition [t,0] out of range; reset offset to 0" in caplog.text
    assert bench.read() == [b"a"]
    assert partition.fetch_offset == 1


def test_a_former_leader_does_not_reset_a_position() -> None:
    """A broker that does not lead in ZooKeeper and has no such offset was suspended, and does not
    know its successor: the partition goes back to the leader finder, and keeps its position."""
    bench = Bench()
    bench.cluster.append(TP0, b"a")
    bench.led_by = lambda asked: [tp for tp in asked if tp != TP0]
    partition = bench.own(TP0, 50)
    bench.rounds(1)
    assert bench.lost == [partition]
    assert partition.fetch_offset == 50
    assert not bench.cluster.network.requests(OffsetsRequest)


def test_without_zookeeper_no_position_is_reset() -> None:
    """If ZooKeeper cannot say who leads, the partition is tried again later."""
    bench = Bench()
    partition = bench.own(TP0, 50)

    def unreachable(_: Collection[TopicPartition]) -> Collection[TopicPartition]:
        raise SessionLost("ZooKeeper cannot be reached")

    bench.led_by = unreachable
    bench.rounds(1)
    assert bench.lost == [partition]
    assert isinstance(partition.outage.error, SessionLost)
    assert partition.fetch_offset == 50


def test_a_full_stream_is_left_out() -> None:
    """A stream with more sets than queued.max.message.chunks is left out of requests until it has
    read some."""
    bench = Bench(queued_max_message_chunks=1, fetch_message_max_bytes=ENTRY_BYTES)
    bench.cluster.append(TP0, b"a", b"b", b"c")
    bench.own(TP0, 0)
    bench.rounds(5)
    assert bench.fetches() == [[(0, 0)], [(0, 1)]]
    assert bench.read() == [b"a", b"b"]
    bench.rounds(1)
    assert bench.read() == [b"c"]


def test_empty_responses_that_come_too_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that does not wait is not asked thousands of times a second."""
    bench = Bench(fetch_wait_max_ms=30_000)
    waits: list[float | None] = []
    monkeypatch.setattr(bench.fetcher._condition, "wait", waits.append)
    bench.own(TP0, 0)
    bench.rounds(15)
    assert [EARLY_PAUSE_S] * (15 - EARLY_MAX) == waits
    bench.cluster.append(TP0, b"a")
    bench.rounds(10)
    assert 15 - EARLY_MAX == len(waits)


def test_a_thread_without_partitions_does_not_connect() -> None:
    """A thread without partitions waits. After its broker died, partitions go back to the search
    for leaders. A thread that still asked for API versions used a whole core, because each
    connection is refused at once."""
    bench = Bench()
    settings = FetchSettings(
        auto_offset_reset="smallest",
        fetch_message_max_bytes=1000,
        fetch_min_bytes=1,
        fetch_wait_max_ms=100,
        fetch_max_bytes=1000,
        refresh_leader_backoff_ms=100,
    )
    tried: list[object] = []

    def refuse(address: object, _: float) -> socket.socket:
        tried.append(address)
        raise ConnectionRefusedError

    runtime = ThreadRuntime(connect=refuse)
    connection = Connection("b1", PORT, negotiates=True, runtime=runtime)
    bench.fetcher = PartitionFetcher("f", connection, settings, bench._lose, THREADS, list)
    partition = bench.own(TP0, 0)
    bench.rounds(5)
    assert bench.lost == [partition]
    assert tried == [("b1", PORT)]


def test_readers_that_wait_have_the_next_request_sent_first() -> None:
    """For a reader that waits, the next request is sent before the sets of the last response are
    handed over, and asks for the messages behind them. For a busy reader it is sent afterwards."""
    bench = Bench(fetch_message_max_bytes=ENTRY_BYTES)
    bench.cluster.append(TP0, b"a", b"b", b"c")
    partition = bench.own(TP0, 0)
    bench.stream.waiting = True
    seen = []
    offer = bench.stream.offer

    def watch(chunk: Chunk) -> bool:
        seen.append((chunk.from_offset, bench.fetches()[-1]))
        bench.stream.waiting = False
        return offer(chunk)

    bench.stream.offer = watch  # type: ignore[method-assign]
    bench.rounds(2)
    assert [(0, [(0, 1)]), (1, [(0, 1)])] == seen
    assert partition.fetch_offset == 2


def test_a_response_to_an_early_request_is_dropped_after_a_revocation() -> None:
    """If the partition was revoked, or belongs to the member again from an earlier position, a
    response to the request that was sent ahead is dropped. No message is returned twice or skipped.
    """
    bench = Bench(fetch_message_max_bytes=ENTRY_BYTES)
    bench.cluster.append(TP0, b"a", b"b", b"c")
    bench.stream.waiting = True
    former = bench.own(TP0, 0)
    bench.rounds(1)
    assert [(0, 1)] == bench.fetches()[-1]
    bench.stream.revoke([former])
    again = bench.own(TP0, 0)
    for _ in range(4):
        bench.rounds(1)
    assert bench.read() == [b"a", b"b", b"c"]
    assert (0, 3) == (former.consumed_offset, again.fetch_offset)


def test_a_response_to_an_early_request_is_dropped_after_a_move() -> None:
    """A partition with a damaged message is fetched again from it. The response to a request that
    was sent ahead, from a later position, is dropped."""
    bench = Bench(fetch_message_max_bytes=ENTRY_BYTES)
    bench.cluster.append(TP0, b"a", b"b", b"c")
    bench.stream.waiting = True
    partition = bench.own(TP0, 0)
    bench.rounds(1)
    assert bench.stream.reset(partition, 1, 0)
    bench.rounds(4)
    assert bench.read()[:3] == [b"a", b"a", b"b"]


def test_a_partition_that_comes_later_gets_its_start() -> None:
    """A partition without a position gets one although requests follow each other without a
    pause."""
    bench = Bench()
    bench.stream.waiting = True
    bench.cluster.append(TP1, b"x")
    bench.own(TP0, 0)
    bench.rounds(1)
    bench.own(TP1)
    bench.rounds(2)
    assert bench.read() == [b"x"]


def test_a_full_stream_does_not_slow_down_by_an_idle_one() -> None:
    """A request that leaves full streams out waits only briefly at the broker, whatever
    fetch.wait.max.ms is. Otherwise it would hold up those streams, which may have room at once."""
    bench = Bench(queued_max_message_chunks=1, fetch_message_max_bytes=ENTRY_BYTES)
    bench.cluster.append(TP0, b"a", b"b", b"c")
    bench.own(TP0, 0)
    bench.own(TP1, 0, bench.new_stream())
    bench.rounds(4)
    assert [(0, 0), (1, 0)] == bench.fetches()[0]
    assert [(1, 0)] == bench.fetches()[-1]
    requests = bench.cluster.network.requests(FetchRequest)
    waits = [r.max_wait_ms for r in requests if isinstance(r, FetchRequest)]
    assert (100, fetcher_module.PARTIAL_WAIT_MS) == (waits[0], waits[-1])


def test_a_message_larger_than_the_fetch_is_fetched_with_its_size() -> None:
    """A message that is larger than the fetch is fetched with its exact size next. Then the
    configured size applies again."""
    bench = Bench(fetch_message_max_bytes=40)
    bench.cluster.append(TP0, b"x" * 500, b"y")
    partition = bench.own(TP0, 0)
    bench.rounds(2)
    assert [len(value) for value in bench.read()] == [500]
    assert partition.fetch_bytes == 40
    bench.rounds(1)
    assert bench.read() == [b"y"]


def test_a_message_above_the_bound_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reader gets MessageTooLarge at each read, and other partitions continue."""
    monkeypatch.setattr(fetcher_module, "FETCH_BYTES_MAX", 100)
    bench = Bench(fetch_message_max_bytes=40)
    bench.cluster.append(TP0, b"x" * 500)
    bench.cluster.append(TP1, b"a")
    partition = bench.own(TP0, 0)
    bench.rounds(2)
    for _ in range(2):
        with pytest.raises(MessageTooLarge, match=r"\[t,0\]"):
            next(bench.stream)
        bench.rounds(2)
    bench.own(TP1, 0)
    bench.rounds(1)
    seen = []
    for _ in range(2):
        with suppress(MessageTooLarge):
            seen.append(next(bench.stream).value)
    assert seen == [b"a"]
    assert partition.consumed_offset == 0


def test_a_damaged_message_is_raised_behind_the_sound_ones() -> None:
    """Sound messages are returned and fetching stops. After the reader got the error, the partition
    is fetched again."""
    bench = Bench()
    bench.cluster.append(TP0, b"a", b"b")
    sound = bytes(bench.cluster.logs[TP0])
    bench.cluster.logs[TP0][-1] ^= 1
    partition = bench.own(TP0, 0)
    bench.rounds(3)
    assert len(bench.fetches()) == 1
    assert next(bench.stream).value == b"a"
    with pytest.raises(InvalidMessage):
        next(bench.stream)
    bench.cluster.logs[TP0][:] = sound
    bench.rounds(1)
    assert bench.read() == [b"b"]
    assert partition.consumed_offset == 2


def test_a_set_of_messages_below_the_offset_is_an_error() -> None:
    """A set of messages below the requested offset is an error, and fetching stops until the reader
    has got it. A broker that repeats this would keep the reader waiting, and consumer.timeout.ms
    would never end the wait."""
    bench = Bench()
    below = message_set.encode([(None, b"a"), (None, b"b")])
    partition = bench.own(TP0, 5)

    def respond(request: Request) -> Response | None:
        if not isinstance(request, FetchRequest):
            return bench.cluster.respond(1, request)
        part = FetchPartitionResponse(0, 0, 100, below)
        return FetchResponse([FetchTopicResponse("t", [part])])

    bench.cluster.network.broker("b1", PORT, respond)
    for fetches in (1, 2):
        bench.rounds(3)
        assert len(bench.fetches()) == fetches
        with pytest.raises(InvalidMessage, match=r"offset 5, .* messages up to offset 1 only"):
            next(bench.stream)
    assert partition.consumed_offset == 5


def respond_first(bench: Bench, *parts: FetchPartitionResponse) -> None:
    """The first Fetches get `parts`, one each, and later ones the log's messages."""
    left = list(reversed(parts))

    def respond(request: Request) -> Response | None:
        if isinstance(request, FetchRequest) and left:
            return FetchResponse([FetchTopicResponse("t", [left.pop()])])
        return bench.cluster.respond(1, request)

    bench.cluster.network.broker("b1", PORT, respond)


def test_messages_that_a_later_broker_does_not_convert_are_skipped() -> None:
    """The consumer continues behind a transaction's marker, in place of which a later broker sends
    the header of an impossible message. (That used to count as a cut message, and was raised for
    ever.)"""
    bench = Bench()
    bench.cluster.append(TP0, b"marker", b"b")
    partition = bench.own(TP0, 0)
    filler = ENTRY_HEADER.pack(-1, 73) + bytes(49)
    respond_first(bench, FetchPartitionResponse(0, 0, 2, filler))
    bench.rounds(2)
    assert bench.fetches() == [[(0, 0)], [(0, 1)]]
    assert bench.read() + bench.read() == [b"b"]
    assert partition.consumed_offset == 2


@pytest.mark.parametrize(("code", "cure"), [(35, "downconversion"), (76, "gzip, snappy or lz4")])
def test_messages_that_a_later_broker_withholds_are_raised_each_time(code: int, cure: str) -> None:
    """The reader gets the error each time, because another leader would not help. Reading continues
    once the broker sends the messages."""
    bench = Bench()
    bench.cluster.append(TP0, b"a")
    bench.own(TP0, 0)
    respond_first(bench, *[FetchPartitionResponse(0, code, -1, b"")] * 2)
    for _ in range(2):
        bench.rounds(1)
        with pytest.raises(UnsupportedForMessageFormat, match=cure):
            next(bench.stream)
    bench.rounds(1)
    assert bench.read() == [b"a"]
    assert bench.lost == []


def test_a_start_that_cannot_be_is_not_believed() -> None:
    """A negative first offset gives the partition back to the search for leaders, which has a
    backoff."""
    bench = Bench()
    partition = bench.own(TP0)

    def respond(request: Request) -> Response | None:
        if not isinstance(request, OffsetsRequest):
            return bench.cluster.respond(1, request)
        return OffsetsResponse([OffsetsTopicResponse("t", [OffsetsPartitionResponse(0, 0, [-7])])])

    bench.cluster.network.broker("b1", PORT, respond)
    bench.rounds(1)
    assert bench.lost == [partition]


def test_a_response_is_no_larger_than_its_request() -> None:
    """A partition's size that exceeds the requested bytes is refused before it is read."""
    small = ConsumerConfig(group_id="g", zookeeper_connect="")
    large = ConsumerConfig(group_id="g", zookeeper_connect="", fetch_message_max_bytes=1 << 30)
    assert 80 << 20 == response_bytes_max(small)
    assert (1 << 30) + (16 << 20) == response_bytes_max(large)


@pytest.mark.parametrize("error", [NotLeaderForPartition, LeaderNotAvailable])
def test_a_partition_that_moved_is_given_back(error: type[NotLeaderForPartition]) -> None:
    """The partition goes back to the search for leaders and leaves the requests; the others
    stay."""
    bench = Bench()
    bench.cluster.refuse(TP0, error.code)
    moved, staying = bench.own(TP0, 0), bench.own(TP1, 0)
    bench.rounds(2)
    assert bench.lost == [moved]
    assert bench.fetches()[1] == [(1, 0)]
    assert not staying.revoked


def test_a_lost_connection_gives_everything_back() -> None:
    """All partitions of a lost connection go back to the search for leaders."""
    bench = Bench()
    partitions = [bench.own(TP0, 0), bench.own(TP1, 0)]
    bench.rounds(1)
    bench.cluster.down(1)
    bench.rounds(1)
    assert bench.lost == partitions
    assert bench.fetcher.is_idle


def test_a_partition_is_given_back_once() -> None:
    """A partition that moved goes back once, also if the connection breaks before the next
    request."""
    bench = Bench()
    bench.cluster.refuse(TP0, NotLeaderForPartition.code)
    bench.stream.waiting = True
    moved, staying = bench.own(TP0, 0), bench.own(TP1, 50)
    lose = bench.fetcher._on_lost

    def lose_and_break(partitions: Collection[OwnedPartition]) -> None:
        lose(partitions)
        if staying not in bench.lost:
            bench.cluster.down(1)

    bench.fetcher._on_lost = lose_and_break
    bench.rounds(1)
    assert [moved, staying] == bench.lost


def test_revoked_partitions_are_forgotten() -> None:
    """After a revocation nothing of the partition is fetched or handed over, whatever was in
    flight."""
    bench = Bench()
    bench.cluster.append(TP0, b"a")
    partition = bench.own(TP0, 0)
    bench.stream.revoke([partition])
    bench.rounds(1)
    assert bench.fetches() == []
    assert bench.fetcher.is_idle


def test_partitions_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """If one request has no room for all partitions, each of them gets its turn."""
    monkeypatch.setattr(positions, "REQUEST_BYTES_MAX", positions.IDLE_BYTES_MIN)
    bench = Bench()
    bench.own(TP0, 0)
    bench.own(TP1, 0)
    bench.rounds(4)
    assert bench.fetches() == [[(0, 0)], [(1, 0)], [(0, 0)], [(1, 0)]]


def requests_of(bench: Bench) -> list[FetchRequest]:
    requests = bench.cluster.network.requests(FetchRequest)
    return [request for request in requests if isinstance(request, FetchRequest)]


def sizes_of(request: FetchRequest) -> dict[int, int]:
    return {p.partition: p.max_bytes for topic in request.topics for p in topic.partitions}


@pytest.mark.parametrize("count", [64, 65, 5000])
def test_many_idle_partitions_share_a_request(count: int) -> None:
    """However many partitions a broker leads, one request asks for all, and waits at the broker for
    as long as is configured; its response is never larger than allowed. From 65 partitions on a
    request had 64 of them and came back after 10 ms."""
    bench = Bench()
    bench.cluster = FakeCluster({"t": dict.fromkeys(range(count), 1)})
    connection = Connection("b1", PORT, runtime=bench.cluster.network.runtime())
    bench.fetcher = PartitionFetcher("f", connection, bench.config, bench._lose, THREADS, list)
    for number in range(count):
        bench.own(TopicPartition("t", number), 0)
    bench.rounds(2)
    for request in requests_of(bench):
        assert sizes_of(request).keys() == set(range(count))
        assert sum(sizes_of(request).values()) <= positions.REQUEST_BYTES_MAX
        assert request.max_wait_ms == bench.config.fetch_wait_max_ms


def test_partitions_with_messages_are_fetched_in_full_in_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If not all can be fetched in full, those whose last response had messages take turns, and
    the others get a little in each request."""
    monkeypatch.setattr(positions, "REQUEST_BYTES_MAX", 6000)
    monkeypatch.setattr(positions, "IDLE_BYTES_MIN", 100)
    bench = Bench(fetch_message_max_bytes=2000, queued_max_message_chunks=100)
    bench.cluster = FakeCluster({"t": dict.fromkeys(range(6), 1)})
    connection = Connection("b1", PORT, runtime=bench.cluster.network.runtime())
    bench.fetcher = PartitionFetcher("f", connection, bench.config, bench._lose, THREADS, list)
    for number in range(6):
        bench.own(TopicPartition("t", number), 0)
        for _ in range(9 if number else 0):
            bench.cluster.append(TopicPartition("t", number), b"x" * 400)
    bench.rounds(6)
    asked = [sizes_of(request) for request in requests_of(bench)]
    in_full = [{n for n, size in sizes.items() if size == 2000} for sizes in asked]
    assert in_full == [set(), {1, 2}, {3, 4}, {5, 1}, {2, 3}, {4, 5}]
    assert {size for sizes in asked for size in sizes.values()} == {500, 2000}
    assert len(bench.read()) == 45


def test_a_message_larger_than_the_part_of_an_idle_partition(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is fetched in full next, and the configured size stays."""
    monkeypatch.setattr(positions, "REQUEST_BYTES_MAX", 3000)
    monkeypatch.setattr(positions, "IDLE_BYTES_MIN", 100)
    bench = Bench(fetch_message_max_bytes=2000)
    first, second = bench.own(TP0, 0), bench.own(TP1, 0)
    bench.cluster.append(TP1, b"x" * 1000)
    bench.rounds(2)
    assert bench.read() == [b"x" * 1000]
    assert [sizes_of(request)[1] for request in requests_of(bench)] == [750, 2000]
    assert first.fetch_bytes == second.fetch_bytes == 2000


@pytest.mark.parametrize("is_moved", [False, True])
def test_silent_responses_say_what_the_last_one_said(is_moved: bool) -> None:
    """A partition whose response repeats the last one keeps its high watermark; after an outage, or
    when its position was moved meanwhile, it gets it all the same."""
    bench = Bench()
    bench.cluster.append(TP0, b"a")
    partition, idle = bench.own(TP0, 0), bench.own(TP1, 0)
    bench.rounds(2)
    assert (partition.high_watermark, idle.high_watermark) == (1, 0)
    if is_moved:
        bench.fetcher._ask(bench.fetcher._choose())
        assert bench.stream.reset(partition, 1, 0)
        bench.fetcher.notify()
        partition.high_watermark = NO_OFFSET
        bench.rounds(2)
        assert partition.high_watermark == 1
        return
    error = KafkaError("lost")
    bench.fetcher._lose({idle: error})
    assert bench.lost == [idle]
    assert idle.outage.error is error
    bench.fetcher.add([idle])
    bench.rounds(1)
    assert idle.outage.error is None


def test_a_request_of_nothing_is_not_sent() -> None:
    """While no partition can be fetched, the last request is not sent again."""
    bench = Bench()
    partition = bench.own(TP0, 0)
    bench.rounds(1)
    partition.held = True
    bench.rounds(3)
    partition.held = False
    bench.rounds(1)
    assert bench.fetches() == [[(0, 0)], [(0, 0)]]


def test_an_idle_round_makes_nothing_new() -> None:
    """A round for partitions without news encodes no request, and makes no object for each of
    them; one message among them changes its own part of the request."""

    def bench_with(count: int) -> Bench:
        bench = Bench()
        bench.cluster = FakeCluster({"t": dict.fromkeys(range(count), 1)})
        connection = Connection("b1", PORT, runtime=bench.cluster.network.runtime())
        bench.fetcher = PartitionFetcher("f", connection, bench.config, bench._lose, THREADS, list)
        for number in range(count):
            bench.own(TopicPartition("t", number), 0)
        bench.rounds(2)
        return bench

    bench = bench_with(100)
    frame, asked = bench.fetcher._frame, bench.fetcher._asked
    assert frame is not None
    bench.rounds(1)
    assert bench.fetcher._asked is asked
    bench.cluster.append(TopicPartition("t", 7), b"a")
    bench.rounds(2)
    assert bench.read() == [b"a"]
    assert bench.fetcher._frame is frame
    assert dict(bench.fetches()[-1]) == {number: int(number == 7) for number in range(100)}
