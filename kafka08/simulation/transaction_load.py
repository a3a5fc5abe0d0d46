"""Clients with transactions, in clusters that have them: programs that write, one that processes
what they write, and a reader of committed messages.

Writers of one transactional id fence each other: in some runs two of them work at the same time.
The processor writes the result of each message to another topic, and commits the offsets of its
group in the same transactions. Sessions end by chance, by errors, and with their processes.

The rules are those of `transaction_history`, under the safe profile, and:

11. In the end each transaction has ended: a leader's last stable offset is its HW.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from kafka08.admin.client import AdminClient
from kafka08.client.retry import is_retriable
from kafka08.consumer.group.kafka_consumer import KafkaConsumer
from kafka08.consumer.group.kafka_consumer_config import KafkaConsumerConfig
from kafka08.errors import KafkaError, ProducerFenced
from kafka08.producer.kafka_producer import KafkaProducer
from kafka08.producer.kafka_producer_config import KafkaProducerConfig
from kafka08.producer.record import ProducerRecord
from kafka08.profile import SAFE
from kafka08.simulation.cluster import Hosts, SimBroker
from kafka08.simulation.plan import RECORDS_LEVEL
from kafka08.simulation.process import Process
from kafka08.simulation.runtime import SimClientRuntime
from kafka08.simulation.transaction_history import (
    Entry,
    GroupOffsets,
    Outcome,
    Session,
    Transaction,
    TransactionHistory,
)
from kafka08.simulation.workload import POLL_S, TIMEOUT_MS, Target
from kafka08.simulation.writers import Observed
from kafka08.structs import TopicPartition

if TYPE_CHECKING:
    from kafka08.simulation.plan import Plan

INPUT: Final = "input"
RESULTS: Final = "results"
PARTITIONS: Final = 2
"""Of each of them."""
GROUP: Final = "processor"
SENDS_MAX: Final = 6
ABORTED: Final = 0.15
"""The share of transactions that end with abort_transaction."""
OPEN_LONG: Final = 0.05
"""The share that stays open for longer than some transaction timeouts."""
LONG_S: Final = 5.0
RIVAL_SHARE: Final = 0.5
"""Of the runs: the first transactional id has two writers."""
SESSION_S: Final = 15.0
"""The longest session of a writer that has a rival; the others have twice that."""
END_S: Final = 120.0
"""The longest time until all is read in the end: more than a transaction timeout."""


def has_transactions(plan: Plan) -> bool:
    return bool(plan.transactions) and plan.level == RECORDS_LEVEL


def properties_of(plan: Plan) -> Mapping[str, str]:
    """The settings of brokers, with those for transactions."""
    if not has_transactions(plan):
        return plan.broker_properties
    return {
        **plan.broker_properties,
        "transaction.state.log.num.partitions": "2",
        "transaction.state.log.replication.factor": str(plan.brokers),
        "transaction.state.log.min.isr": str(min(2, plan.brokers)),
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    }


def partitions_of(topic: str) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for number in range(PARTITIONS)]


class SimTransactional:
    """The place of a program with transactions."""

    def __init__(
        self,
        host: str,
        transactional_id: str,
        hosts: Hosts,
        run: Callable[[SimTransactional, SimClientRuntime], None],
    ) -> None:
        self.host = host
        self.transactional_id = transactional_id
        self.process: Process | None = None
        self.has_ended = False
        self._hosts = hosts
        self._run = run
        self._starts = 0

    @property
    def is_running(self) -> bool:
        return self.process is not None and not self.process.is_dead

    def start(self) -> None:
        self._starts += 1
        runtime = self._hosts.client(f"{self.host}.{self._starts}", self.host)
        self.process = runtime.process
        runtime.spawn(self._run, self, runtime, name="main")


class TransactionLoad:
    """The clients of a run with transactions, if its plan has some. Else nothing."""

    def __init__(
        self,
        plan: Plan,
        hosts: Hosts,
        target: Target,
        observed: Observed,
        brokers: Sequence[SimBroker],
    ) -> None:
        self.history = TransactionHistory()
        self.is_there = has_transactions(plan)
        self.places: list[SimTransactional] = []
        """Their processes may be killed, and must run again."""
        self._hosts = hosts
        self._target = target
        self._observed = observed
        self._brokers = brokers
        self._replication_factor = plan.replication_factor
        self._pause_s = plan.pause_seconds
        self._is_safe = plan.profile == SAFE
        self._sessions: Counter[str] = Counter()
        self._reader_ends = False
        self._reader_has_ended = not self.is_there
        self._last = b""
        """The value that the last transaction has in each partition."""
        self._reached: dict[TopicPartition, bytes] = {}
        """The last value that the reader has seen in each."""
        if self.is_there:
            random = hosts.random_of("transactions")
            names = [f"writer-{number}" for number in range(plan.transactions)]
            if random.random() < RIVAL_SHARE:
                names.append(names[0])
            self.places = [
                SimTransactional(f"transactions-{number}", name, hosts, self._write)
                for number, name in enumerate(names)
            ]
            self.places.append(SimTransactional("processor", GROUP, hosts, self._process))

    @property
    def writers_have_ended(self) -> bool:
        return all(place.has_ended for place in self.places)

    @property
    def has_ended(self) -> bool:
        """Whether the reader has, too."""
        return self.writers_have_ended and self._reader_has_ended

    @property
    def partitions(self) -> list[TopicPartition]:
        """Those of both topics."""
        return [*partitions_of(INPUT), *partitions_of(RESULTS)] if self.is_there else []

    def create_topics(self, admin: AdminClient, timeout_ms: int) -> None:
        for topic in (INPUT, RESULTS) if self.is_there else ():
            admin.create_topic(topic, PARTITIONS, self._replication_factor)
            admin.await_leaders(topic, timeout_ms=timeout_ms)

    def start(self) -> None:
        for place in self.places:
            place.start()
        if self.is_there:
            runtime = self._hosts.client("transactions-reader")
            runtime.spawn(self._read, runtime, name="main")

    def end(self) -> None:
        """Let the reader end soon."""
        self._reader_ends = True

    # The programs

    def _now(self) -> float:
        """One time for all processes."""
        return self._hosts.world.network.scheduler.now

    def _write(self, place: SimTransactional, runtime: SimClientRuntime) -> None:
        has_rival = [one.transactional_id for one in self.places].count(place.transactional_id) > 1
        longest_s = SESSION_S if has_rival else 2 * SESSION_S
        while not self._observed.is_ending:
            with suppress(KafkaError, TimeoutError):
                session = self._session(place, runtime)
                with session:
                    end = self._now() + runtime.random.uniform(0.2, longest_s)
                    while not self._observed.is_ending and self._now() < end:
                        session.transact([])
                        runtime.sleep(runtime.random.random() * 4 * self._pause_s)
            runtime.sleep(runtime.random.random() * (longest_s if has_rival else POLL_S))
        place.has_ended = True

    def _process(self, place: SimTransactional, runtime: SimClientRuntime) -> None:
        while not self._observed.is_ending:
            with suppress(KafkaError, TimeoutError):
                session = self._session(place, runtime)
                with session, closing(self._consumer(runtime, GROUP)) as consumer:
                    self._process_on(session, consumer)
            runtime.sleep(POLL_S)
        place.has_ended = True

    def _process_on(self, session: _Session, consumer: KafkaConsumer) -> None:
        inputs = partitions_of(INPUT)
        consumer.assign(inputs)
        for tp, committed in consumer.committed(*inputs, timeout=TIMEOUT_MS / 1000).items():
            if committed is not None:
                self.history.saw_offset(GROUP, tp, committed.offset, self._now())
            consumer.seek(tp, 0 if committed is None else committed.offset)
        waiting: list[tuple[TopicPartition, int]] = []
        while not self._observed.is_ending:
            if not waiting:
                found = consumer.poll(0.2)
                waiting = [(TopicPartition(one.topic, one.partition), one.offset) for one in found]
            if waiting and session.transact(waiting):
                waiting = []

    def _session(self, place: SimTransactional, runtime: SimClientRuntime) -> _Session:
        name = place.transactional_id
        self._sessions[name] += 1
        producer = KafkaProducer(
            KafkaProducerConfig(
                {
                    "bootstrap.servers": self._target.broker_list,
                    "transactional.id": name,
                    "transaction.timeout.ms": runtime.random.choice([3000, 10_000, 30_000]),
                    "request.timeout.ms": TIMEOUT_MS,
                    "max.block.ms": 2 * TIMEOUT_MS,
                    "linger.ms": runtime.random.choice([0, 5]),
                    "reconnect.backoff.ms": runtime.random.choice([10, 100]),
                    "compression.type": runtime.random.choice(["none", "none", "gzip"]),
                }
            ),
            runtime=runtime,
        )
        session = Session(name, self._sessions[name])
        return _Session(session, producer, runtime, self.history, self._now)

    def _consumer(
        self, runtime: SimClientRuntime, group: str, isolation: str = "read_committed"
    ) -> KafkaConsumer:
        return KafkaConsumer(
            KafkaConsumerConfig(
                {
                    "bootstrap.servers": self._target.broker_list,
                    "group.id": group,
                    "isolation.level": isolation,
                    "auto.offset.reset": "earliest",
                    "enable.auto.commit": False,
                    "session.timeout.ms": 6000,
                    "request.timeout.ms": 8000,
                    "metadata.max.age.ms": 5000,
                }
            ),
            runtime=runtime,
        )

    def _read(self, runtime: SimClientRuntime) -> None:
        name = runtime.process.name
        with closing(self._consumer(runtime, "")) as consumer:
            consumer.assign(self.partitions)
            while not self._reader_ends:
                try:
                    found = consumer.poll(1.0)
                except KafkaError:
                    runtime.sleep(POLL_S)
                    continue
                for one in found:
                    tp, value = TopicPartition(one.topic, one.partition), one.value or b""
                    self.history.read(name, tp, one.offset, value, self._now())
                    self._reached[tp] = value
        self._reader_has_ended = True

    # For checks

    def _unended(self) -> str:
        """Rule 11: a sentence about a transaction that has not ended; ""."""
        for broker in self._brokers:
            for partition in broker.partitions():
                if partition.is_leader and partition.log is not None:
                    stable, end = partition.last_stable_offset, partition.high_watermark
                    if stable < end:
                        return (
                            f"{partition.topic_partition} has HW {end} and last stable offset "
                            f"{stable} on {broker.host}"
                        )
        return ""

    def _unread(self) -> str:
        """A sentence about the reader, if it has not seen the last transaction; ""."""
        missing = [str(tp) for tp in self.partitions if self._reached.get(tp) != self._last]
        return f"{', '.join(missing)} is not read to its end" if missing else ""

    def _write_last(self, runtime: SimClientRuntime) -> str:
        """Write a last transaction, into every partition. Returns why that fails; ""."""
        place = SimTransactional("director", "last", self._hosts, self._write)
        try:
            with self._session(place, runtime) as session:
                self._last = session.transact_last(self.partitions)
        except (KafkaError, TimeoutError) as error:
            return f"{type(error).__name__}: {error}"
        return ""

    def problem(
        self, runtime: SimClientRuntime, await_none: Callable[[str, Callable[[], str]], None]
    ) -> str:
        """A sentence about a broken rule of the history; ""."""
        if not self.is_there:
            return ""
        await_none("transactions to end", self._unended)
        await_none("a last transaction", partial(self._write_last, runtime))
        await_none("the reader of transactions", self._unread)
        if not self._is_safe:
            return ""
        committed = self._read_all(runtime, "read_committed")
        everything = self._read_all(runtime, "read_uncommitted")
        found = self.history.problems(
            {"all": committed}, {"everything": everything}, self._offsets(runtime)
        )
        return next(iter(found), "")

    def _read_all(
        self, runtime: SimClientRuntime, isolation: str
    ) -> dict[TopicPartition, list[Entry]]:
        """All that can be read of each partition, as far as it can be read."""
        log: dict[TopicPartition, list[Entry]] = {tp: [] for tp in self.partitions}
        end = self._now() + END_S
        with closing(self._consumer(runtime, "", isolation)) as consumer:
            consumer.assign(self.partitions)
            while self._now() < end and not all(
                entries and entries[-1][1] == self._last for entries in log.values()
            ):
                with suppress(KafkaError):
                    for one in consumer.poll(1.0):
                        tp = TopicPartition(one.topic, one.partition)
                        log[tp].append((one.offset, one.value or b""))
        return log

    def _offsets(self, runtime: SimClientRuntime) -> GroupOffsets:
        with closing(self._consumer(runtime, GROUP)) as consumer:
            found = consumer.committed(*partitions_of(INPUT), timeout=END_S)
        return {(GROUP, tp): one.offset for tp, one in found.items() if one is not None}


class _Session:
    """One KafkaProducer with a transactional id, from `with` on; its transactions are noted before
    it is called. KafkaError or TimeoutError: it can do nothing any more."""

    def __init__(
        self,
        session: Session,
        producer: KafkaProducer,
        runtime: SimClientRuntime,
        history: TransactionHistory,
        now: Callable[[], float],
    ) -> None:
        self._session = session
        self._producer = producer
        self._runtime = runtime
        self._random = runtime.random
        self._history = history
        self._now = now
        self._values = 0

    def __enter__(self) -> _Session:
        asked_at = self._now()
        try:
            self._producer.init_transactions()
        except BaseException:
            self.__exit__()
            raise
        self._history.initialized(self._session, asked_at, self._now())
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(KafkaError, TimeoutError):
            self._producer.close(TIMEOUT_MS / 1000)

    def transact(self, inputs: Sequence[tuple[TopicPartition, int]]) -> bool:
        """Make a transaction: the results of these messages, or values of its own. Whether it is
        committed."""
        transaction = self._history.begin(self._session)
        self._producer.begin_transaction()
        try:
            if inputs:
                self._send_results(transaction, inputs)
            else:
                for _ in range(self._random.randint(1, SENDS_MAX)):
                    self._send(transaction, self._random.choice(partitions_of(INPUT)))
            self._take_time()
            if self._random.random() >= ABORTED:
                self._commit(transaction)
                return True
        except ProducerFenced:
            raise
        except KafkaError:
            # What failed can be aborted; a commit without an outcome cannot.
            pass
        self._producer.abort_transaction(TIMEOUT_MS / 1000)
        transaction.ended(Outcome.ABORTED)
        return False

    def transact_last(self, partitions: Sequence[TopicPartition]) -> bytes:
        """Commit one value, in each of these; returns it."""
        transaction, value = self._history.begin(self._session), str(self._session).encode()
        self._producer.begin_transaction()
        for tp in partitions:
            self._send(transaction, tp, value)
        self._commit(transaction)
        return value

    def _commit(self, transaction: Transaction) -> None:
        transaction.commit_asked_at = self._now()
        try:
            self._producer.commit_transaction(2 * TIMEOUT_MS / 1000)
        except KafkaError as error:
            # It may be committed: all that can be done is to commit again, or to end.
            if not is_retriable(error) or self._random.random() < 0.5:
                raise
            self._producer.commit_transaction(2 * TIMEOUT_MS / 1000)
        transaction.ended(Outcome.COMMITTED)

    def _send_results(
        self, transaction: Transaction, inputs: Sequence[tuple[TopicPartition, int]]
    ) -> None:
        for _ in inputs:
            self._send(transaction, self._random.choice(partitions_of(RESULTS)))
        offsets = {tp: offset + 1 for tp, offset in inputs}
        transaction.group, transaction.processed = GROUP, list(inputs)
        transaction.offsets = offsets
        self._producer.send_offsets_to_transaction(offsets, GROUP)

    def _send(self, transaction: Transaction, tp: TopicPartition, value: bytes = b"") -> None:
        self._values += 1
        value = value or f"{self._session}/{self._values}".encode()
        transaction.send(tp, value)
        self._producer.send(ProducerRecord(tp.topic, value, partition=tp.partition))

    def _take_time(self) -> None:
        is_long = self._random.random() < OPEN_LONG
        self._runtime.sleep(self._random.random() * (LONG_S if is_long else POLL_S))
