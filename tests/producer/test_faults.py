"""KafkaProducer under faults: its futures are right, the order is kept where it is promised, and no
memory leaks.

A record whose future succeeded is in the log at the offset in the future. Retries may store a
record twice, and the tests count how often."""

from __future__ import annotations

import gc
import random
import threading
from collections.abc import Iterator

import pytest

from kafka08.errors import ConnectionFailed, NotLeaderForPartition, RequestTimedOut
from kafka08.producer import KafkaProducer, ProducerRecord
from kafka08.producer.batch import Callback
from kafka08.producer.future import RecordFuture
from kafka08.structs import TopicPartition
from tests.producer.producers import SECONDS, producer_on
from tests.producer.tcp_cluster import TcpCluster

RESPONSE_BYTES = 4 + 4 + 4 + 2 + 1 + 4 + 4 + 2 + 8
"""Of a Produce response about one partition of a topic with a name of one letter."""
MANY_RETRIES = 1_000_000


@pytest.fixture
def cluster() -> Iterator[TcpCluster]:
    with TcpCluster({"t": {0: 1, 1: 2, 2: 1, 3: 2}}) as cluster:
        yield cluster


def check_futures(cluster: TcpCluster, sent: list[tuple[bytes, RecordFuture]]) -> int:
    """Checks that every future succeeded and is right. Returns how many records are stored more
    than once."""
    results = [future.result(SECONDS) for _, future in sent]
    logs = {tp: [value for _, value in cluster.messages(tp)] for tp in cluster.leaders}
    for (value, _), told in zip(sent, results, strict=True):
        assert logs[TopicPartition(told.topic, told.partition)][told.offset] == value
    return sum(map(len, logs.values())) - len(sent)


@pytest.mark.parametrize("in_flight", [1, 5])
def test_a_connection_cut_at_every_byte_of_a_response(cluster: TcpCluster, in_flight: int) -> None:
    """With acks=-1 and retries every record is stored, and once more for each response that was
    lost. Its future has the offset of the acknowledged copy."""
    sent: list[tuple[bytes, RecordFuture]] = []
    with producer_on(
        cluster,
        acks="-1",
        retries=MANY_RETRIES,
        retry_backoff_ms=1,
        reconnect_backoff_ms=1,
        max_in_flight_requests_per_connection=in_flight,
    ) as producer:
        for size in range(RESPONSE_BYTES):
            cluster.cut(size)
            value = b"cut after %d" % size
            sent.append((value, producer.send(ProducerRecord("t", value, partition=0))))
            sent[-1][1].result(SECONDS)
        duplicates = check_futures(cluster, sent)
        assert producer.free_bytes == producer.config.buffer_memory
    assert cluster.response_sizes == {RESPONSE_BYTES}
    assert duplicates == RESPONSE_BYTES


@pytest.mark.parametrize("size", [-1, 0, 20])
def test_without_retries_the_future_fails(cluster: TcpCluster, size: int) -> None:
    """Without retries the future has ConnectionFailed, since the record may or may not be stored.
    The next record succeeds."""
    with producer_on(cluster, acks="-1") as producer:
        producer.partitions_for("t")
        cluster.cut(size)
        error = producer.send(ProducerRecord("t", b"a", partition=0)).exception(SECONDS)
        assert isinstance(error, ConnectionFailed)
        stored = len(cluster.messages(TopicPartition("t", 0)))
        assert stored == (0 if size < 0 else 1)
        assert (
            producer.send(ProducerRecord("t", b"b", partition=0)).result(SECONDS).offset == stored
        )


@pytest.mark.parametrize("seed", range(3))
def test_one_request_in_flight_keeps_the_order(cluster: TcpCluster, seed: int) -> None:
    """With one request in flight, refusals, cuts and moves of the leader keep the order: first
    copies and acknowledged offsets follow the order of the calls."""
    rng = random.Random(seed)
    sent: list[tuple[bytes, RecordFuture]] = []
    with producer_on(
        cluster,
        acks="-1",
        retries=MANY_RETRIES,
        retry_backoff_ms=1,
        reconnect_backoff_ms=1,
        batch_size=200,
        max_in_flight_requests_per_connection=1,
    ) as producer:
        for n in range(600):
            if n % 20 == 0:
                make_trouble(cluster, rng)
            value = b"%d" % n
            sent.append((value, producer.send(ProducerRecord("t", value, partition=n % 4))))
        producer.flush(SECONDS)
        cluster.cuts.clear()
        check_futures(cluster, sent)
    for partition in range(4):
        log = [value for _, value in cluster.messages(TopicPartition("t", partition))]
        expected = [value for value, future in sent if future.result().partition == partition]
        assert list(dict.fromkeys(log)) == expected
        offsets = [f.result().offset for _, f in sent if f.result().partition == partition]
        assert offsets == sorted(offsets)


def make_trouble(cluster: TcpCluster, rng: random.Random) -> None:
    """Makes one fault: a refusal, a cut, or a leader that moves."""
    tp = TopicPartition("t", rng.randrange(4))
    kind = rng.randrange(3)
    if kind == 0:
        code = rng.choice([NotLeaderForPartition.code, RequestTimedOut.code])
        cluster.refuse(tp, *[code] * rng.randint(1, 3))
    elif kind == 1:
        cluster.cut(rng.randint(-1, RESPONSE_BYTES - 1))
    else:
        cluster.leaders[tp] = 3 - cluster.leaders[tp]


def test_a_leader_that_dies(cluster: TcpCluster) -> None:
    """After its leader stops, a partition gets the other broker as leader, and no record is
    lost."""
    sent: list[tuple[bytes, RecordFuture]] = []
    with producer_on(cluster, acks="-1", retries=MANY_RETRIES, batch_size=200) as producer:
        for n in range(400):
            if n == 200:
                cluster.down(1)
                cluster.leaders = dict.fromkeys(cluster.leaders, 2)
            value = b"%d" % n
            sent.append((value, producer.send(ProducerRecord("t", value))))
        check_futures(cluster, sent)


def test_nothing_leaks_under_random_faults(cluster: TcpCluster) -> None:
    """While thousands of batches succeed or fail at random, all of buffer.memory is released, no
    batch is kept, and every callback is called exactly once."""
    rng = random.Random(7)
    told: list[int] = []
    lock = threading.Lock()
    with producer_on(
        cluster,
        acks="-1",
        retries=2,
        retry_backoff_ms=1,
        reconnect_backoff_ms=1,
        batch_size=100,
        buffer_memory=20_000,
        linger_ms=1,
    ) as producer:

        def run(first: int) -> None:
            for n in range(first, first + 2000):
                if n % 50 == 0:
                    make_trouble(cluster, rng)
                producer.send(ProducerRecord("t", b"%0*d" % (n % 90, n)), note(n))

        def note(n: int) -> Callback:
            def called(*_: object) -> None:
                with lock:
                    told.append(n)

            return called

        threads = [threading.Thread(target=run, args=(k * 2000,)) for k in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(SECONDS)
        producer.flush(SECONDS)
        assert producer.free_bytes == 20_000
        assert producer._accumulator.incomplete_count == 0
    assert sorted(told) == list(range(6000))
    gc.collect()
    assert batches_alive() <= 1


def batches_alive() -> int:
    """The number of RecordBatch objects in this process, without the empty one."""
    from kafka08.producer.batch import RecordBatch

    return sum(isinstance(thing, RecordBatch) for thing in gc.get_objects()) - 1


def test_many_threads_share_a_producer(cluster: TcpCluster) -> None:
    """Each thread's records of a partition keep their order; none is lost or stored twice."""
    with producer_on(cluster, batch_size=300) as producer:

        def run(name: int) -> None:
            for n in range(500):
                producer.send(ProducerRecord("t", b"%d %d" % (name, n), partition=n % 4))

        threads = [threading.Thread(target=run, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(SECONDS)
    for partition in range(4):
        log = [value for _, value in cluster.messages(TopicPartition("t", partition)) if value]
        for name in range(4):
            numbers = [int(v.split()[1]) for v in log if v.startswith(b"%d " % name)]
            assert numbers == list(range(partition, 500, 4))
    assert isinstance(producer, KafkaProducer)
