"""SimpleConsumer on brokers in memory: fetches and their growth, reading ahead, offsets,
commits."""

from __future__ import annotations

from itertools import pairwise

import pytest

from kafka08.consumer import SimpleConsumer
from kafka08.errors import (
    Closed,
    InvalidMessage,
    MessageTooLarge,
    NotLeaderForPartition,
    OffsetMetadataTooLarge,
    OffsetOutOfRange,
    ProtocolError,
    UnknownTopicOrPartition,
)
from kafka08.protocol.consumer_metadata import ConsumerMetadataRequest
from kafka08.protocol.fetch import FetchRequest, FetchResponse
from kafka08.protocol.offset_commit import (
    OffsetCommitPartitionResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitTopicResponse,
)
from kafka08.protocol.offset_fetch import (
    OffsetFetchPartitionResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchTopicResponse,
)
from kafka08.protocol.types import Request, Response
from kafka08.structs import (
    EARLIEST_OFFSET,
    LATEST_OFFSET,
    NO_OFFSET,
    OffsetAndMetadata,
    TopicPartition,
)
from tests.client.fake_cluster import PORT, FakeCluster
from tests.network.scripted import Hangup

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
VALUES = [b"%d" % n * (n + 1) for n in range(40)]


@pytest.fixture
def cluster() -> FakeCluster:
    cluster = FakeCluster({"t": {0: 1, 1: 2}})
    cluster.append(T0, *VALUES)
    return cluster


def consumer_of(cluster: FakeCluster, max_fetch_bytes: int = 1 << 20) -> SimpleConsumer:
    return SimpleConsumer(
        "b1",
        PORT,
        client_id="me",
        max_fetch_bytes=max_fetch_bytes,
        runtime=cluster.runtime,
    )


@pytest.fixture
def consumer(cluster: FakeCluster) -> SimpleConsumer:
    return consumer_of(cluster)


def fetches(cluster: FakeCluster) -> list[tuple[int, int]]:
    """(offset, max_bytes) of the fetches so far."""
    return [
        (part.offset, part.max_bytes)
        for request in cluster.network.requests(FetchRequest)
        if isinstance(request, FetchRequest)
        for part in request.topics[0].partitions
    ]


def test_fetch_gives_messages_and_high_watermark(consumer: SimpleConsumer) -> None:
    """A fetch returns the messages from the offset on and the HW. At the log end it is empty."""
    fetched = consumer.fetch(T0, 38)
    assert [(m.topic, m.partition, m.offset, m.value) for m in fetched] == [
        ("t", 0, 38, VALUES[38]),
        ("t", 0, 39, VALUES[39]),
    ]
    assert fetched.high_watermark == 40
    assert list(consumer.fetch(T0, 40)) == []


@pytest.mark.parametrize("max_bytes", [1, 11, 12, 13, 50])
def test_fetch_grows_for_a_message_larger_than_asked(
    cluster: FakeCluster, consumer: SimpleConsumer, max_bytes: int
) -> None:
    """A fetch grows in at most two steps: to the 12 bytes that have the size, then to that size."""
    fetched = consumer.fetch(T0, 39, max_bytes=max_bytes)
    assert [m.value for m in fetched] == [VALUES[39]]
    sizes = [size for _, size in fetches(cluster)]
    assert sizes == [max_bytes, *([12] if max_bytes < 12 else []), 26 + len(VALUES[39])]


def test_growth_has_a_bound(cluster: FakeCluster) -> None:
    """MessageTooLarge has partition, offset and size."""
    size = 26 + len(VALUES[39])
    with pytest.raises(MessageTooLarge, match=rf"\[t,0\] at b1:9092: .*offset 39 has {size} bytes"):
        consumer_of(cluster, size - 1).fetch(T0, 39, max_bytes=20)
    assert list(consumer_of(cluster, size).fetch(T0, 39, max_bytes=20))


def test_errors_name_broker_and_partition(consumer: SimpleConsumer) -> None:
    """Each error code becomes its class, with broker and partition."""
    with pytest.raises(OffsetOutOfRange, match=r"\[t,0\] at b1:9092, offset 41"):
        consumer.fetch(T0, 41)
    with pytest.raises(NotLeaderForPartition, match=r"\[t,1\] at b1:9092"):
        consumer.fetch(T1, 0)
    with pytest.raises(UnknownTopicOrPartition, match=r"\[x,0\] at b1:9092"):
        consumer.offsets_before(TopicPartition("x", 0), LATEST_OFFSET)


def test_multifetch_keeps_errors_apart(consumer: SimpleConsumer) -> None:
    """An error of one partition does not hide the messages of another."""
    sets = consumer.multifetch({T0: 39, T1: (0, 100)})
    assert [m.offset for m in sets[T0]] == [39]
    assert isinstance(sets[T1].error, NotLeaderForPartition)
    with pytest.raises(NotLeaderForPartition):
        list(sets[T1])


@pytest.mark.parametrize("max_bytes", [1, 30, 100, 500, 100_000])
@pytest.mark.parametrize(("start", "until"), [(0, None), (3, 17), (0, 40), (5, 99), (7, 7), (9, 4)])
def test_read_gives_each_message_once_in_order(
    cluster: FakeCluster, consumer: SimpleConsumer, max_bytes: int, start: int, until: int | None
) -> None:
    """Each message of any range comes once and in order, wherever the fetch size cuts."""
    messages = consumer.read_range(T0, start, until, max_bytes=max_bytes)
    end = 40 if until is None else min(until, 40)
    assert [m.offset for m in messages] == list(range(start, end))


def test_read_asks_for_the_next_set_before_it_hands_out_the_first(
    cluster: FakeCluster, consumer: SimpleConsumer
) -> None:
    """The next fetch is in flight while the caller handles a set."""
    messages = consumer.read_range(T0, 0, max_bytes=100)
    next(messages)
    offsets = [offset for offset, _ in fetches(cluster)]
    assert len(offsets) == 2
    list(messages)
    assert all(a <= b for a, b in pairwise(offset for offset, _ in fetches(cluster)))


def test_read_ends_where_the_log_ended_when_it_began(
    cluster: FakeCluster, consumer: SimpleConsumer
) -> None:
    """read() ends at the log end of its start. Messages that are appended meanwhile do not prolong
    it."""
    messages = consumer.read_range(T0, 38)
    next(messages)
    cluster.append(T0, b"later")
    assert [m.offset for m in messages] == [39]


def test_read_survives_a_lost_connection(cluster: FakeCluster, consumer: SimpleConsumer) -> None:
    """After a lost connection the outstanding fetch is sent again."""
    messages = consumer.read_range(T0, 0, max_bytes=100)
    offsets = [next(messages).offset]
    cluster.network.sockets[-1].broken = True
    offsets += [m.offset for m in messages]
    assert offsets == list(range(40))


def test_other_requests_may_come_between(cluster: FakeCluster, consumer: SimpleConsumer) -> None:
    """Another request may be made during a read. The fetch's response is kept for the reader."""
    messages = consumer.read_range(T0, 0, max_bytes=100)
    offsets = []
    for message in messages:
        offsets.append(message.offset)
        assert consumer.earliest_or_latest(T0, LATEST_OFFSET) == 40
    assert offsets == list(range(40))


def test_damage_stops_the_reader_at_the_message(
    cluster: FakeCluster, consumer: SimpleConsumer
) -> None:
    """A damaged message is raised with partition and broker, after the messages before it."""
    cluster.logs[T0][-1] ^= 0x40
    messages = consumer.read_range(T0, 0)
    assert [next(messages).offset for _ in range(39)] == list(range(39))
    with pytest.raises(InvalidMessage, match=r"\[t,0\] at b1:9092.*offset 39"):
        next(messages)


def test_offsets(consumer: SimpleConsumer) -> None:
    """The consumer returns the log start and the log end."""
    assert consumer.earliest_or_latest(T0, EARLIEST_OFFSET) == 0
    assert consumer.earliest_or_latest(T0, LATEST_OFFSET) == 40
    assert consumer.offsets_before(T0, LATEST_OFFSET, 3) == [40]


def test_metadata(consumer: SimpleConsumer) -> None:
    """The metadata has the leaders, for a program that finds them itself."""
    assert consumer.metadata(["t"]).leader(T1).id == 2


def test_a_response_that_leaves_out_a_partition_is_refused(cluster: FakeCluster) -> None:
    """A response without the partition is an error, so that it does not look like an empty set."""
    cluster.network.broker("b1", PORT, lambda _: FetchResponse([]))
    with pytest.raises(ProtocolError, match=r"b1:9092 left out \[t,0\]"):
        consumer_of(cluster).fetch(T0, 0)


def test_a_closed_consumer_says_so(consumer: SimpleConsumer) -> None:
    """After close() requests for the store and the log fail with that reason."""
    with consumer:
        consumer.fetch(T0, 0)
    with pytest.raises(Closed):
        consumer.fetch(T0, 0)
    with pytest.raises(Closed):
        consumer.commit_offsets("g", {T0: 1}, "kafka")


class Offsets:
    """Committed offsets at b1 (ZooKeeper) and at the coordinator. Requests get the errors in
    `codes` first."""

    def __init__(self, cluster: FakeCluster, *codes: int) -> None:
        self.cluster = cluster
        self.codes = list(codes)
        self.stored: dict[str, dict[TopicPartition, OffsetAndMetadata]] = {
            "zookeeper": {},
            "kafka": {},
        }
        for host in ("b1", "b2"):
            cluster.network.broker(host, PORT, self.respond)

    def respond(self, request: Request) -> Response | None:
        match request:
            case OffsetCommitRequest():
                return self._commit(request)
            case OffsetFetchRequest():
                return self._fetch(request)
        return self.cluster.respond(1, request)

    def _commit(self, request: OffsetCommitRequest) -> Response:
        code = self.codes.pop(0) if self.codes else 0
        for topic in request.topics:
            for part in topic.partitions:
                if not code:
                    tp = TopicPartition(topic.topic, part.partition)
                    store = "kafka" if request.version else "zookeeper"
                    self.stored[store][tp] = OffsetAndMetadata(part.offset, part.metadata)
        return OffsetCommitResponse(
            [
                OffsetCommitTopicResponse(
                    t.topic,
                    [OffsetCommitPartitionResponse(p.partition, code) for p in t.partitions],
                )
                for t in request.topics
            ]
        )

    def _fetch(self, request: OffsetFetchRequest) -> Response:
        code = self.codes.pop(0) if self.codes else 0
        store = self.stored["kafka" if request.version else "zookeeper"]
        none = OffsetAndMetadata(NO_OFFSET, "")

        def part(topic: str, partition: int) -> OffsetFetchPartitionResponse:
            found = store.get(TopicPartition(topic, partition), none)
            missing = 3 if found is none and request.version == 0 else 0
            return OffsetFetchPartitionResponse(
                partition, found.offset, found.metadata, code or missing
            )

        return OffsetFetchResponse(
            [
                OffsetFetchTopicResponse(t.topic, [part(t.topic, p) for p in t.partitions])
                for t in request.topics or ()
            ]
        )


@pytest.mark.parametrize("storage", ["zookeeper", "kafka"])
def test_commit_and_fetch_in_each_store(cluster: FakeCluster, storage: str) -> None:
    """A committed offset is returned, a missing one as NO_OFFSET. The other store stays empty."""
    offsets = Offsets(cluster)
    with consumer_of(cluster) as consumer:
        if storage == "kafka":
            consumer.commit_offsets("g", {T0: OffsetAndMetadata(7, "m")}, "kafka")
            found = consumer.fetch_offsets("g", [T0, T1], "kafka")
        else:
            consumer.commit_offsets("g", {T0: OffsetAndMetadata(7, "m")})
            found = consumer.fetch_offsets("g", [T0, T1])
    assert found == {T0: OffsetAndMetadata(7, "m"), T1: OffsetAndMetadata(NO_OFFSET, "")}
    assert {store for store, values in offsets.stored.items() if values} == {storage}


def test_a_loading_coordinator_is_asked_again(cluster: FakeCluster) -> None:
    """After two OffsetsLoadInProgress (14) the third request succeeds, without a new search for the
    coordinator."""
    offsets = Offsets(cluster, 14, 14)
    offsets.stored["kafka"][T0] = OffsetAndMetadata(3, "")
    assert consumer_of(cluster).fetch_offsets("g", [T0], "kafka")[T0].offset == 3
    assert len(cluster.network.requests(ConsumerMetadataRequest)) == 1
    assert len(cluster.clock.slept) == 2


def test_a_coordinator_that_moved_is_looked_up(cluster: FakeCluster) -> None:
    """After NotCoordinatorForConsumer (16) the coordinator is looked up again."""
    Offsets(cluster, 16)
    consumer_of(cluster).commit_offsets("g", {T0: 1}, "kafka")
    assert len(cluster.network.requests(ConsumerMetadataRequest)) == 2


def test_a_refused_commit_names_every_partition(cluster: FakeCluster) -> None:
    """The error names every partition, and the commit is not retried, because the coordinator would
    refuse it again."""
    Offsets(cluster, 12)
    with pytest.raises(OffsetMetadataTooLarge, match=r"\[t,0\], \[t,1\] at b1:9092"):
        consumer_of(cluster).commit_offsets("g", {T0: 1, T1: 2}, "kafka")
    assert len(cluster.network.requests(OffsetCommitRequest)) == 1


def test_a_response_lost_at_the_coordinator_is_asked_for_again(cluster: FakeCluster) -> None:
    """A commit whose response was lost is sent again: committing twice does no harm."""
    offsets = Offsets(cluster)
    once = [True]

    def script(request: Request) -> Response | None:
        if isinstance(request, OffsetCommitRequest) and once:
            once.clear()
            raise Hangup
        return offsets.respond(request)

    cluster.network.broker("b1", PORT, script)
    consumer_of(cluster).commit_offsets("g", {T0: 5}, "kafka")
    assert offsets.stored["kafka"] == {T0: OffsetAndMetadata(5, "")}
