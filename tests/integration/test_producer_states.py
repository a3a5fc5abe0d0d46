"""A transactional KafkaProducer: each call in each state, as kafka08/producer/transactions has it.

Java's producer raises IllegalStateException where this one raises InvalidTxnState.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import pytest

from kafka08.consumer import KafkaConsumer
from kafka08.embedded import EmbeddedCluster
from kafka08.errors import (
    InvalidTxnState,
    KafkaError,
    MessageSizeTooLarge,
    ProducerClosed,
    ProducerFenced,
    RequestTimedOut,
)
from kafka08.producer import KafkaProducer, ProducerRecord
from kafka08.structs import TopicPartition
from tests.integration.polling_cluster import read
from tests.integration.transactional import committed_values, producer_on
from tests.waiting import until

TOPIC: Final = "states"


@dataclass
class Case:
    """A producer in a state, and the call in another thread that it is in."""

    cluster: EmbeddedCluster
    producer: KafkaProducer
    other: threading.Thread | None = None
    failed: list[BaseException] | None = None

    def in_background(self, call: Callable[[], object], api: str) -> None:
        """Start a call whose request of that API takes some time."""
        rule = self.cluster.faults.add(api, delay_ms=400, times=1)
        self.failed = failed = []

        def run() -> None:
            try:
                call()
            except KafkaError as error:
                failed.append(error)

        self.other = threading.Thread(target=run)
        self.other.start()
        until(lambda: rule.hits == 1)


def new(case: Case) -> None:
    pass


def ready(case: Case) -> None:
    case.producer.init_transactions()


def opened(case: Case) -> None:
    ready(case)
    case.producer.begin_transaction()
    case.producer.send(record()).result(30)


def flushing(case: Case) -> None:
    """Its commit waits for a record."""
    ready(case)
    case.producer.begin_transaction()
    case.producer.send(record()).result(30)
    rule = case.cluster.faults.add("Produce", delay_ms=400, times=1)
    case.producer.send(record())
    until(lambda: rule.hits == 1)
    case.other = threading.Thread(target=case.producer.commit_transaction)
    case.failed = []
    case.other.start()
    until(lambda: "another call" in str(error_of(case.producer.begin_transaction)))


def committing(case: Case) -> None:
    opened(case)
    case.in_background(case.producer.commit_transaction, "EndTxn")


def aborting(case: Case) -> None:
    opened(case)
    case.in_background(case.producer.abort_transaction, "EndTxn")


def failed(case: Case) -> None:
    opened(case)
    case.cluster.faults.add("Produce", error="MESSAGE_SIZE_TOO_LARGE", times=1)
    with pytest.raises(MessageSizeTooLarge):
        case.producer.send(record()).result(30)


def perhaps_committed(case: Case) -> None:
    perhaps_ended(case, case.producer.commit_transaction)


def perhaps_aborted(case: Case) -> None:
    perhaps_ended(case, case.producer.abort_transaction)


def perhaps_ended(case: Case, end: Callable[[], object]) -> None:
    opened(case)
    rule = case.cluster.faults.add("EndTxn", error="REQUEST_TIMED_OUT")
    with pytest.raises(RequestTimedOut):
        end()
    rule.remove()


def fenced(case: Case) -> None:
    opened(case)
    with producer_on(case.cluster.bootstrap, TOPIC) as later:
        later.init_transactions()
    with pytest.raises(ProducerFenced):
        case.producer.commit_transaction()


def closed(case: Case) -> None:
    opened(case)
    case.producer.close()


def record() -> ProducerRecord:
    return ProducerRecord(TOPIC, b"value")


CALLS: Final[dict[str, Callable[[KafkaProducer], Any]]] = {
    "init": lambda producer: producer.init_transactions(),
    "begin": lambda producer: producer.begin_transaction(),
    "send": lambda producer: producer.send(record()).result(30),
    "send_many": lambda producer: producer.send_many(TOPIC, [b"a", b"b"]).result(30),
    "offsets": lambda producer: producer.send_offsets_to_transaction(
        {TopicPartition(TOPIC, 0): 1}, "group"
    ),
    "commit": lambda producer: producer.commit_transaction(),
    "abort": lambda producer: producer.abort_transaction(),
    "flush": lambda producer: producer.flush(30),
    "close": lambda producer: producer.close(30),
}
TABLE: Final[dict[Callable[[Case], None], tuple[str, type[KafkaError]]]] = {
    new: ("init", InvalidTxnState),
    ready: ("init begin", InvalidTxnState),
    opened: ("send send_many offsets commit abort", InvalidTxnState),
    flushing: ("", InvalidTxnState),
    committing: ("", InvalidTxnState),
    aborting: ("", InvalidTxnState),
    failed: ("abort", MessageSizeTooLarge),
    perhaps_committed: ("commit", InvalidTxnState),
    perhaps_aborted: ("abort", InvalidTxnState),
    fenced: ("", ProducerFenced),
    closed: ("", ProducerClosed),
}
"""State → the calls that it allows, besides flush and close, and the error of the others."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(brokers=1, config={"api.level": "0.11.0"}) as cluster:
        cluster.create_topic(TOPIC)
        yield cluster


def error_of(call: Callable[[], object]) -> BaseException | None:
    try:
        call()
    except KafkaError as error:
        return error
    return None


@pytest.mark.parametrize("state", TABLE, ids=lambda state: state.__name__)
def test_each_call_is_taken_or_refused(
    cluster: EmbeddedCluster, state: Callable[[Case], None]
) -> None:
    """As the table says; what another thread was ending meanwhile ends as it would have."""
    allowed, refusal = TABLE[state]
    wrong = {}
    for name, call in CALLS.items():
        block_ms = 800 if state in (perhaps_committed, perhaps_aborted) else 10_000
        with producer_on(cluster.bootstrap, TOPIC, max_block_ms=block_ms) as producer:
            case = Case(cluster, producer)
            state(case)
            found = error_of(partial(call, producer))
            wanted = None if name in [*allowed.split(), "flush", "close"] else refusal
            if type(found) is not (type(None) if wanted is None else wanted):
                wrong[name] = found
            if case.other is not None:
                case.other.join(30)
                assert [] == case.failed, name
        cluster.faults.clear()
    assert {} == wrong


def test_a_close_aborts_what_is_open(cluster: EmbeddedCluster) -> None:
    """Readers of committed messages need not wait for transaction.timeout.ms."""
    cluster.create_topic("close")
    with producer_on(cluster.bootstrap, "close") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(ProducerRecord("close", b"gone")).result(30)
    with producer_on(cluster.bootstrap, "close-2") as later:
        later.init_transactions()
        with later.transaction():
            later.send(ProducerRecord("close", b"kept"))
        committed_values(cluster.bootstrap, "close", [b"kept"])


def test_records_of_other_threads_are_of_a_transaction_or_refused(cluster: EmbeddedCluster) -> None:
    """Threads that send while another commits again and again: each record that was accepted is
    committed, and none is sent behind its marker."""
    cluster.create_topic("threads")
    accepted: list[bytes] = []
    is_over = threading.Event()
    errors: list[BaseException] = []
    with producer_on(cluster.bootstrap, "threads", linger_ms=1) as producer:
        producer.init_transactions()

        def send(name: int) -> None:
            number = 0
            while not is_over.is_set():
                value = b"%d-%d" % (name, number)
                number += 1
                try:
                    future = producer.send(ProducerRecord("threads", value))
                except InvalidTxnState:
                    continue
                try:
                    future.result(30)
                except KafkaError as error:
                    errors.append(error)
                    return
                accepted.append(value)

        threads = [threading.Thread(target=send, args=(n,)) for n in range(3)]
        for one in threads:
            one.start()
        for _ in range(30):
            producer.begin_transaction()
            producer.send(ProducerRecord("threads", b"own"))
            producer.commit_transaction(30)
        is_over.set()
        for one in threads:
            one.join(30)
    assert [] == errors
    found = all_committed(cluster.bootstrap, "threads", 30 + len(accepted))
    assert sorted(accepted) == sorted(v for v in found if v != b"own")
    assert 30 == found.count(b"own")


def test_a_record_that_waited_for_memory_is_of_no_later_transaction(
    cluster: EmbeddedCluster,
) -> None:
    """Its thread was waiting when the commit began, which does not wait for it."""
    cluster.create_topic("memory")
    keys = {"buffer_memory": 20_000, "batch_size": 16_000, "max_block_ms": 20_000}
    with producer_on(cluster.bootstrap, "memory", **keys) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(ProducerRecord("memory", b"first")).result(30)
        rule = cluster.faults.add("Produce", delay_ms=700, times=1)
        producer.send(ProducerRecord("memory", b"second"))
        found: list[BaseException | None] = []
        late = ProducerRecord("memory", b"late")
        thread = threading.Thread(
            target=lambda: found.append(error_of(lambda: producer.send(late)))
        )
        until(lambda: rule.hits == 1)
        thread.start()
        until(lambda: producer.metrics()["producer-metrics"]["buffer-available-bytes"] < 16_000)
        time.sleep(0.1)
        producer.commit_transaction(30)
        thread.join(30)
    assert [InvalidTxnState] == [type(error) for error in found]
    assert [b"first", b"second"] == all_committed(cluster.bootstrap, "memory", 2)


def all_committed(bootstrap: str, topic: str, count: int) -> list[bytes]:
    with KafkaConsumer(
        bootstrap_servers=bootstrap, isolation_level="read_committed", auto_offset_reset="earliest"
    ) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        values = [bytes(m.value or b"") for m in read(consumer, count, 30)]
        assert consumer.poll(0.2) == []
        return values
