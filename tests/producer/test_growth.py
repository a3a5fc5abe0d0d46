"""What a KafkaProducer does for one record, thread or topic does not grow with the others."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from kafka08.errors import BufferExhausted
from kafka08.producer import KafkaProducer, ProducerRecord
from kafka08.producer.accumulator import RecordAccumulator
from kafka08.producer.partition_queue import PartitionQueue
from kafka08.protocol.metadata import MetadataRequest
from kafka08.runtime.interface import Condition, Lock
from kafka08.runtime.threads import ThreadRuntime
from kafka08.structs import Broker, TopicPartition
from tests.mock_clock import MockClock
from tests.operations import lines_run
from tests.producer.producers import SECONDS, config_on, producer_on, values
from tests.producer.tcp_cluster import TcpCluster
from tests.waiting import until

LEADER = Broker(1, "b1", 9092)
BATCH = 100


class CountingRuntime(ThreadRuntime):
    """Counts how often a thread wakes up from a condition."""

    woken = 0

    def condition(self, lock: Lock | None = None) -> Condition:
        made: Any = super().condition(lock)
        wait = made.wait

        def counted(timeout: float | None = None) -> bool:
            notified: bool = wait(timeout)
            self.woken += 1
            return notified

        made.wait = counted
        return made  # type: ignore[no-any-return]


def accumulator_with(
    partitions: int, **keys: Any
) -> tuple[RecordAccumulator, list[PartitionQueue]]:
    """All partitions have one leader."""
    defaults: dict[str, Any] = {"buffer_memory": 1 << 24, "linger_s": 0.0}
    keys = defaults | {"runtime": ThreadRuntime()} | keys
    accumulator = RecordAccumulator(
        batch_size=BATCH, codec=0, ordered=False, on_batch=lambda: None, **keys
    )
    with accumulator.lock:
        queues = [accumulator.queue(TopicPartition("t", n)) for n in range(partitions)]
        for queue in queues:
            accumulator.set_leader(queue, LEADER)
    return accumulator, queues


def append(
    accumulator: RecordAccumulator, queue: PartitionQueue, size: int = 30, block_s: float = SECONDS
) -> Any:
    return accumulator.append(queue, None, b"x" * (size - 26), size, None, -1, block_s).owner


def turn(accumulator: RecordAccumulator, now: float, max_bytes: int = 1 << 20) -> int:
    """What the sender does with the accumulator for one request; the number of its partitions."""
    with accumulator.lock:
        ready = accumulator.ready(now)
        drained = accumulator.drain(LEADER, max_bytes, now)[0] if ready.leaders else []
    for batches in drained:
        accumulator.complete(batches, 0, were_in_flight=True)
    return len(drained)


def test_freed_memory_wakes_one_thread() -> None:
    """Of many threads that wait for memory, the memory of one batch wakes one. All woke up, and
    all but one waited again: 64 threads took 80 times the CPU of one."""
    runtime = CountingRuntime()
    accumulator, (queue,) = accumulator_with(1, buffer_memory=BATCH, runtime=runtime)
    full = append(accumulator, queue, BATCH)
    done: list[Any] = []
    threads = [
        threading.Thread(target=lambda: done.append(append(accumulator, queue, BATCH)), daemon=True)
        for _ in range(16)
    ]
    for thread in threads:
        thread.start()
    until(lambda: len(accumulator._waiting) == len(threads))
    for number in range(len(threads)):
        accumulator.complete([full])
        until(lambda number=number: len(done) == number + 1)  # type: ignore[misc]
        assert runtime.woken == number + 1
        full = done[-1]


def test_a_thread_that_need_not_wait_does_not() -> None:
    """While others wait, a thread goes on with memory that the first of them does not need, and
    leaves it that. It waited behind them: with 64 threads each record took a switch of threads."""
    accumulator, (queue, other) = accumulator_with(2, buffer_memory=10 * BATCH)
    full = [append(accumulator, queue, BATCH) for _ in range(8)]
    large = threading.Thread(target=append, args=(accumulator, queue, 4 * BATCH), daemon=True)
    large.start()
    until(lambda: len(accumulator._waiting) == 1)
    accumulator.complete(full[:1])
    with pytest.raises(BufferExhausted):
        append(accumulator, other, BATCH, 0.001)
    with accumulator.lock:  # the thread that waits cannot go on yet
        accumulator._release(2 * BATCH)
        assert not accumulator._reserve(other, BATCH, SECONDS)
        assert len(accumulator._waiting) == 1
    large.join(SECONDS)
    assert not large.is_alive()
    accumulator.complete(full[1:])


@pytest.mark.parametrize("linger_s", [0.0, 1.0])
def test_a_turn_sees_what_is_ready(linger_s: float) -> None:
    """A turn of the sender for a batch of one partition costs the same with ten partitions and with
    a thousand that have nothing to send. It looked at each of them, twice."""

    def cost(partitions: int) -> int:
        accumulator, queues = accumulator_with(partitions, linger_s=linger_s)
        created = append(accumulator, queues[partitions // 2]).created
        assert turn(accumulator, created + linger_s / 2) == (linger_s == 0)
        append(accumulator, queues[partitions // 3])
        return lines_run(lambda: turn(accumulator, created + 2 * linger_s + 9))

    assert cost(1000) == cost(10)


def test_requests_share_what_is_ready() -> None:
    """With a batch in each of many partitions, a request costs what it takes: it does not look at
    those for which it has no room."""

    def cost(partitions: int) -> float:
        accumulator, queues = accumulator_with(partitions)
        for queue in queues:
            now = append(accumulator, queue).created

        def send_all() -> None:
            left = partitions
            while left:
                sent = turn(accumulator, now, max_bytes=10 * BATCH)
                assert sent == 10
                left -= sent

        return lines_run(send_all) / partitions

    assert cost(1000) < 1.1 * cost(50)


def test_lingering_batches_are_forgotten_when_they_are_full() -> None:
    """A long linger does not collect an entry for each batch that was sent because it was full."""
    accumulator, (queue, other) = accumulator_with(2, linger_s=1e6)
    append(accumulator, other)
    for _ in range(5000):
        now = append(accumulator, queue, 60).created
        append(accumulator, queue, 60)
        turn(accumulator, now)
    assert len(accumulator._ready._lingering._entries) < 1500


def test_a_batch_lingers_from_its_own_beginning() -> None:
    """A partition whose first batch was sent is due when its second one has lingered, although
    batches of others began later."""
    clock = MockClock()
    accumulator, queues = accumulator_with(2, linger_s=10.0, runtime=ThreadRuntime(clock=clock))
    append(accumulator, queues[0], 90)
    append(accumulator, queues[0], 90)
    clock.advance(5)
    append(accumulator, queues[1])
    with accumulator.lock:
        accumulator.ready(clock.monotonic())
        assert len(accumulator.drain(LEADER, 1 << 20, clock.monotonic())[0]) == 1
        assert accumulator.ready(clock.monotonic()).wait_s == 5
        assert accumulator.ready(clock.monotonic() + 5).leaders == [LEADER]


def metadata_requests(cluster: TcpCluster) -> list[list[str] | None]:
    return [request.topics for _, request in cluster.asked if isinstance(request, MetadataRequest)]


def test_a_new_topic_is_requested_alone_and_at_once() -> None:
    """The first record of each topic asks for its metadata alone, without the backoff. It waited
    100 ms, and asked for all topics that the producer knew."""
    topics = [f"t{number}" for number in range(20)]
    with (
        TcpCluster({topic: {0: 1} for topic in topics}) as cluster,
        producer_on(cluster, retry_backoff_ms=1000 * SECONDS) as producer,
    ):
        for topic in topics:
            producer.send(ProducerRecord(topic, b"1")).result(SECONDS)
        assert metadata_requests(cluster) == [[topic] for topic in topics]


def test_a_metadata_response_applies_its_own_topics(cluster: TcpCluster) -> None:
    """Metadata of one topic does not touch the routes of all."""
    with producer_on(cluster) as producer:
        producer.partitions_for("t")
        route = producer._routes.by_topic["t"]
        producer.partitions_for("u")
        assert producer._routes.by_topic["t"] is route


def test_a_partition_is_found_by_its_number() -> None:
    """`send` with a serializer and a partition costs the same for any number of partitions. It
    looked for it in all."""

    def cost(producer: KafkaProducer, topic: str, partition: int) -> int:
        record = ProducerRecord(topic, b"x", partition=partition)
        producer.send(record).result(SECONDS)
        return lines_run(lambda: producer.send(record))

    with TcpCluster({"few": {0: 1}, "many": dict.fromkeys(range(500), 1)}) as cluster:
        config = config_on(cluster, linger_ms=0)
        with KafkaProducer(config, value_serializer=lambda topic, value: value) as producer:
            assert cost(producer, "many", 499) == cost(producer, "few", 0)


def test_a_column_of_partitions_is_read_once() -> None:
    """`send_columns` groups its rows by partition in one pass: what it does for each partition is
    the same for ten as for a hundred. It compared each row with each partition."""
    pyarrow = pytest.importorskip("pyarrow")
    from kafka08.producer import arrow_columns

    taken: list[int] = []

    class Rows:
        """Counts the passes over the rows."""

        def __init__(self, rows: Any) -> None:
            self._rows = rows

        def __getattr__(self, name: str) -> Any:
            return getattr(self._rows, name)

        def take(self, chosen: Any) -> Any:
            taken.append(len(chosen))
            return self._rows.take(chosen)

    rows = pyarrow.record_batch(
        {"value": [b"%d" % n for n in range(1000)], "partition": [n % 100 for n in range(1000)]}
    )
    with (
        TcpCluster({"t": dict.fromkeys(range(100), 1)}) as cluster,
        producer_on(cluster) as producer,
    ):
        route = producer._routes.find("t")
        bulk = producer._bulk()
        arrow_columns.add_columns(bulk, route, lambda n: route.by_number[n], Rows(rows), None)
        producer.flush(SECONDS)
        assert taken == [1000]
        assert values(cluster, TopicPartition("t", 7)) == [b"%d" % n for n in range(7, 1000, 100)]


@pytest.mark.parametrize(("is_since_append", "at"), [(True, 10), (False, 19)])
def test_the_time_of_a_delivery_includes_its_attempts(is_since_append: bool, at: int) -> None:
    """delivery.timeout.ms counts from the append. Without it a wait for a leader begins with each
    attempt: it took twice the time of a delivery at worst."""
    clock = MockClock()
    accumulator, [queue] = accumulator_with(1, runtime=ThreadRuntime(clock=clock))
    batch = append(accumulator, queue)
    began = batch.created
    clock.advance(9)
    with accumulator.lock:
        assert accumulator.ready(clock.monotonic()).leaders == [LEADER]
        accumulator.drain(LEADER, 1 << 20, clock.monotonic())
    batch.attempts, batch.retry_at = 1, clock.monotonic()
    accumulator.put_back([batch])
    for second in (at - 1, at):
        with accumulator.lock:
            accumulator.ready(clock.monotonic())
        before = began + second - 10
        found = accumulator.take_overdue(before, (), is_since_append=is_since_append)
        assert found == ([batch] if second == at else [])
