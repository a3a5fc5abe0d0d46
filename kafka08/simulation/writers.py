"""The producers of a run: each is a process that writes, and records what it was told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from kafka08.errors import FailedToSend, KafkaError
from kafka08.producer.future import BatchFuture, RecordFuture
from kafka08.producer.idempotence import Idempotence
from kafka08.producer.kafka_producer import KafkaProducer
from kafka08.producer.kafka_producer_config import KafkaProducerConfig
from kafka08.producer.old.callback_handler import CallbackHandler
from kafka08.producer.old.config import ProducerConfig
from kafka08.producer.old.producer import Producer
from kafka08.producer.record import KeyedMessage, ProducerRecord, RecordMetadata
from kafka08.simulation.history import History
from kafka08.simulation.runtime import SimClientRuntime
from kafka08.simulation.workload import POLL_S, TIMEOUT_MS, TOPIC, Target, key_of
from kafka08.structs import TopicPartition

LIST_SHARE: Final = 0.05
"""The share of calls with a list of messages."""
LIST_MAX: Final = 4
FLUSH_SHARE: Final = 0.02
"""The share of calls after which a KafkaProducer is flushed."""
LARGE_SHARE: Final = 0.01
"""The share of messages that have a few thousand bytes more than the others."""
REFUSED_LISTS: Final = 0.2
"""The share of an old producer's calls with a list, where brokers refuse large messages."""
REFUSED_SHARE: Final = 0.15
"""The share of its messages that are large, then."""
LARGE_BYTES: Final = 5000
"""More than a segment of some runs: a broker refuses that message."""
SMALL_BUFFER: Final = 40_000
"""The memory of a producer that soon blocks while a leader is away."""


@dataclass
class Observed:
    """The sends and reads of all clients.

    copies       producer → how often it may send a value
    stored       values that a producer was told are stored, without their offsets
    leftovers    a sentence for each thing that a closed producer should not have left
    on_stored    called when a producer has been told that a message is at an offset
    is_ending    whether writers must stop
    """

    ordered: bool
    history: History = field(init=False)
    copies: dict[str, int] = field(default_factory=dict)
    stored: list[bytes] = field(default_factory=list)
    leftovers: list[str] = field(default_factory=list)
    on_stored: Callable[[str, TopicPartition, int], object] = lambda *_: None
    is_ending: bool = False
    writers: int = 0
    """The number of writers that have not ended."""

    def __post_init__(self) -> None:
        self.history = History(
            ordered=self.ordered, copies=lambda value: self.copies[writer_of(value)]
        )

    def lost(self, values: set[bytes]) -> list[str]:
        """A sentence for each message that its producer was told is stored, and is not one of
        these."""
        return [
            f"lost: {value[:SHOWN]!r}, which its producer was told is stored"
            for value in self.stored
            if value not in values
        ]


SHOWN: Final = 40
"""So many bytes of a value name it."""


class Values:
    """Makes the values of one producer, all different: most are short, a few large."""

    def __init__(self, runtime: SimClientRuntime, large_share: float = LARGE_SHARE) -> None:
        self._large_share = large_share
        self._name = runtime.process.name
        self._random = runtime.random
        self.count = 0

    def next(self) -> bytes:
        value = f"{self._name}/{self.count}".encode()
        self.count += 1
        if self._random.random() < self._large_share:
            value += b"/" + b"x" * self._random.randint(0, LARGE_BYTES)
        return value

    def some(self) -> list[bytes]:
        return [self.next() for _ in range(self._random.randint(2, LIST_MAX))]


def writer_of(value: bytes) -> str:
    """The name of the producer that made it."""
    return value.partition(b"/")[0].decode()


def new_producer(
    runtime: SimClientRuntime,
    target: Target,
    observed: Observed,
    *,
    retries: int,
    in_flight: int,
    pause: float,
    stores_once: bool = False,
) -> None:
    """Write with a KafkaProducer until the run ends. `stores_once`: brokers recognize a batch that
    comes again, if the producer is idempotent."""
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
            "buffer.memory": runtime.random.choice([32 << 20, 32 << 20, SMALL_BUFFER]),
            "compression.type": runtime.random.choice(["none", "none", "gzip", "snappy"]),
        }
    )
    writer = _NewWriter(KafkaProducer(config, runtime=runtime), runtime, target, observed)
    if stores_once and config.idempotence is not Idempotence.OFF:
        observed.copies[runtime.process.name] = 1
    writer.run(pause)
    observed.writers -= 1


class _NewWriter:
    """Writes single records and lists of them, and compares each outcome: of the callback, and of
    the future once the producer is closed."""

    def __init__(
        self,
        producer: KafkaProducer,
        runtime: SimClientRuntime,
        target: Target,
        observed: Observed,
    ) -> None:
        self._producer = producer
        self._runtime = runtime
        self._partitions = target.partitions
        self._observed = observed
        self._name = runtime.process.name
        self._values = Values(runtime)
        self._called: Counter[bytes] = Counter()
        """value → calls of its callback."""
        self._waiting: dict[bytes, None] = {}
        """Values without an outcome yet."""
        self._singles: list[tuple[bytes, RecordFuture]] = []
        self._lists: list[tuple[list[bytes], BatchFuture]] = []
        self._flushed = 0
        """So many single messages had been sent before the last flush."""
        self._told: dict[bytes, int | None] = {}
        """value → the offset in its callback; None: an error."""
        observed.copies[self._name] = producer.config.retries + 1

    def run(self, pause: float) -> None:
        random = self._runtime.random
        while not self._observed.is_ending:
            tp = random.choice(self._partitions)
            if random.random() < LIST_SHARE:
                self._send_list(tp)
            else:
                self._send(tp)
            if random.random() < FLUSH_SHARE:
                self._flush()
            self._check_memory()
            self._runtime.sleep(random.random() * 2 * pause)
        self._producer.close()
        self._check_end()

    def _flush(self) -> None:
        """Each record that was sent before a flush has its outcome after it."""
        singles, lists = len(self._singles), len(self._lists)
        self._producer.flush()
        late = [value for value, one in self._singles[self._flushed : singles] if not one.done()]
        late += [values[0] for values, many in self._lists[:lists] if not many.done()]
        if late:
            self._wrong(f"has flushed, but {len(late)} sends have no outcome: {late[0][:SHOWN]!r}")
        self._flushed = singles

    def _send(self, tp: TopicPartition) -> None:
        value = self._values.next()
        self._observed.history.unknown(tp, value)
        self._waiting[value] = None

        def note(metadata: RecordMetadata | None, error: KafkaError | None) -> None:
            self._called[value] += 1
            self._waiting.pop(value, None)
            self._told[value] = None if metadata is None else metadata.offset
            if metadata is not None:
                self._stored(tp, metadata.offset, value)

        record = ProducerRecord(tp.topic, value, key_of(value), tp.partition)
        self._singles.append((value, self._producer.send(record, note)))

    def _send_list(self, tp: TopicPartition) -> None:
        values = self._values.some()
        for value in values:
            self._observed.history.unknown(tp, value)
        keys = [key_of(value) for value in values]
        future = self._producer.send_many(tp.topic, values, keys, partition=tp.partition)
        self._lists.append((values, future))

    def _stored(self, tp: TopicPartition, offset: int, value: bytes) -> None:
        self._observed.history.acknowledged(self._name, tp, offset, value)
        self._observed.on_stored(self._name, tp, offset)

    def _check_memory(self) -> None:
        most = self._producer.config.buffer_memory
        reserved = most - self._producer.free_bytes
        waiting = sum(map(len, self._waiting))
        if not 0 <= reserved <= most or waiting > most:
            self._wrong(
                f"has {waiting} bytes without an outcome, and reserves {reserved} of the {most} "
                "of its buffer"
            )

    def _check_end(self) -> None:
        """Judge what the closed producer has said about each message."""
        if reserved := self._producer.config.buffer_memory - self._producer.free_bytes:
            self._wrong(f"has closed, but reserves {reserved} bytes of its buffer")
        count = len(self._singles)
        if self._called.total() != count or len(self._called) != count:
            self._wrong(
                f"has closed and called the callbacks of {len(self._called)} of {count} messages, "
                f"{self._called.total()} times"
            )
            return
        for value, future in self._singles:
            stored = None if future.exception(0) is not None else future.result(0).offset
            if stored != self._told[value]:
                self._wrong(
                    f"told the callback of {value[:SHOWN]!r} offset {self._told[value]}, and its "
                    f"future {stored}"
                )
        for values, many in self._lists:
            failed = {place for places, _ in many.failures(0) for place in places}
            if not failed:
                for part in many.result(0):
                    for number, place in enumerate(part.places):
                        self._stored(part.tp, part.offset + number, values[place])
            else:
                self._observed.stored += [
                    value for place, value in enumerate(values) if place not in failed
                ]

    def _wrong(self, text: str) -> None:
        self._observed.leftovers.append(f"{self._name} {text}")


def old_producer(
    runtime: SimClientRuntime, target: Target, observed: Observed, *, pause: float, refuses: bool
) -> None:
    """Write with a synchronous Producer of 0.8 until the run ends: single messages, and lists that
    several partitions share. `refuses`: whether brokers refuse large ones, of which it then sends
    many."""
    retries = runtime.random.choice([0, 1, 3] if refuses else [0, 1])
    list_share = REFUSED_LISTS if refuses else LIST_SHARE
    config = ProducerConfig(
        {
            "metadata.broker.list": target.broker_list,
            "request.required.acks": -1,
            "request.timeout.ms": TIMEOUT_MS,
            "message.send.max.retries": retries,
            "compression.codec": runtime.random.choice(["none", "none", "gzip"]),
        }
    )
    observed.copies[runtime.process.name] = retries + 1
    producer = Producer(config, partitioner=_by_key, runtime=runtime)
    values = Values(runtime, REFUSED_SHARE if refuses else LARGE_SHARE)
    while not observed.is_ending:
        is_list = runtime.random.random() < list_share
        sent = values.some() if is_list else [values.next()]
        messages = _keyed(sent, values.count, target, observed)
        try:
            producer.send(messages if is_list else messages[0])
        except FailedToSend as error:
            failed = {id(message) for message in error.messages}
            observed.stored += [
                value
                for value, message in zip(sent, messages, strict=True)
                if id(message) not in failed
            ]
            runtime.sleep(POLL_S)
        except KafkaError:
            runtime.sleep(POLL_S)
        else:
            observed.stored += sent
        runtime.sleep(runtime.random.random() * 2 * pause)
    producer.close()
    observed.writers -= 1


def _keyed(
    values: Sequence[bytes], number: int, target: Target, observed: Observed
) -> list[KeyedMessage]:
    """The messages with these values, each for another partition than the one before."""
    for value in values:
        for tp in target.partitions:
            observed.history.unknown(tp, value)
    return [
        KeyedMessage(TOPIC, value, key_of(value), partition_key=number + place)
        for place, value in enumerate(values)
    ]


def async_producer(
    runtime: SimClientRuntime, target: Target, observed: Observed, *, pause: float, refuses: bool
) -> None:
    """Write with an asynchronous Producer of 0.8 until the run ends. `refuses`: as above."""
    acks = runtime.random.choice([0, 1, -1])
    config = ProducerConfig(
        {
            "metadata.broker.list": target.broker_list,
            "producer.type": "async",
            "request.required.acks": acks,
            "request.timeout.ms": TIMEOUT_MS,
            "queue.buffering.max.ms": runtime.random.choice([10, 1000]),
            "queue.buffering.max.messages": 100,
            "queue.enqueue.timeout.ms": runtime.random.choice([0, 100, -1]),
            "batch.num.messages": runtime.random.choice([1, 50]),
            "compression.codec": runtime.random.choice(["none", "none", "snappy"]),
        }
    )
    name = runtime.process.name
    observed.copies[name] = config.message_send_max_retries + 1
    hooks = _Outcomes()
    producer = Producer(config, partitioner=_by_key, callback_handler=hooks, runtime=runtime)
    values = Values(runtime, REFUSED_SHARE if refuses else LARGE_SHARE)
    refused = 0
    while not observed.is_ending:
        [message] = _keyed([values.next()], values.count, target, observed)
        try:
            producer.send(message)
        except KafkaError:
            refused += 1
        runtime.sleep(runtime.random.random() * 2 * pause)
    producer.close()
    if waiting := producer.metrics()["ProducerSendThread"]["ProducerQueueSize"]:
        observed.leftovers.append(f"{name} has closed, but its queue has {waiting:.0f} messages")
    told = (len(hooks.sent), len(hooks.failed))
    outcome = producer.outcome
    if told != (outcome.sent, outcome.lost) or sum(told) + refused != values.count:
        observed.leftovers.append(
            f"{name} has closed: of {values.count} messages it refused {refused}, passed {told[0]} "
            f"and gave up {told[1]}, and counts {outcome.sent} as sent and {outcome.lost} as lost"
        )
    if acks == -1:
        observed.stored += hooks.sent
    observed.writers -= 1


class _Outcomes(CallbackHandler):
    """The messages of an asynchronous producer, by what it says about them."""

    def __init__(self) -> None:
        self.sent: dict[bytes, None] = {}
        self.failed: dict[bytes, None] = {}

    def before_sending(self, messages: list[KeyedMessage]) -> list[KeyedMessage]:
        self.sent.update(dict.fromkeys(message.message for message in messages))
        return messages

    def on_error(self, messages: list[KeyedMessage], error: Exception) -> None:
        for message in messages:
            self.sent.pop(message.message, None)
            self.failed[message.message] = None


def _by_key(key: int, count: int) -> int:
    # A broker that has just started may know only some of the partitions.
    return key % count
