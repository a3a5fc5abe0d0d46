"""The clients of a run: each is a process that writes or reads, and records its messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from kafka08.client.cluster import ClusterClient
from kafka08.consumer.simple import SimpleConsumer
from kafka08.errors import KafkaError, OffsetOutOfRange
from kafka08.producer.kafka_producer import KafkaProducer
from kafka08.producer.kafka_producer_config import KafkaProducerConfig
from kafka08.producer.old.config import ProducerConfig
from kafka08.producer.old.producer import Producer
from kafka08.producer.record import KeyedMessage, ProducerRecord, RecordMetadata
from kafka08.simulation.history import History
from kafka08.simulation.runtime import SimClientRuntime
from kafka08.structs import TopicPartition

TOPIC: Final = "t"
"""The topic of all clients."""
POLL_SECONDS: Final = 0.05
TIMEOUT_MS: Final = 4000
FETCH_WAIT_MS: Final = 1000
"""A fetch is answered at once when there are messages; a shorter wait makes idle runs slow."""


@dataclass
class Observed:
    """The sends and reads of all clients.

    stored       values whose `send` of the old producer returned, which has no offsets
    leftovers    a sentence for each buffer that a closed producer had not emptied
    is_ending    whether writers must stop
    """

    history: History
    stored: list[bytes] = field(default_factory=list)
    leftovers: list[str] = field(default_factory=list)
    is_ending: bool = False
    writers: int = 0
    """The number of writers that have not ended."""


@dataclass(frozen=True)
class Target:
    """The addresses of the cluster, and the partitions that clients write and read."""

    bootstrap: Sequence[tuple[str, int]]
    zookeeper: str
    partitions: Sequence[TopicPartition]

    @property
    def broker_list(self) -> str:
        return ",".join(f"{host}:{port}" for host, port in self.bootstrap)


def new_producer(
    runtime: SimClientRuntime,
    target: Target,
    observed: Observed,
    *,
    retries: int,
    in_flight: int,
    pause: float,
) -> None:
    """Write with a KafkaProducer until the run ends."""
    config = KafkaProducerConfig(
        {
            "bootstrap.servers": target.broker_list,
            "acks": "all",
            "retries": retries,
            "max.in.flight.requests.per.connection": in_flight,
            "request.timeout.ms": TIMEOUT_MS,
            "timeout.ms": TIMEOUT_MS // 2,
            "max.block.ms": TIMEOUT_MS,
            "linger.ms": runtime.random.choice([0, 5]),
            "reconnect.backoff.ms": runtime.random.choice([10, 100]),
        }
    )
    name = runtime.process.name
    producer = KafkaProducer(config, runtime=runtime)
    number = 0
    completed: Counter[bytes] = Counter()
    while not observed.is_ending:
        tp = runtime.random.choice(target.partitions)
        value = f"{name}/{number}".encode()
        number += 1
        note = _noted(observed.history, name, tp, value, completed)
        observed.history.unknown(tp, value)
        producer.send(ProducerRecord(tp.topic, value, partition=tp.partition), note)
        runtime.sleep(runtime.random.random() * 2 * pause)
    producer.close()
    if reserved := config.buffer_memory - producer.free_bytes:
        observed.leftovers.append(f"{name} has closed, but reserves {reserved} bytes of its buffer")
    if completed.total() != number or len(completed) != number:
        observed.leftovers.append(
            f"{name} has closed and called the callbacks of {len(completed)} of {number} messages, "
            f"{completed.total()} times"
        )
    observed.writers -= 1


def _noted(
    history: History, name: str, tp: TopicPartition, value: bytes, completed: Counter[bytes]
) -> Callable[[RecordMetadata | None, KafkaError | None], None]:
    def note(metadata: RecordMetadata | None, error: KafkaError | None) -> None:
        completed[value] += 1
        if metadata is not None:
            history.acknowledged(name, tp, metadata.offset, value)

    return note


def old_producer(
    runtime: SimClientRuntime, target: Target, observed: Observed, *, pause: float
) -> None:
    """Write with a synchronous Producer of 0.8 until the run ends."""
    config = ProducerConfig(
        {
            "metadata.broker.list": target.broker_list,
            "request.required.acks": -1,
            "request.timeout.ms": TIMEOUT_MS,
            "message.send.max.retries": 1,
        }
    )
    name = runtime.process.name
    producer = Producer(config, partitioner=_by_key, runtime=runtime)
    number = 0
    while not observed.is_ending:
        value = f"{name}/{number}".encode()
        number += 1
        for tp in target.partitions:
            observed.history.unknown(tp, value)
        try:
            producer.send(KeyedMessage(TOPIC, value, partition_key=number))
        except KafkaError:
            runtime.sleep(POLL_SECONDS)
        else:
            observed.stored.append(value)
        runtime.sleep(runtime.random.random() * 2 * pause)
    producer.close()
    observed.writers -= 1


def async_producer(
    runtime: SimClientRuntime, target: Target, observed: Observed, *, pause: float
) -> None:
    """Write with an asynchronous Producer of 0.8 until the run ends. It does not
    report which messages were stored."""
    config = ProducerConfig(
        {
            "metadata.broker.list": target.broker_list,
            "producer.type": "async",
            "request.required.acks": runtime.random.choice([0, 1, -1]),
            "request.timeout.ms": TIMEOUT_MS,
            "queue.buffering.max.ms": runtime.random.choice([10, 1000]),
            "queue.buffering.max.messages": 100,
            "queue.enqueue.timeout.ms": runtime.random.choice([0, 100, -1]),
            "batch.num.messages": runtime.random.choice([1, 50]),
        }
    )
    name = runtime.process.name
    producer = Producer(config, partitioner=_by_key, runtime=runtime)
    number = 0
    while not observed.is_ending:
        value = f"{name}/{number}".encode()
        number += 1
        for tp in target.partitions:
            observed.history.unknown(tp, value)
        with suppress(KafkaError):
            producer.send(KeyedMessage(TOPIC, value, partition_key=number))
        runtime.sleep(runtime.random.random() * 2 * pause)
    producer.close()
    if waiting := producer.metrics()["ProducerSendThread"]["ProducerQueueSize"]:
        observed.leftovers.append(f"{name} has closed, but its queue has {waiting:.0f} messages")
    observed.writers -= 1


def _by_key(key: int, count: int) -> int:
    # A broker that has just started may know only some of the partitions.
    return key % count


class Reader:
    """Reads one partition from offset 0 with SimpleConsumers, always from its leader."""

    def __init__(
        self, runtime: SimClientRuntime, target: Target, history: History, tp: TopicPartition
    ) -> None:
        self.position = 0
        self.is_ending = False
        """Set it to end `run`."""
        self.has_ended = False
        self._runtime = runtime
        self._history = history
        self._tp = tp
        self._cluster = ClusterClient(
            target.bootstrap, client_id=runtime.process.name, timeout_ms=TIMEOUT_MS, runtime=runtime
        )
        self._consumer: SimpleConsumer | None = None

    def run(self) -> None:
        while not self.is_ending:
            try:
                self._read_on()
            except OffsetOutOfRange:
                # A log that lost messages may end before the position; the checks report that.
                self._runtime.sleep(POLL_SECONDS)
            except KafkaError:
                self._close_consumer()
                self._runtime.sleep(POLL_SECONDS)
        self._close_consumer()
        self._cluster.close()
        self.has_ended = True

    def _read_on(self) -> None:
        if self._consumer is None:
            self._cluster.refresh([self._tp.topic])
            leader = self._cluster.leader(self._tp)
            self._consumer = SimpleConsumer(
                leader.host, leader.port, TIMEOUT_MS, runtime=self._runtime
            )
        fetched = self._consumer.fetch(
            self._tp, self.position, max_wait_ms=FETCH_WAIT_MS, min_bytes=1
        )
        for message in fetched:
            assert message.value is not None
            self._history.record_read(
                self._runtime.process.name, self._tp, message.offset, message.value
            )
            self.position = message.offset + 1

    def _close_consumer(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None


def read_partition(
    runtime: SimClientRuntime, target: Target, tp: TopicPartition
) -> dict[int, bytes]:
    """All readable messages of a partition: offset → value. Raises KafkaError."""
    cluster = ClusterClient(target.bootstrap, timeout_ms=TIMEOUT_MS, runtime=runtime)
    try:
        cluster.refresh([tp.topic])
        leader = cluster.leader(tp)
    finally:
        cluster.close()
    consumer = SimpleConsumer(leader.host, leader.port, TIMEOUT_MS, runtime=runtime)
    try:
        return {message.offset: message.value or b"" for message in consumer.read_range(tp, 0)}
    finally:
        consumer.close()
