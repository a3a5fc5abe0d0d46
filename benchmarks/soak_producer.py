"""KafkaProducer under load while leaders are killed, frozen and cut off, at random from a seed.

Each round has a topic and a producer of its own, with new random settings. At its end every send
must have been answered once, all of buffer.memory be free, no batch be left, and the logs hold each
acknowledged record exactly where its metadata says, per sender and partition in order where
max.in.flight.requests.per.connection=1 promises it. Second copies by retries are counted. From
round to round neither memory nor open files may grow. The cluster runs under the safe profile:
classic 0.8 may elect a leader that lacks what was acknowledged. Exits 1 at a problem.
"""

from __future__ import annotations

import gc
import logging
import os
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from benchmarks.soak import Outcome, announced, soak, soak_parser
from benchmarks.subjects import resident_megabytes
from kafka08.consumer import SimpleConsumer
from kafka08.embedded import EmbeddedCluster
from kafka08.errors import KafkaError
from kafka08.producer import KafkaProducer, KafkaProducerConfig, ProducerRecord
from kafka08.producer.batch import RecordBatch
from kafka08.producer.partitioners import partition_for_key
from kafka08.producer.record import RecordMetadata
from kafka08.simulation.history import History
from kafka08.structs import TopicPartition
from tests.in_sync import await_full_isr

PARTITIONS: Final = 4
KEYS: Final = 64
SENDERS: Final = 2
BURST: Final = 40
BURST_PAUSE_S: Final = 0.05
VALUE_BYTES_MAX: Final = 400
FAULTS: Final = 4
CALM_S: Final = 1.0
FAULT_S_MAX: Final = 4.0
TIMEOUT_S: Final = 60.0
GROWTH_MB_MAX: Final = 30.0
"""Between the end of the first round and that of any later one: what the issue of the producers
allows beside buffer.memory."""
CONFIG: Final = {
    "kafka08.profile": "safe",
    "zookeeper.session.timeout.ms": "3000",
    "controlled.shutdown.enable": "false",
}


class Senders:
    """Threads that send until they are stopped, and note what becomes of every record."""

    def __init__(self, producer: KafkaProducer, topic: str, history: History, seed: int) -> None:
        self._producer = producer
        self._topic = topic
        self._history = history
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(f"sender{n}", random.Random(seed + n)))
            for n in range(SENDERS)
        ]
        self._lock = threading.Lock()
        self.sent = 0
        self.responses = 0
        self.failures: Counter[str] = Counter()
        self.misplaced: list[str] = []
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(TIMEOUT_S)

    def _run(self, name: str, rng: random.Random) -> None:
        number = 0
        while not self._stop.wait(BURST_PAUSE_S):
            for _ in range(BURST):
                number += 1
                key = b"%d" % rng.randrange(KEYS)
                value = f"{name} {number} ".encode().ljust(rng.randrange(VALUE_BYTES_MAX), b".")
                tp = TopicPartition(self._topic, partition_for_key(key, PARTITIONS))
                self._producer.send(
                    ProducerRecord(self._topic, value, key), self._noting(name, tp, value)
                )
        with self._lock:
            self.sent += number

    def _noting(
        self, name: str, tp: TopicPartition, value: bytes
    ) -> Callable[[RecordMetadata | None, KafkaError | None], None]:
        def answered(metadata: RecordMetadata | None, error: KafkaError | None) -> None:
            with self._lock:
                self.responses += 1
            if metadata is None:
                self.failures[type(error).__name__] += 1
                self._history.unknown(tp, value)
                return
            if (metadata.topic, metadata.partition) != tp:
                self.misplaced.append(f"misplaced: {value!r} for {tp} is said to be in {metadata}")
            self._history.acknowledged(name, tp, metadata.offset, value)

        return answered


class Round:
    """One topic, one producer, FAULTS faults, one at a time."""

    def __init__(self, number: int, cluster: EmbeddedCluster, rng: random.Random) -> None:
        self._cluster = cluster
        self._rng = rng
        self._topic = f"soak-{number}"
        cluster.create_topic(self._topic, PARTITIONS, len(cluster.brokers))
        self._config = drawn_config(cluster.bootstrap, rng)
        ordered = self._config.max_in_flight_requests_per_connection == 1
        copies = self._config.retries + 1
        self._history = History(ordered=ordered, copies=lambda _value: copies)
        self._faults: Counter[str] = Counter()
        self._late_reads = 0

    def run(self) -> Outcome:
        problems: list[str] = []
        with KafkaProducer(self._config) as producer:
            senders = Senders(producer, self._topic, self._history, self._rng.randrange(2**32))
            try:
                for _ in range(FAULTS):
                    self._await_replicas()
                    time.sleep(self._rng.uniform(0, CALM_S))
                    self._break_something()
            finally:  # a broker that stays away would keep the producer from its end for ever
                self._cluster.heal()
                senders.stop()
            producer.flush(TIMEOUT_S)
            if producer.free_bytes != self._config.buffer_memory:
                missing = self._config.buffer_memory - producer.free_bytes
                problems.append(f"leaked: {missing} bytes of buffer.memory")
        self._await_replicas()
        final = {tp: self._log_of(tp) for tp in self._partitions()}
        if senders.responses != senders.sent:
            problems.append(f"{senders.responses} acknowledgements of {senders.sent} sends")
        problems += senders.misplaced
        problems += self._history.problems(final)
        settings = self._config
        return Outcome(
            f"{senders.sent} sent, {len(self._history.acknowledgements)} acknowledged, "
            f"failed {dict(senders.failures)}, {repetitions(final)} stored again, "
            f"faults {dict(self._faults)}, {self._late_reads} reads before the HW; in flight "
            f"{settings.max_in_flight_requests_per_connection}, retries {settings.retries}, "
            f"{settings.compression_type}, buffer {settings.buffer_memory}",
            problems,
        )

    def _break_something(self) -> None:
        """A leader dies, stands still or is cut off for a while; its session perhaps ends first."""
        kind = self._rng.choice(["kill", "pause", "cut"])
        self._faults[kind] += 1
        leader = self._cluster.leader_of(self._topic, self._rng.randrange(PARTITIONS))
        getattr(self._cluster, kind)(leader)
        if kind != "kill" and self._rng.random() < 0.5:
            self._cluster.expire_session(leader)
        time.sleep(self._rng.uniform(0, FAULT_S_MAX))
        self._cluster.heal()

    def _await_replicas(self) -> None:
        """Wait until all replicas of the topic are in sync: one more fault may come then."""
        await_full_isr(self._cluster, self._topic, len(self._cluster.brokers))

    def _partitions(self) -> list[TopicPartition]:
        return [TopicPartition(self._topic, number) for number in range(PARTITIONS)]

    def _log_of(self, tp: TopicPartition) -> dict[int, bytes]:
        """offset → value, once the HW of the leader has passed what was acknowledged. ZooKeeper may
        name a leader that does not know of it yet, or no more."""
        last = self._history.last_offset(tp)
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            try:
                leader = self._cluster.leader_of(tp.topic, tp.partition)
                with SimpleConsumer(leader.host, leader.port) as consumer:
                    messages = consumer.read_range(tp, 0)
                    found = {message.offset: message.value or b"" for message in messages}
                if max(found, default=-1) >= last or time.monotonic() > deadline:
                    return found
                self._late_reads += 1
            except KafkaError:
                if time.monotonic() > deadline:
                    raise
            time.sleep(0.1)


def drawn_config(bootstrap: str, rng: random.Random) -> KafkaProducerConfig:
    return KafkaProducerConfig(
        bootstrap_servers=bootstrap,
        acks="all",
        retries=rng.choice([2, 1_000_000, 1_000_000]),
        retry_backoff_ms=50,
        request_timeout_ms=rng.choice([1000, 3000, 10_000]),
        max_block_ms=rng.choice([500, 60_000]),
        max_in_flight_requests_per_connection=rng.choice([1, 1, 5]),
        batch_size=rng.choice([1000, 16_384]),
        linger_ms=rng.choice([0, 10]),
        buffer_memory=rng.choice([100_000, 1_000_000, 32 << 20]),
        compression_type=rng.choice(["none", "none", "gzip", "snappy", "lz4"]),
    )


def repetitions(final: Mapping[TopicPartition, Mapping[int, bytes]]) -> int:
    """The number of messages that are second copies."""
    return sum(len(log) - len(set(log.values())) for log in final.values())


class Leaks:
    """Resources that this process holds after a round, against those after the first one."""

    def __init__(self) -> None:
        self._first: tuple[float, int] | None = None

    def problems(self) -> tuple[str, list[str]]:
        """(the resources that it holds now, those that are too many)."""
        gc.collect()
        batches = sum(isinstance(thing, RecordBatch) for thing in gc.get_objects()) - 1
        megabytes, files = (
            resident_megabytes(os.getpid()),
            len(list(Path("/proc/self/fd").iterdir())),
        )
        first_megabytes, first_files = self._first = self._first or (megabytes, files)
        problems = []
        if batches > 1:
            problems.append(f"leaked: {batches} batches are alive without a producer")
        if megabytes > first_megabytes + GROWTH_MB_MAX:
            problems.append(f"leaked: {megabytes:.0f} MB, {first_megabytes:.0f} after round 1")
        if files > first_files:
            problems.append(f"leaked: {files} open files, {first_files} after round 1")
        return f"{megabytes:.1f} MB, {files} files", problems


def main() -> int:
    options = soak_parser("soak-producer", __doc__).parse_args()
    logging.getLogger("kafka08").setLevel(logging.ERROR)  # lost connections are what it is about
    leaks = Leaks()
    with (
        announced(options),
        EmbeddedCluster(brokers=3, level="0.8.2", config=CONFIG, cuttable=True) as cluster,
    ):

        def run_round(number: int, rng: random.Random) -> Outcome:
            outcome = Round(number, cluster, rng).run()
            held, problems = leaks.problems()
            return Outcome(f"{outcome.summary}; {held}", [*outcome.problems, *problems])

        return soak(options, run_round)


if __name__ == "__main__":
    sys.exit(main())
