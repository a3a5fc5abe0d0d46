"""Batches grow while their partition cannot be sent, and are sent in halves if they are too large
for their topic."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kafka08.errors import FailedToSend, KafkaError, MessageSizeTooLarge, NotLeaderForPartition
from kafka08.format import batches
from kafka08.levels import Level
from kafka08.producer import KafkaProducer, ProducerRecord, RecordMetadata
from kafka08.producer.accumulator import RecordAccumulator
from kafka08.producer.idempotence import Idempotence, Identity
from kafka08.producer.partition_queue import PartitionQueue
from kafka08.protocol import message_set
from kafka08.runtime.threads import ThreadRuntime
from kafka08.structs import Broker
from tests.producer.producers import SECONDS, U0, config_on, values
from tests.producer.tcp_cluster import TcpCluster
from tests.waiting import until

LEADER = Broker(1, "b1", 9092)
BATCH, GROWN, MEMORY = 1000, 4000, 50_000
SENT = [b"%03d" % n + b"x" * 40 for n in range(100)]


@pytest.fixture
def cluster() -> Iterator[TcpCluster]:
    """Two brokers of 0.11; 2 leads [u,0]."""
    with TcpCluster({"t": {0: 1, 1: 2}, "u": {0: 2}}) as cluster:
        cluster.levels = dict.fromkeys(cluster.levels, Level.V0_11_0)
        cluster.is_later = True
        yield cluster


def producer_on(cluster: TcpCluster, **keys: Any) -> KafkaProducer:
    """One that sends what a flush ends."""
    usual: dict[str, Any] = {
        "api_version_request": True,
        "enable_idempotence": True,
        "reconnect_backoff_ms": 5,
        "linger_ms": 60_000,
    }
    return KafkaProducer(config_on(cluster, **{**usual, **keys}))


# ------------------------------------------------------------------------------------ growing


def accumulator_of(
    magic: int, idempotence: Idempotence = Idempotence.WANTED
) -> tuple[RecordAccumulator, PartitionQueue]:
    accumulator = RecordAccumulator(
        batch_size=BATCH,
        grown_size=GROWN,
        buffer_memory=MEMORY,
        linger_s=60,
        codec=0,
        ordered=False,
        on_batch=lambda: None,
        runtime=ThreadRuntime(),
        idempotence=idempotence,
    )
    accumulator.new_magic = magic
    with accumulator.lock:
        queue = accumulator.queue(U0)
        accumulator.set_leader(queue, LEADER)
    if queue.sequences is not None:
        queue.sequences.identity = Identity(7, 0)
    return accumulator, queue


def fill(accumulator: RecordAccumulator, queue: PartitionQueue, count: int) -> list[Any]:
    """The batches of so many records of 100 bytes."""
    return [
        accumulator.append(queue, None, b"x" * 100, 126, None, -1, 0).owner for _ in range(count)
    ]


def drained(accumulator: RecordAccumulator, now: float, magic: int = 2) -> list[int]:
    """The numbers of records in the batches that are sent now to one leader."""
    with accumulator.lock:
        accumulator.ready(now)
        taken = accumulator.drain(LEADER, 1 << 20, now, magic)[0]
    return [batch.count for parts in taken for batch in parts]


def test_a_batch_grows_while_an_earlier_one_waits() -> None:
    """To twice its size, up to the largest one. The first of its partition does not, for it is sent
    as soon as it is full. The memory that it takes is reserved, and free once it is done."""
    accumulator, queue = accumulator_of(2)
    owners = fill(accumulator, queue, 200)
    sizes = [batch.reserved for batch in dict.fromkeys(owners)]
    assert sizes[:2] == [BATCH, GROWN]
    assert set(sizes[1:-1]) == {GROWN}
    assert accumulator.free_bytes == MEMORY - sum(sizes)
    accumulator.complete(dict.fromkeys(owners))
    assert accumulator.free_bytes == MEMORY


def test_a_grown_batch_does_not_linger() -> None:
    """It was full before it grew. The first one in its place lingers again."""
    accumulator, queue = accumulator_of(2)
    now = fill(accumulator, queue, 20)[0].created
    assert drained(accumulator, now) == [8]
    assert queue.open.is_grown
    assert drained(accumulator, now) == [12]
    fill(accumulator, queue, 1)
    assert drained(accumulator, now) == []


@pytest.mark.parametrize(
    ("magic", "idempotence"),
    [(0, Idempotence.WANTED), (1, Idempotence.WANTED), (2, Idempotence.OFF), (2, None)],
)
def test_other_batches_do_not_grow(magic: int, idempotence: Idempotence | None) -> None:
    """Those of older formats are joined when they are sent; without sequences, or before one was
    given, one that is too large could not be sent in halves in its order."""
    accumulator, queue = accumulator_of(magic, idempotence or Idempotence.WANTED)
    if queue.sequences is not None and idempotence is None:
        queue.sequences.identity = None
    assert {batch.reserved for batch in fill(accumulator, queue, 100)} == {BATCH}


@pytest.mark.parametrize(("batch_size", "largest"), [(16_384, 131_072), (8_000, 8_000)])
def test_batches_behind_a_slow_broker_are_large(
    cluster: TcpCluster, batch_size: int, largest: int
) -> None:
    """A hundred thousand records that wait for it are sent in batches of up to 128 KB, in their
    order; with a batch.size below the default in such as were asked for."""
    sent = [b"%d" % number for number in range(100_000)]
    with producer_on(cluster, batch_size=batch_size, linger_ms=0) as producer:
        producer.send(ProducerRecord("u", b"first")).result(SECONDS)
        cluster.pause(2)
        for value in sent:
            producer.send(ProducerRecord("u", value))
        cluster.resume(2)
        producer.flush(SECONDS)
    assert values(cluster, U0) == [b"first", *sent]
    assert largest * 0.99 < max(map(len, sets(cluster))) <= largest


# ---------------------------------------------------------------------------------- too large


def sets(cluster: TcpCluster) -> list[bytes]:
    """Those that arrived, and were not too large."""
    return [
        bytes(part.message_set)
        for request in cluster.produced()
        for topic in request.topics
        for part in topic.partitions
        if not 0 < cluster.largest < len(part.message_set)
    ]


@pytest.mark.parametrize("keys", [{}, {"compression_type": "gzip"}])
def test_a_batch_that_is_too_large_is_sent_in_halves(
    cluster: TcpCluster, keys: dict[str, Any]
) -> None:
    """Each record is stored once and in order, with its time and its headers; futures and callbacks
    have its own offset."""
    called: list[tuple[RecordMetadata | None, KafkaError | None]] = []
    cluster.largest = 200 if "compression_type" in keys else 1500
    with producer_on(cluster, **keys) as producer:
        futures = [
            producer.send(
                ProducerRecord("u", value, b"k", timestamp=5000 - n, headers=[("h", b"%d" % n)]),
                lambda *result: called.append(result),
            )
            for n, value in enumerate(SENT)
        ]
        producer.flush(SECONDS)
    expected = [RecordMetadata("u", 0, n, 5000 - n) for n in range(len(SENT))]
    assert [future.result(0) for future in futures] == expected
    assert called == [(one, None) for one in expected]
    assert "at 7+" not in repr(futures[99])
    stored = [one for data in sets(cluster) for one in message_set.decode(data)]
    assert [(one.value, one.timestamp, one.headers) for one in stored] == [
        (value, 5000 - n, (("h", b"%d" % n),)) for n, value in enumerate(SENT)
    ]


def test_without_sequences_a_batch_that_is_too_large_fails(cluster: TcpCluster) -> None:
    """Those behind it may be stored already, and the order of records would change."""
    cluster.largest = 1500
    with producer_on(cluster, enable_idempotence=False) as producer:
        future = producer.send_many("u", SENT)
        [(places, error)] = future.failures(SECONDS)
    assert len(places) == len(SENT)
    assert isinstance(error, MessageSizeTooLarge)
    assert values(cluster, U0) == []


def test_a_record_that_is_too_large_fails_alone(cluster: TcpCluster) -> None:
    """The others of its batch are stored, of `send` as of `send_many`, whose result names it."""
    sent = [*SENT[:30], b"y" * 1000, *SENT[30:]]
    cluster.largest = 500
    with producer_on(cluster, linger_ms=0) as producer:
        many = producer.send_many("u", sent)
        [(places, error)] = many.failures(SECONDS)
        assert list(places) == [30]
        assert isinstance(error, MessageSizeTooLarge)
        assert values(cluster, U0) == SENT
        futures = [producer.send(ProducerRecord("u", value)) for value in sent]
        producer.flush(SECONDS)
    assert [n for n, one in enumerate(futures) if one.exception(0) is not None] == [30]
    offsets = [future.result(0).offset for n, future in enumerate(futures) if n != 30]
    assert offsets == list(range(100, 200))
    assert values(cluster, U0) == SENT + SENT


def test_many_records_in_halves_have_their_places(cluster: TcpCluster) -> None:
    """The result of a call names the offsets of all."""
    cluster.largest = 1500
    with producer_on(cluster, linger_ms=0) as producer:
        stored = producer.send_many("u", SENT).result(SECONDS)
    assert len(stored) > 1
    offsets = {place: one.offset + n for one in stored for n, place in enumerate(one.places)}
    assert offsets == {n: n for n in range(len(SENT))}


def test_halves_keep_their_sequences(cluster: TcpCluster) -> None:
    """A lost response, and a refusal that passes, store none of them twice."""
    cluster.largest = 1500
    with producer_on(cluster, retry_backoff_ms=5, linger_ms=0) as producer:
        producer.send(ProducerRecord("u", b"first")).result(SECONDS)
        cluster.refuse(U0, 0, NotLeaderForPartition.code)
        futures = [producer.send(ProducerRecord("u", value)) for value in SENT]
        cluster.cut(-1, 0, 0)
        producer.flush(SECONDS)
    assert [future.result(0).offset for future in futures] == list(range(1, 101))
    assert values(cluster, U0) == [b"first", *SENT]
    assert {batch.producer_epoch for data in sets(cluster) for batch in batches(data)} == {0}


def test_a_close_names_the_records_of_halves(cluster: TcpCluster) -> None:
    """Those that were not stored are in its error, each once."""
    cluster.refuse(U0, MessageSizeTooLarge.code, 0, NotLeaderForPartition.code)
    producer = producer_on(cluster, retry_backoff_ms=1000 * SECONDS)
    future = producer.send_many("u", SENT)
    until(lambda: len(cluster.produced()) == 3)
    with pytest.raises(FailedToSend) as raised:
        producer.close(0.2)
    left: tuple[Any, ...] = raised.value.messages
    assert [record.value for record in left] == SENT[50:]
    assert [list(places) for places, _ in future.failures(SECONDS)] == [list(range(50, 100))]
