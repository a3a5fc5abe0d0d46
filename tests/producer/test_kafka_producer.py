"""KafkaProducer on scripted brokers behind real sockets: the records it accepts, sends and
reports."""

from __future__ import annotations

import asyncio
import itertools
import random
import threading
from typing import Any

import pytest

from kafka08.embedded.ports import free_ports
from kafka08.errors import (
    BufferExhausted,
    InvalidMessage,
    InvalidTopic,
    KafkaError,
    MessageSizeTooLarge,
    MessageTooLarge,
    NotLeaderForPartition,
    ProtocolError,
    RequestTimeout,
    UnknownTopicOrPartition,
)
from kafka08.hashing import murmur2
from kafka08.producer import (
    KafkaProducer,
    KafkaProducerConfig,
    ProducerRecord,
    RecordMetadata,
)
from kafka08.producer.accumulator import PACKED_TOGETHER_BYTES, may_travel_with
from kafka08.producer.batch import RecordBatch
from kafka08.protocol.metadata import MetadataRequest
from kafka08.runtime.sockets import SocketPoller
from kafka08.runtime.threads import ThreadRuntime
from kafka08.runtime.transport import Poller, Readiness
from kafka08.structs import NO_LEADER, NO_OFFSET, TopicPartition
from tests.producer.producers import (
    SECONDS,
    T0,
    T1,
    U0,
    config_on,
    producer_on,
    values,
)
from tests.producer.tcp_cluster import TcpCluster
from tests.waiting import until


def test_it_prints_where_it_sends_and_whether_it_is_closed(cluster: TcpCluster) -> None:
    """repr() has the brokers, and whether the producer is closed."""
    with producer_on(cluster) as producer:
        assert repr(producer) == f"<KafkaProducer to {cluster.servers}>"
    assert repr(producer) == f"<KafkaProducer to {cluster.servers}, closed>"


# ---------------------------------------------------------------------------------- the good case


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4"])
def test_records_are_where_their_futures_say(cluster: TcpCluster, codec: str) -> None:
    """Over many batches and with each codec, a record is at the offset in its future. Null keys and
    values stay null."""
    with producer_on(cluster, compression_type=codec, batch_size=200) as producer:
        sent = [(b"%d" % n if n % 7 else None, b"k%d" % n if n % 3 else None) for n in range(500)]
        futures = [producer.send(ProducerRecord("t", value, key)) for value, key in sent]
        for (value, key), future in zip(sent, futures, strict=True):
            told = future.result(SECONDS)
            stored = cluster.messages(TopicPartition("t", told.partition))
            assert stored[told.offset] == (key, value)
    assert len(cluster.messages(T0)) + len(cluster.messages(T1)) == 500
    assert set(cluster.codecs) == {["none", "gzip", "snappy", "lz4"].index(codec)}


def test_keys_choose_as_java_does_and_the_keyless_take_turns(cluster: TcpCluster) -> None:
    """murmur2 of the key chooses the partition. Records without key go to the partitions in
    turn."""
    with producer_on(cluster) as producer:
        keyed = [producer.send(ProducerRecord("t", b"", b"key %d" % n)) for n in range(20)]
        keyless = [producer.send(ProducerRecord("t", b"")) for n in range(10)]
        assert [future.result(SECONDS).partition for future in keyed] == [
            (murmur2(b"key %d" % n) & 0x7FFFFFFF) % 2 for n in range(20)
        ]
        assert sorted(future.result(SECONDS).partition for future in keyless) == [0] * 5 + [1] * 5
        assert producer.send(ProducerRecord("t", b"", b"key", 1)).result(SECONDS).partition == 1


def await_refresh(producer: KafkaProducer) -> None:
    metadata = producer._routes.metadata
    former = metadata.cluster
    until(lambda: metadata.cluster is not former, "a refresh of the metadata")


@pytest.mark.parametrize("many", [False, True])
def test_the_keyless_begin_anywhere(cluster: TcpCluster, many: bool) -> None:
    """The first partition of a producer is drawn, so that programs which send one record each use
    all; a producer's turns go on when its metadata is refreshed."""
    firsts = set()
    for seed in range(8):
        runtime = ThreadRuntime(rng=random.Random(seed))
        with KafkaProducer(config_on(cluster, metadata_max_age_ms=1), runtime=runtime) as producer:
            partitions = []
            for _ in range(4):
                if many:
                    partitions.append(producer.send_many("t", [b""]).result(SECONDS)[0].tp[1])
                else:
                    sent = producer.send(ProducerRecord("t", b""))
                    partitions.append(sent.result(SECONDS).partition)
                await_refresh(producer)
        assert partitions in ([0, 1, 0, 1], [1, 0, 1, 0])
        firsts.add(partitions[0])
    assert {0, 1} == firsts


def test_sticky_records_fill_a_batch_before_the_next_partition(cluster: TcpCluster) -> None:
    """Those without a key: with a lull in which a batch is sent, and with batches that become full.
    Keys choose as ever."""
    keys: dict[str, Any] = {"partitioner_class": "sticky", "linger_ms": 1_000_000}
    with producer_on(cluster, batch_size=1000, **keys) as producer:
        turns = []
        for _ in range(4):
            few = [producer.send(ProducerRecord("t", b"v")) for _ in range(5)]
            producer.flush()
            (partition,) = {future.result(SECONDS).partition for future in few}
            turns.append(partition)
        assert turns in ([0, 1, 0, 1], [1, 0, 1, 0])
        many = [producer.send(ProducerRecord("t", bytes(80))) for _ in range(100)]
        keyed = producer.send(ProducerRecord("t", b"", b"key 1"))
        producer.flush()
        found = [future.result(SECONDS).partition for future in many]
        assert keyed.result(SECONDS).partition == (murmur2(b"key 1") & 0x7FFFFFFF) % 2
    lengths = [len(list(run)) for _, run in itertools.groupby(found)]
    assert min(lengths[:-1]) == max(lengths) > 5
    assert abs(found.count(0) - found.count(1)) <= max(lengths)


def test_the_keyless_avoid_partitions_without_leader(cluster: TcpCluster) -> None:
    """Records without key go in turn to the partitions that have a leader."""
    cluster.leaders[T0] = NO_LEADER
    with producer_on(cluster) as producer:
        futures = [producer.send(ProducerRecord("t", b"")) for _ in range(6)]
        assert {future.result(SECONDS).partition for future in futures} == {1}


def test_callbacks_are_called_in_order(cluster: TcpCluster) -> None:
    """One for each record that has one, with what the future says; one that raises is no harm."""
    seen: list[tuple[int, RecordMetadata | None, KafkaError | None]] = []
    done: list[RecordMetadata] = []

    def callback(n: int) -> Any:
        """Each record's callback gets the result of its future. A callback that raises does no
        harm."""

        def told(metadata: RecordMetadata | None, error: KafkaError | None) -> None:
            seen.append((n, metadata, error))
            if n == 4:
                raise RuntimeError("mine")

        return told

    with producer_on(cluster, linger_ms=10) as producer:
        futures = [
            producer.send(ProducerRecord("u", b"%d" % n), callback(n) if n % 2 == 0 else None)
            for n in range(10)
        ]
        futures[3].add_done_callback(lambda future: done.append(future.result()))
        producer.flush(SECONDS)
        expected = [(n, RecordMetadata("u", 0, n), None) for n in range(0, 10, 2)]
        until(lambda: seen == expected and done == [RecordMetadata("u", 0, 3)])
    futures[4].add_done_callback(lambda future: done.append(future.result()))
    assert done[-1] == RecordMetadata("u", 0, 4)
    assert futures[4].done()
    assert futures[4].exception() is None


@pytest.mark.parametrize("raised", [SystemExit, asyncio.CancelledError, KeyboardInterrupt])
def test_a_callback_that_exits_ends_nothing(
    cluster: TcpCluster, caplog: pytest.LogCaptureFixture, raised: type[BaseException]
) -> None:
    """What a callback raises is logged, sys.exit too, and the other records have their results. It
    ended the sender's thread without a word: flush waited for ever, and close lost what was not
    sent."""
    seen: list[int] = []

    def leave(*_: object) -> None:
        raise raised

    with producer_on(cluster, linger_ms=10) as producer:
        futures = [producer.send(ProducerRecord("u", b"a"), leave)]
        futures[0].add_done_callback(leave)
        futures += [
            producer.send(ProducerRecord("u", b"b"), lambda *_, n=n: seen.append(n))
            for n in range(3)
        ]
        producer.flush(SECONDS)
        futures.append(producer.send(ProducerRecord("u", b"c")))
        assert [0, 1, 2, 3, 4] == [future.result(SECONDS).offset for future in futures]
    assert [0, 1, 2] == seen
    assert 2 == caplog.text.count("Error executing user-provided callback")


def test_acks_0_has_no_offset(cluster: TcpCluster) -> None:
    """With acks 0 a future is done when its record was written to the socket, and has no offset."""
    with producer_on(cluster, acks="0") as producer:
        told = producer.send(ProducerRecord("u", b"x")).result(SECONDS)
        assert told == RecordMetadata("u", 0, NO_OFFSET)
        until(lambda: values(cluster, U0) == [b"x"])
    assert cluster.produced()[0].required_acks == 0


@pytest.mark.parametrize(("acks", "required"), [("1", 1), ("-1", -1), ("all", -1)])
def test_acks_and_timeout_are_sent(cluster: TcpCluster, acks: str, required: int) -> None:
    """timeout.ms is sent with the request, and is never larger than request.timeout.ms."""
    with producer_on(cluster, acks=acks, timeout_ms=60_000, request_timeout_ms=7000) as producer:
        producer.send(ProducerRecord("u", b"x")).result(SECONDS)
    request = cluster.produced()[0]
    assert (request.required_acks, request.timeout_ms) == (required, 7000)


@pytest.mark.parametrize(("batch_size", "size"), [(1000, 974), (1000, 5000), (0, 1)])
def test_a_record_that_fills_its_batch_does_not_linger(
    cluster: TcpCluster, batch_size: int, size: int
) -> None:
    """A record of batch.size, with its 26 bytes of header, or more is sent at once."""
    with producer_on(cluster, linger_ms=1_000_000, batch_size=batch_size) as producer:
        assert 0 == producer.send(ProducerRecord("u", b"x" * size)).result(SECONDS).offset


def test_records_linger_until_the_batch_is_full_or_flushed(cluster: TcpCluster) -> None:
    """A batch waits for linger.ms. flush() and close() do not."""
    with producer_on(cluster, linger_ms=1_000_000, batch_size=1000) as producer:
        first = producer.send(ProducerRecord("u", b"x"))
        with pytest.raises(TimeoutError):
            first.result(0.05)
        producer.flush(SECONDS)
        assert first.done()
        full = [producer.send(ProducerRecord("u", b"x" * 100)) for _ in range(8)]
        assert full[0].result(SECONDS).offset == 1
        assert not full[-1].done()
    assert full[-1].result(0).offset == 8


def test_batches_that_wait_travel_as_one_set(cluster: TcpCluster) -> None:
    """The records that gather during a request are sent in one more request, up to
    max.request.size."""
    with producer_on(cluster, batch_size=100, max_in_flight_requests_per_connection=1) as producer:
        producer.send(ProducerRecord("u", b"0")).result(SECONDS)
        cluster.pause(2)
        futures = [producer.send(ProducerRecord("u", b"%d" % n)) for n in range(1, 100)]
        cluster.resume(2)
        assert [future.result(SECONDS).offset for future in futures] == list(range(1, 100))
    assert values(cluster, U0) == [b"%d" % n for n in range(100)]
    assert len(cluster.produced()) <= 4


class SteppedRuntime(ThreadRuntime):
    """A runtime whose pollers, once `is_stepped` is set, wait for a step before each poll."""

    def __init__(self) -> None:
        super().__init__()
        self.is_stepped = False
        self.steps = threading.Semaphore(0)

    def poller(self) -> Poller:
        runtime = self

        class SteppedPoller(SocketPoller):
            def poll(self, timeout: float | None) -> list[Readiness]:
                if runtime.is_stepped:
                    runtime.steps.acquire()
                return super().poll(timeout)

        return SteppedPoller()


def test_a_round_sends_as_many_requests_as_may_be_in_flight(cluster: TcpCluster) -> None:
    """Each round sends as many requests as may be in flight. One request per wait for the network
    left the broker of a busy program idle: each wait ends with one for the GIL, in which the broker
    handles about five requests."""
    runtime = SteppedRuntime()
    config = config_on(cluster, batch_size=500, max_request_size=1000)
    with KafkaProducer(config, runtime=runtime) as producer:
        producer.send(ProducerRecord("u", b"first")).result(SECONDS)
        runtime.is_stepped = True
        try:
            sent = producer.send_many("u", [b"x" * 400] * 12)
            runtime.steps.release()
            until(lambda: len(cluster.produced()) >= 1 + 5)
        finally:
            runtime.is_stepped = False
            runtime.steps.release(9)
        assert 1 == sent.result(SECONDS)[0].offset
    assert 13 == len(values(cluster, U0))


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_batches_that_wait_travel_together(cluster: TcpCluster, codec: str) -> None:
    """Batches that wait during a request are sent in one set, and each gets its own offset."""
    with producer_on(
        cluster, batch_size=50, max_in_flight_requests_per_connection=1, compression_type=codec
    ) as producer:
        producer.send(ProducerRecord("u", b"first")).result(SECONDS)
        cluster.pause(2)
        futures = [producer.send(ProducerRecord("u", b"%040d" % n)) for n in range(10)]
        cluster.resume(2)
        assert [future.result(SECONDS).offset for future in futures] == list(range(1, 11))
    assert len(cluster.produced()) <= 3
    assert values(cluster, U0)[1:] == [b"%040d" % n for n in range(10)]


def test_packed_batches_travel_together_up_to_a_limit() -> None:
    """Compressed batches are combined up to a limit, because a broker makes one message of them,
    which has a maximum size."""

    def batch(codec: int, size: int) -> RecordBatch:
        return RecordBatch(U0, codec, size, 0.0)

    first, last = batch(1, 1000), batch(1, 1001)
    assert may_travel_with(first, first, PACKED_TOGETHER_BYTES - 1000)
    assert not may_travel_with(last, first, PACKED_TOGETHER_BYTES - 1000)
    assert may_travel_with(batch(0, 1001), batch(0, 1000), PACKED_TOGETHER_BYTES - 1000)


def test_only_the_guilty_batch_fails(cluster: TcpCluster) -> None:
    """If a combined set is refused for good, its batches are sent again one by one, and only the
    bad one fails."""
    cluster.guilty = b"%040d" % 1
    with producer_on(cluster, batch_size=50, max_in_flight_requests_per_connection=1) as producer:
        producer.send(ProducerRecord("u", b"first")).result(SECONDS)
        cluster.pause(2)
        futures = [producer.send(ProducerRecord("u", b"%040d" % n)) for n in range(4)]
        cluster.resume(2)
        errors = [type(future.exception(SECONDS)) for future in futures]
    assert errors == [type(None), MessageSizeTooLarge, type(None), type(None)]
    assert values(cluster, U0)[1:] == [b"%040d" % n for n in (0, 2, 3)]


def test_a_refused_set_is_not_overtaken(cluster: TcpCluster) -> None:
    """While batches that were sent together may be refused together, the next ones of their
    partition wait: the good ones of them, which are sent again, keep their place in the order, with
    the default of several requests in flight."""
    cluster.guilty = b"%040d" % 1
    runtime = SteppedRuntime()
    config = config_on(cluster, batch_size=50)
    with KafkaProducer(config, runtime=runtime) as producer:
        producer.send(ProducerRecord("u", b"first")).result(SECONDS)
        cluster.pause(2)
        runtime.is_stepped = True
        futures = [producer.send(ProducerRecord("u", b"%040d" % n)) for n in range(4)]
        runtime.steps.release()  # they go together
        until(lambda: producer._accumulator.queue(U0).in_flight > 0)
        futures += [producer.send(ProducerRecord("u", b"%040d" % n)) for n in range(4, 8)]
        runtime.is_stepped = False
        runtime.steps.release(9)
        until(lambda: producer._accumulator.sender_waits)
        cluster.resume(2)
        failed = [n for n, future in enumerate(futures) if future.exception(SECONDS) is not None]
    assert [1] == failed
    assert values(cluster, U0)[1:] == [b"%040d" % n for n in (0, 2, 3, 4, 5, 6, 7)]


# ---------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize("retries", [0, 1])
def test_a_damaged_set_is_sent_again(cluster: TcpCluster, retries: int) -> None:
    """A set whose CRC is wrong at the broker was damaged on its way: a retry may cure it, as in the
    JVM's producer."""
    cluster.refuse(U0, InvalidMessage.code)
    with producer_on(cluster, retries=retries) as producer:
        error = producer.send(ProducerRecord("u", b"a")).exception(SECONDS)
    assert (InvalidMessage if retries == 0 else type(None)) is type(error)
    assert values(cluster, U0) == [b"a"] * retries


def test_a_callback_that_fails_at_once_is_logged(
    cluster: TcpCluster, caplog: pytest.LogCaptureFixture
) -> None:
    """The callback of a record that is not accepted is called within `send`; what it raises is
    logged there, too."""

    def failing(*_: object) -> None:
        raise ValueError("the user's")

    with producer_on(cluster, max_block_ms=30) as producer:
        future = producer.send(ProducerRecord("missing", b""), failing)
    assert isinstance(future.exception(), RequestTimeout)
    assert "ValueError: the user's" in caplog.text


def test_a_moved_leader_is_found(cluster: TcpCluster) -> None:
    """A moved leader costs a retry and a refresh of the metadata."""
    with producer_on(cluster, retries=5) as producer:
        producer.send(ProducerRecord("t", b"a", partition=0)).result(SECONDS)
        cluster.leaders[T0] = 2
        assert producer.send(ProducerRecord("t", b"b", partition=0)).result(SECONDS).offset == 1
    assert values(cluster, T0) == [b"a", b"b"]


def test_a_leader_that_does_not_know_the_topic_yet_is_asked_again(cluster: TcpCluster) -> None:
    """UnknownTopicOrPartition (3) in a Produce response is retriable, as in the JVM's producer. It
    costs a retry."""
    cluster.refuse(U0, UnknownTopicOrPartition.code, UnknownTopicOrPartition.code)
    with producer_on(cluster, retries=2) as producer:
        assert producer.send(ProducerRecord("u", b"a")).result(SECONDS).offset == 0
    assert len(cluster.produced()) == 3


@pytest.mark.parametrize("retries", [0, 2])
def test_an_error_that_stays_goes_to_future_and_callback(cluster: TcpCluster, retries: int) -> None:
    """After retries + 1 tries, the future and the callback get the error."""
    told: list[KafkaError | None] = []
    cluster.refuse(U0, *[NotLeaderForPartition.code] * (retries + 1))
    with producer_on(cluster, retries=retries) as producer:
        record = ProducerRecord("u", b"a")
        future = producer.send(record, lambda metadata, error: told.append(error))
        with pytest.raises(NotLeaderForPartition):
            future.result(SECONDS)
        assert producer.send(record).result(SECONDS).offset == 0
    assert len(cluster.produced()) == retries + 2
    assert told == [future.exception()]


def test_brokers_that_do_not_respond_are_named() -> None:
    """The error has the addresses that were asked, the reason, and what to check."""
    [port] = free_ports(1)
    config = KafkaProducerConfig(bootstrap_servers=f"127.0.0.1:{port}", max_block_ms=30)
    with KafkaProducer(config) as producer:
        future = producer.send(ProducerRecord("t", b""))
        why = rf"at 127.0.0.1:{port} \(cannot connect .* refused\); check bootstrap.servers"
        with pytest.raises(RequestTimeout, match=why):
            future.result(SECONDS)


def test_a_topic_that_stays_unknown(cluster: TcpCluster) -> None:
    """An unknown topic gives RequestTimeout after max.block.ms in the future and the callback.
    send() does not raise."""
    told: list[KafkaError | None] = []
    with producer_on(cluster, max_block_ms=30) as producer:
        record = ProducerRecord("missing", b"")
        future = producer.send(record, lambda metadata, error: told.append(error))
        with pytest.raises(RequestTimeout, match="no metadata of topic missing within 30 ms"):
            future.result(SECONDS)
        assert isinstance(told[0], RequestTimeout)
        with pytest.raises(RequestTimeout):
            producer.partitions_for("missing")
        assert isinstance(producer.send_many("missing", [b""]).exception(), RequestTimeout)


@pytest.mark.parametrize("topic", ["", "..", "a b", "x" * 256, "x" * 40_000, "bad\udc80"])
def test_a_topic_that_cannot_be_fails_alone(cluster: TcpCluster, topic: str) -> None:
    """An illegal topic is InvalidTopic for its own caller, and no broker is asked. Records before
    and after it are sent."""
    with producer_on(cluster, linger_ms=50) as producer:
        before = producer.send(ProducerRecord("u", b"before"))
        refused = producer.send(ProducerRecord(topic, b"x"))
        assert isinstance(refused.exception(0), InvalidTopic)
        assert before.result(SECONDS).offset == 0
        assert producer.send(ProducerRecord("u", b"behind")).result(SECONDS).offset == 1
    assert topic not in asked_for(cluster)


@pytest.mark.parametrize("topic", [b"pages", None, 7])
def test_a_topic_that_is_not_text_fails_alone(cluster: TcpCluster, topic: Any) -> None:
    """It is a TypeError of send(), like other mistakes of the program, and the producer
    continues."""
    with producer_on(cluster) as producer:
        with pytest.raises(TypeError, match=type(topic).__name__):
            producer.send(ProducerRecord(topic, b"x"))
        assert producer.send(ProducerRecord("u", b"behind")).result(SECONDS).offset == 0


def test_a_request_that_cannot_be_encoded_costs_its_own_batches_only(cluster: TcpCluster) -> None:
    """Its batches fail with ProtocolError, and the sender's thread continues."""
    with producer_on(cluster) as producer:
        assert producer.send(ProducerRecord("u", b"good")).result(SECONDS).offset == 0
        queue = next(producer._routes.by_topic["u"].turns)
        queue.tp = TopicPartition("x" * 40_000, 0)
        producer._accumulator._queues[queue.tp] = queue
        assert isinstance(
            producer.send(ProducerRecord("u", b"x")).exception(SECONDS), ProtocolError
        )
        queue.tp = U0
        assert producer.send(ProducerRecord("u", b"good")).result(SECONDS).offset == 1


def test_a_topic_without_callers_is_not_requested_again(cluster: TcpCluster) -> None:
    """When the last caller has given up waiting for an unknown topic, the producer stops requesting
    its metadata. It still refreshes known topics."""
    with producer_on(cluster, max_block_ms=2000, metadata_max_age_ms=50) as producer:
        producer.partitions_for("u")
        assert isinstance(producer.send(ProducerRecord("missing", b"")).exception(), RequestTimeout)
        count = len(cluster.asked)
        until(lambda: len(cluster.asked) >= count + 3)
        later = [request for _, request in cluster.asked[count + 1 :]]
        assert [r.topics for r in later if isinstance(r, MetadataRequest)] == [["u"]] * len(later)


def asked_for(cluster: TcpCluster) -> set[str]:
    """The topics of all metadata requests."""
    requests = [request for _, request in cluster.asked]
    return {topic for r in requests if isinstance(r, MetadataRequest) for topic in r.topics or ()}


def test_a_partition_that_is_not_there(cluster: TcpCluster) -> None:
    """The error has the number of partitions."""
    with producer_on(cluster) as producer:
        future = producer.send(ProducerRecord("t", b"", partition=2))
        with pytest.raises(UnknownTopicOrPartition, match="has 2 partitions"):
            future.result(SECONDS)


def test_a_record_that_is_too_large(cluster: TcpCluster) -> None:
    """A record larger than max.request.size, with its header, is refused. One of exactly this size
    is sent."""
    with producer_on(cluster, max_request_size=1000, batch_size=100) as producer:
        with pytest.raises(MessageTooLarge, match="1001 bytes"):
            producer.send(ProducerRecord("u", b"x" * 975)).result(SECONDS)
        assert producer.send(ProducerRecord("u", b"x" * 974)).result(SECONDS).offset == 0


@pytest.mark.parametrize("keys", [{"max_block_ms": 20}, {"block_on_buffer_full": False}])
def test_memory_that_runs_out(cluster: TcpCluster, keys: dict[str, Any]) -> None:
    """The future has BufferExhausted after max.block.ms. When memory is released, send() works
    again."""
    keys = {**keys, "metadata_fetch_timeout_ms": SECONDS * 1000}
    with producer_on(cluster, buffer_memory=1000, batch_size=500, **keys) as producer:
        producer.partitions_for("u")
        cluster.pause(2)
        futures = [producer.send(ProducerRecord("u", b"x" * 400)) for _ in range(3)]
        assert isinstance(futures[2].exception(SECONDS), BufferExhausted)
        cluster.resume(2)
        assert [future.result(SECONDS).offset for future in futures[:2]] == [0, 1]
        assert producer.send(ProducerRecord("u", b"x" * 400)).result(SECONDS).offset == 2
        assert producer.free_bytes == 1000


def test_send_waits_for_memory(cluster: TcpCluster) -> None:
    """A buffer of two batches is enough for any number of batches."""
    with producer_on(cluster, buffer_memory=1000, batch_size=500) as producer:
        futures = [producer.send(ProducerRecord("t", b"%0200d" % n)) for n in range(300)]
        assert all(future.exception(SECONDS) is None for future in futures)
        assert producer.free_bytes == 1000


def test_a_paused_broker_times_out_and_does_not_hold_up_the_others(cluster: TcpCluster) -> None:
    """A batch to a broker that does not answer fails after request.timeout.ms. Batches to other
    brokers are sent."""
    with producer_on(cluster, request_timeout_ms=2000) as producer:
        producer.partitions_for("t")
        cluster.pause(1)
        stuck = producer.send(ProducerRecord("t", b"a", partition=0))
        assert producer.send(ProducerRecord("t", b"b", partition=1)).result(SECONDS).offset == 0
        assert not stuck.done()
        with pytest.raises(RequestTimeout):
            stuck.result(SECONDS)
        cluster.resume(1)


@pytest.mark.parametrize(
    "keys",
    [
        {"request_timeout_ms": 300},
        {"request_timeout_ms": 300, "acks": "all", "retries": 10},
        {"delivery_timeout_ms": 300},
        {"delivery_timeout_ms": 300, "enable_idempotence": True},
    ],
)
def test_a_partition_without_leader_times_out(cluster: TcpCluster, keys: dict[str, Any]) -> None:
    """Batches wait for a leader for request.timeout.ms, or as long as delivery.timeout.ms says, and
    are sent if there is one in time."""
    cluster.leaders[T0] = NO_LEADER
    with (
        producer_on(cluster, **keys) as producer,
        pytest.raises(RequestTimeout, match=r"\[t,0\]: no leader"),
    ):
        producer.send(ProducerRecord("t", b"a", partition=0)).result(SECONDS)
    with producer_on(cluster) as producer:
        future = producer.send(ProducerRecord("t", b"b", partition=0))
        cluster.leaders[T0] = 1
        assert future.result(SECONDS).offset == 0
        assert producer.free_bytes == producer.config.buffer_memory


def test_a_bootstrap_broker_may_be_dead(cluster: TcpCluster) -> None:
    """One bootstrap broker that answers is enough."""
    cluster.leaders = dict.fromkeys(cluster.leaders, 2)
    cluster.down(1)
    with producer_on(cluster) as producer:
        assert producer.send(ProducerRecord("t", b"a")).result(SECONDS).offset == 0


def test_idle_connections_are_closed_and_opened_again(cluster: TcpCluster) -> None:
    """After connections.max.idle.ms connections are closed, and no later send() fails."""
    with producer_on(cluster, connections_max_idle_ms=100) as producer:
        producer.send(ProducerRecord("u", b"a")).result(SECONDS)
        until(lambda: cluster.served == 0, "the end of the connections")
        before = cluster.opened
        assert producer.send(ProducerRecord("u", b"b")).result(SECONDS).offset == 1
        assert cluster.opened > before


# ------------------------------------------------------------------------------------- its ends
