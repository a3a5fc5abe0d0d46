"""What a KafkaProducer waits for, and in which order: memory, metadata, its own callbacks."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from kafka08.errors import BufferExhausted, RequestTimeout
from kafka08.producer import ProducerRecord
from kafka08.producer.accumulator import RecordAccumulator
from kafka08.runtime.threads import THREADS, ThreadRuntime
from kafka08.structs import TopicPartition
from tests.mock_clock import MockClock
from tests.producer.producers import SECONDS, T0, U0, producer_on, values
from tests.producer.tcp_cluster import TcpCluster
from tests.waiting import until


def test_a_callback_never_waits_for_its_own_thread(cluster: TcpCluster) -> None:
    """In a callback `flush` raises, and a record that finds no memory or no metadata fails at once:
    only this thread could get either. The producer stood still for max.block.ms, in `flush` for
    ever."""
    said: list[Any] = []
    ended = threading.Event()
    keys: dict[str, Any] = {"max_block_ms": 2000 * SECONDS, "linger_ms": 1000 * SECONDS}
    with producer_on(cluster, buffer_memory=1000, batch_size=500, **keys) as producer:

        def send(topic: str) -> Exception | None:
            future = producer.send(ProducerRecord(topic, b"x" * 400))
            return future.exception(0) if future.done() else None

        def callback(metadata: Any, error: Any) -> None:
            try:
                producer.flush()
            except RuntimeError as refused:
                said.append(refused)
            said.extend([send("u"), send("u"), send("u"), send("other")])
            ended.set()

        first = producer.send(ProducerRecord("u", b"first"), callback)
        producer.flush(SECONDS)
        assert first.result(SECONDS).offset == 0
        assert ended.wait(SECONDS)
    refused, stored, stored_too, no_memory, no_metadata = said
    assert "must not flush" in str(refused)
    assert (stored, stored_too) == (None, None)
    assert isinstance(no_memory, BufferExhausted)
    assert isinstance(no_metadata, RequestTimeout)
    assert "a callback cannot wait" in str(no_metadata)
    assert values(cluster, U0) == [b"first", *[b"x" * 400] * 2]


def test_memory_goes_to_those_who_wait_longest(cluster: TcpCluster) -> None:
    """Small records do not take the memory for which a large one waits, as in Java's BufferPool:
    among busy threads it would never get it."""
    accumulator = RecordAccumulator(
        batch_size=100,
        buffer_memory=1000,
        linger_s=0.0,
        codec=0,
        ordered=False,
        on_batch=lambda: None,
        runtime=THREADS,
    )
    with accumulator.lock:
        queue = accumulator.queue(T0)

    def append(size: int) -> Any:
        value = b"x" * (size - 26)
        return accumulator.append(queue, None, value, size, None, -1, SECONDS)

    full = [append(100).owner for _ in range(10)]
    large = threading.Thread(target=append, args=(900,), daemon=True)
    small = threading.Thread(target=append, args=(100,), daemon=True)
    large.start()
    until(lambda: len(accumulator._waiting) == 1)
    small.start()
    until(lambda: len(accumulator._waiting) == 2)
    for batch in full[:9]:
        accumulator.complete([batch])
    large.join(SECONDS)
    assert not large.is_alive()
    assert small.is_alive()
    accumulator.complete(full[9:])
    small.join(SECONDS)
    assert not small.is_alive()
    assert accumulator.free_bytes == 0


def test_batches_of_one_moment_keep_their_order() -> None:
    """Batches that were opened at the same tick of the clock are waited for, and returned when the
    producer gives up, in the order of their records. They were in the order of their addresses."""
    accumulator = RecordAccumulator(
        batch_size=100,
        buffer_memory=10_000,
        linger_s=0.0,
        codec=0,
        ordered=False,
        on_batch=lambda: None,
        runtime=ThreadRuntime(clock=MockClock()),
    )
    opened = []
    for number in range(60):
        with accumulator.lock:
            queue = accumulator.queue((U0, T0)[number % 2])
            queue.close_open()
        opened.append(accumulator.append(queue, None, b"x", 27, None, -1, 0.0).owner)
    assert accumulator.begin_flush() == opened
    assert accumulator.take_all() == opened[1::2] + opened[::2]


@pytest.mark.parametrize("many", [False, True])
def test_a_partition_that_was_just_added(cluster: TcpCluster, many: bool) -> None:
    """A record for a partition that the producer does not know yet is sent, after one more request
    for metadata. It failed until metadata.max.age.ms was over."""
    added = TopicPartition("u", 1)
    with producer_on(cluster) as producer:
        assert len(producer.partitions_for("u")) == 1
        cluster.leaders[added] = 1
        if many:
            producer.send_many("u", [b"a"], partition=1).result(SECONDS)
        else:
            producer.send(ProducerRecord("u", b"a", partition=1)).result(SECONDS)
    assert values(cluster, added) == [b"a"]
