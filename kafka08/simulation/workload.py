"""The readers of a run, and what all its clients share. The writers are in `writers.py`, the
members of the group in `members.py`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kafka08.client.cluster import ClusterClient
from kafka08.client.requests import StorageName
from kafka08.consumer import MessageAndMetadata
from kafka08.consumer.partition_reader import FETCH_BYTES
from kafka08.consumer.simple import SimpleConsumer
from kafka08.errors import KafkaError, OffsetOutOfRange
from kafka08.simulation.history import History
from kafka08.simulation.runtime import SimClientRuntime
from kafka08.structs import TopicPartition

TOPIC: Final = "t"
"""The topic of all clients."""
POLL_S: Final = 0.05
TIMEOUT_MS: Final = 4000
FETCH_WAIT_MS: Final = 1000
"""A fetch is answered at once when there are messages; a shorter wait makes idle runs slow."""


KEYS: Final = 5
REFUSED_BYTES: Final = 3000
"""The topic's max.message.bytes in some runs: brokers refuse some large messages for good."""
SMALL_FETCH: Final = 100
"""The fetch size of some readers: less than many messages have."""


def key_of(value: bytes) -> bytes | None:
    """The key of the message with this value: two of three have one, of a few."""
    number = int(value.split(b"/", 2)[1])
    return b"k%d" % (number % KEYS) if number % 3 else None


def checked_value(message: MessageAndMetadata[bytes, bytes]) -> bytes:
    """The value of a message that was read. AssertionError if it has another key than it was sent
    with."""
    key, value = message.key, message.value
    assert value is not None
    assert key == key_of(value), f"{value[:40]!r} was read with key {key!r}"
    return value


@dataclass(frozen=True)
class Target:
    """The addresses of the cluster, and the partitions that clients write and read."""

    bootstrap: Sequence[tuple[str, int]]
    zookeeper: str
    partitions: Sequence[TopicPartition]

    @property
    def broker_list(self) -> str:
        return ",".join(f"{host}:{port}" for host, port in self.bootstrap)


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
        self.tp = tp
        self._cluster = ClusterClient(
            target.bootstrap, client_id=runtime.process.name, timeout_ms=TIMEOUT_MS, runtime=runtime
        )
        self._consumer: SimpleConsumer | None = None
        # Where a native job takes a second, a fetch of a compressed set does too.
        small = SMALL_FETCH if runtime.native_seconds < 1 else FETCH_BYTES
        self._fetch_bytes = runtime.random.choice([small, FETCH_BYTES])

    def run(self) -> None:
        while not self.is_ending:
            try:
                self._read_on()
            except OffsetOutOfRange:
                # A log that lost messages may end before the position; the checks report that.
                self._runtime.sleep(POLL_S)
            except KafkaError:
                self._close_consumer()
                self._runtime.sleep(POLL_S)
        self._close_consumer()
        self._cluster.close()
        self.has_ended = True

    def _read_on(self) -> None:
        if self._consumer is None:
            self._cluster.refresh([self.tp.topic])
            leader = self._cluster.leader(self.tp)
            self._consumer = SimpleConsumer(
                leader.host, leader.port, TIMEOUT_MS, runtime=self._runtime
            )
        fetched = self._consumer.fetch(
            self.tp, self.position, max_bytes=self._fetch_bytes, max_wait_ms=FETCH_WAIT_MS
        )
        for message in fetched:
            self._history.record_read(
                self._runtime.process.name, self.tp, message.offset, checked_value(message)
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
        return {message.offset: checked_value(message) for message in consumer.read_range(tp, 0)}
    finally:
        consumer.close()


def committed_offsets(
    runtime: SimClientRuntime, target: Target, group: str, storage: StorageName
) -> dict[TopicPartition, int]:
    """The group's committed offsets; {} while no broker returns them."""
    [host, port] = target.bootstrap[0]
    consumer = SimpleConsumer(host, port, TIMEOUT_MS, runtime=runtime)
    try:
        found = consumer.fetch_offsets(group, target.partitions, storage)
    except KafkaError:
        return {}
    finally:
        consumer.close()
    return {tp: committed.offset for tp, committed in found.items()}
