"""A broker that cleans a log while it is read, written, and killed."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from kafka08 import kernel
from kafka08.consumer import SimpleConsumer
from kafka08.embedded import EmbeddedCluster
from kafka08.embedded.broker import EmbeddedBroker
from kafka08.log import checkpoint
from kafka08.log.check import check_log
from kafka08.network.connection import Connection
from kafka08.protocol.produce import (
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
    ProduceTopic,
)
from kafka08.structs import TopicPartition
from tests.waiting import until

TP = TopicPartition("compacted", 0)
KEYS = 500
MESSAGES_A_SET = 200
DEADLINE_S = 60.0
CONFIG = {
    "log.segment.bytes": "400000",
    "log.cleaner.backoff.ms": "50",
    # Slow enough to be watched: a pass over the log below takes seconds in small steps.
    "log.cleaner.io.buffer.size": "2000",
    "log.cleaner.io.max.bytes.per.second": "1000000",
    "log.segment.delete.delay.ms": "1000",
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(brokers=1, level="0.8.2", config=CONFIG) as cluster:
        cluster.create_topic(TP.topic, config={"cleanup.policy": "compact"})
        yield cluster


def produce(broker: EmbeddedBroker, first: int, sets: int) -> int:
    """Produce messages whose values are their numbers, with KEYS keys in turn. Returns the next
    number."""
    with Connection(broker.host, broker.port) as connection:
        for start in range(first, first + sets * MESSAGES_A_SET, MESSAGES_A_SET):
            numbers = range(start, start + MESSAGES_A_SET)
            data = kernel.build_set([(b"%d" % (n % KEYS), b"%080d" % n) for n in numbers])
            topic = ProduceTopic(TP.topic, [ProducePartition(TP.partition, data)])
            response = connection.send(ProduceRequest(1, 5000, [topic]))
            assert isinstance(response, ProduceResponse)
            assert 0 == response.topics[0].partitions[0].error_code
    return first + sets * MESSAGES_A_SET


def read_all(broker: EmbeddedBroker, end: int) -> dict[int, int]:
    """Offset → number of everything from the start to `end`, fetched as a consumer does."""
    found: dict[int, int] = {}
    offset = 0
    with SimpleConsumer(broker.host, broker.port) as consumer:
        while offset < end:
            messages = list(consumer.fetch(TP, offset).messages())
            assert messages, f"nothing at offset {offset} of {end}"
            found.update((message.offset, int(message.value or -1)) for message in messages)
            offset = messages[-1].offset + 1
    return found


def cleaned_up_to(broker: EmbeddedBroker) -> int:
    path = broker.log_dirs / "cleaner-offset-checkpoint"
    return checkpoint.parse(path.read_text()).get(TP, 0) if path.exists() else 0


def assert_all_there(found: dict[int, int], end: int) -> None:
    """Every message that is left is where it was, and the last of each key is left."""
    assert all(offset == number for offset, number in found.items())
    assert set(range(end - KEYS, end)) <= set(found)


def test_reads_and_writes_continue_while_a_log_is_cleaned(cluster: EmbeddedCluster) -> None:
    """A reader from the log's start gets no error and misses no key's last message during the whole
    pass. Superseded messages are gone at its end."""
    (broker,) = cluster.brokers
    end = produce(broker, 0, 100)
    reads = 0
    deadline = time.monotonic() + DEADLINE_S
    most = end * 4 // 5
    while cleaned_up_to(broker) < most:
        assert_all_there(read_all(broker, end), end)
        end = produce(broker, end, 1)
        reads += 1
        assert time.monotonic() < deadline
    assert reads > 1, "the pass was to take longer"
    cleaned = cleaned_up_to(broker)
    left = [offset for offset in read_all(broker, end) if offset < cleaned]
    assert len(left) <= KEYS


def test_a_broker_killed_while_it_cleans(cluster: EmbeddedCluster) -> None:
    """After kill -9 in the middle of a pass and a restart, no message is missing and the log is
    consistent."""
    (broker,) = cluster.brokers
    with SimpleConsumer(broker.host, broker.port) as consumer:
        end = consumer.earliest_or_latest(TP, -1)
    end = produce(broker, end, 100)
    directory = broker.partition_directory(*TP)
    until(lambda: list(directory.glob("*.cleaned")), "a pass")
    broker.kill()
    broker.start()
    cluster.await_ready()
    assert_all_there(read_all(broker, end), end)
    until(lambda: cleaned_up_to(broker) >= end * 4 // 5, "another pass")
    assert_all_there(read_all(broker, end), end)
    broker.stop()
    assert [] == check_log(directory)
