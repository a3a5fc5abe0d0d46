"""Probe: sends a message to each partition of a topic once per interval, and reads it back.

So it measures the service that applications get: the time until every in-sync replica has
acknowledged a message, the time until a consumer has it, and the messages that never arrive. It
reads without a group, so it also works on clusters of 0.8. It skips messages of other producers.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from kafka08.client import ClusterClient, RetryPolicy, parse_bootstrap
from kafka08.client.log_offsets import log_ends, log_starts, offsets_or_errors
from kafka08.client.retry import retry
from kafka08.consumer.fetching.batch import BatchLimits
from kafka08.consumer.partition_reader import PartitionReader
from kafka08.errors import (
    ConfigError,
    FailedToSend,
    KafkaError,
    OffsetOutOfRange,
    UnknownTopicOrPartition,
)
from kafka08.exporter.probe_ledger import ProbeLedger
from kafka08.lifecycle import Closeable
from kafka08.metrics import Family
from kafka08.producer import KafkaProducer, KafkaProducerConfig, ProducerRecord, RecordMetadata
from kafka08.runtime import ClientRuntime
from kafka08.structs import LATEST_OFFSET, TopicPartition

logger = logging.getLogger(__name__)

PARTITIONS_MAX: Final = 100
"""A probe reads each partition in a thread of its own."""
METADATA_S: Final = 30.0
"""New partitions are probed within this time."""
PAUSE_S: Final = 1.0
"""Pause after a failed read of a partition, or a failed look at its log's end."""
READ_WAIT_MS: Final = 500
RETRIES: Final = 3
DIGITS_MAX: Final = 18
"""Encodes a message's number."""
NEW_TOPIC: Final = RetryPolicy(tries=10, backoff_ms=200)
"""Waits until a broker knows a topic that was just created."""
ONCE: Final = RetryPolicy(tries=1)


class Probe(Closeable):
    """One thread may call `round`, any thread `families`. A context manager.

    bootstrap    host:port,host:port; NoBrokersAvailable if none of them responds
    topic        must exist (UnknownTopicOrPartition), with at most PARTITIONS_MAX partitions
                 (ConfigError)
    timeout_s    a message that was not read after this time is lost
    """

    def __init__(
        self, bootstrap: str, topic: str, *, timeout_s: float, runtime: ClientRuntime
    ) -> None:
        self._topic = topic
        self._runtime = runtime
        self._ledger = ProbeLedger(timeout_s)
        self._lock = runtime.lock()
        self._stopping = runtime.event()
        self._read_partitions: set[int] = set()
        self._unreadable: set[int] = set()
        """The partitions whose log's end is not known yet."""
        self._looked_at = 0.0
        self._mark = b"kafka08-probe %016x " % runtime.random.getrandbits(64)
        self._cluster = ClusterClient(
            parse_bootstrap(bootstrap),
            client_id="kafka08-probe",
            timeout_ms=5000,
            connect_timeout_ms=2000,
            retry_policy=RetryPolicy(tries=5, backoff_ms=200),
            runtime=runtime,
        )
        self._producer: KafkaProducer | None = None
        try:
            retry(
                self._follow_partitions,
                NEW_TOPIC,
                runtime,
                what=f"looking up topic {topic}",
                passes=lambda error: isinstance(error, UnknownTopicOrPartition),
            )
            self._producer = KafkaProducer(
                KafkaProducerConfig(
                    {
                        "bootstrap.servers": bootstrap,
                        "client.id": "kafka08-probe",
                        "acks": "-1",
                        "retries": RETRIES,
                        "request.timeout.ms": round(timeout_s * 1000),
                        "timeout.ms": round(timeout_s * 1000),
                        "max.block.ms": 1000,
                    }
                ),
                runtime=runtime,
            )
        except BaseException:
            self._cluster.close()
            raise

    def close(self) -> None:
        """Stop. Messages in flight are dropped."""
        self._stopping.set()
        try:
            if self._producer is not None:
                self._producer.close(0)
        except FailedToSend:
            pass  # a probe's messages need not arrive
        finally:
            self._cluster.close()

    def families(self) -> list[Family]:
        """The measurements so far."""
        with self._lock:
            self._ledger.expire(self._runtime.monotonic())
            return list(self._ledger.families())

    def run(self, interval_s: float) -> None:
        """One round per interval, until closed."""
        while not self._stopping.is_set():
            began = self._runtime.monotonic()
            try:
                self.round()
            except Exception:  # the root of a thread: the next round may be better
                logger.exception("Uncaught error while probing %s", self._topic)
            self._stopping.wait(max(0.0, interval_s - (self._runtime.monotonic() - began)))

    def round(self) -> None:
        """Send a message to each partition. Failures are counted, not raised. So is a message that
        was not sent because it could not be read back."""
        now = self._runtime.monotonic()
        if self._unreadable or now - self._looked_at > METADATA_S:
            try:
                self._follow_partitions()
            except KafkaError as error:
                logger.warning("Cannot look up the partitions of %s: %s", self._topic, error)
        for partition in sorted(self._read_partitions):
            self._send(partition)
        with self._lock:
            for partition in sorted(self._unreadable):
                if (number := self._ledger.send(partition, now)) is not None:
                    self._ledger.fail(number)
            self._ledger.expire(self._runtime.monotonic())

    def settle(self) -> None:
        """Wait until every message has been read, has failed, or is lost."""
        while not self._stopping.wait(0.01):
            with self._lock:
                self._ledger.expire(self._runtime.monotonic())
                if not self._ledger.outstanding:
                    return

    def _follow_partitions(self) -> None:
        """Start to read new partitions, from their ends on."""
        self._looked_at = self._runtime.monotonic()
        info = self._cluster.refresh().topics.get(self._topic)
        if info is None or not info.partitions:
            raise UnknownTopicOrPartition(f"topic {self._topic} does not exist")
        if len(info.partitions) > PARTITIONS_MAX:
            raise ConfigError(
                f"topic {self._topic} has {len(info.partitions)} partitions, more than the "
                f"{PARTITIONS_MAX} of a probe; create a topic with one partition for each broker"
            )
        new = [
            TopicPartition(self._topic, p.partition)
            for p in info.partitions
            if p.partition not in self._read_partitions
        ]
        ends = offsets_or_errors(self._cluster, dict.fromkeys(new, LATEST_OFFSET))
        for tp, end in ends.items():
            if isinstance(end, KafkaError):
                logger.warning("Cannot read %s yet: %s", tp, end)
                self._unreadable.add(tp.partition)
                continue
            self._runtime.spawn(self._read, tp, *end, name=f"probe reader of {tp}")
            self._unreadable.discard(tp.partition)
            self._read_partitions.add(tp.partition)

    def _send(self, partition: int) -> None:
        assert self._producer is not None
        with self._lock:
            number = self._ledger.send(partition, self._runtime.monotonic())
        if number is None:
            return

        def on_completion(metadata: RecordMetadata | None, error: KafkaError | None) -> None:
            with self._lock:
                if error is None:
                    self._ledger.acknowledge(number, self._runtime.monotonic())
                else:
                    self._ledger.fail(number)
            if error is not None and not self._stopping.is_set():
                logger.warning("Message to %s-%d failed: %s", self._topic, partition, error)

        value = self._mark + b"%d" % number
        self._producer.send(ProducerRecord(self._topic, value, partition=partition), on_completion)

    def _read(self, tp: TopicPartition, end: int) -> None:
        """Read until the probe is closed."""
        reader = PartitionReader(
            self._cluster,
            tp,
            end,
            wait_ms=READ_WAIT_MS,
            policy=ONCE,
            is_stopping=self._stopping.is_set,
            clock=self._runtime,
        )
        while not self._stopping.is_set():
            try:
                for batch in reader.poll(BatchLimits()):
                    self._take(batch.values())
            except OffsetOutOfRange:
                self._move(reader, tp)
            except KafkaError as error:
                self._pause(tp, error)
            except Exception:  # the root of a thread: the next fetch may be better
                logger.exception("Uncaught error while reading %s", tp)
                self._stopping.wait(PAUSE_S)

    def _move(self, reader: PartitionReader, tp: TopicPartition) -> None:
        """Move into the log: it was truncated, or retention deleted unread messages."""
        try:
            end = log_ends(self._cluster, [tp])[tp]
            reader.position = end if reader.position > end else log_starts(self._cluster, [tp])[tp]
        except KafkaError as error:
            self._pause(tp, error)

    def _pause(self, tp: TopicPartition, error: KafkaError) -> None:
        if self._stopping.is_set():
            return
        logger.warning("Cannot read %s: %s", tp, error)
        self._stopping.wait(PAUSE_S)
        try:
            self._cluster.refresh()
        except KafkaError as again:
            logger.warning("Cannot look up the leader of %s: %s", tp, again)

    def _take(self, values: Sequence[bytes | None]) -> None:
        now = self._runtime.monotonic()
        with self._lock:
            for value in values:
                if value is not None and value.startswith(self._mark):
                    number = value[len(self._mark) :]
                    if number.isdigit() and len(number) <= DIGITS_MAX:
                        self._ledger.receive(int(number), now)
