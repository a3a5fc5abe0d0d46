"""A transactional KafkaProducer on brokers of ours."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable, Iterator

import pytest

from kafka08.client.transactional_id import TransactionalId
from kafka08.embedded import EmbeddedCluster
from kafka08.errors import (
    ConfigError,
    FailedTransaction,
    KafkaError,
    MessageSizeTooLarge,
    ProducerFenced,
    RecordTooLarge,
    RequestTimedOut,
    UnknownProducerId,
    UnknownTopicOrPartition,
    UnsupportedVersion,
)
from kafka08.producer import (
    AsyncKafkaProducer,
    KafkaProducer,
    KafkaProducerConfig,
    ProducerRecord,
)
from tests.integration.transactional import SCENARIOS, committed_values, producer_on
from tests.waiting import until


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(brokers=1, config={"api.level": "0.11.0"}) as cluster:
        yield cluster


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_at_level_0_11(cluster: EmbeddedCluster, scenario: Callable[[str, str], None]) -> None:
    """What each scenario says."""
    scenario(cluster.bootstrap, scenario.__name__)


@pytest.fixture
def topic(cluster: EmbeddedCluster, request: pytest.FixtureRequest) -> Iterator[str]:
    name = re.sub(r"\W", ".", request.node.name)
    cluster.create_topic(name)
    yield name
    cluster.heal()


@pytest.fixture
def producer(cluster: EmbeddedCluster, topic: str) -> Iterator[KafkaProducer]:
    keys = {"max_block_ms": 5000, "retry_backoff_ms": 20_000}
    with producer_on(cluster.bootstrap, topic, **keys) as producer:
        producer.init_transactions()
        yield producer


def test_an_abort_drops_a_record_that_is_to_be_sent_again(
    cluster: EmbeddedCluster, topic: str, producer: KafkaProducer
) -> None:
    """Its number is missing then, but the next epoch is the coordinator's to give: with one of its
    own the producer could end no transaction any more."""
    refused = cluster.faults.add("Produce", topic=topic, error="NOT_LEADER_FOR_PARTITION")
    producer.begin_transaction()
    future = producer.send(ProducerRecord(topic, b"gone"))
    until(lambda: producer.metrics()["producer-metrics"]["record-retry-total"])
    producer.abort_transaction(30)
    with pytest.raises(FailedTransaction):
        future.result(0)
    refused.remove()
    for value in (b"first", b"second"):
        with producer.transaction():
            producer.send(ProducerRecord(topic, value))
    committed_values(cluster.bootstrap, topic, [b"first", b"second"])


def test_a_producer_that_goes_on_after_a_failure_is_not_its_own_successor(
    cluster: EmbeddedCluster,
    topic: str,
    producer: KafkaProducer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It asks for its next epoch once its transaction has ended. Where another producer of its name
    has begun just before, the coordinator gives the one behind that producer's, and it ends as a
    fenced one: it would go on beside its successor."""
    refused = cluster.faults.add("Produce", topic=topic, error="NOT_LEADER_FOR_PARTITION")
    producer.begin_transaction()
    producer.send(ProducerRecord(topic, b"gone"))
    until(lambda: producer.metrics()["producer-metrics"]["record-retry-total"])
    refused.remove()
    ask = TransactionalId.init

    def ask_late(of: TransactionalId, timeout_ms: int, give_up_at: float) -> tuple[int, int]:
        ask(of, timeout_ms, give_up_at)  # as a successor does
        return ask(of, timeout_ms, give_up_at)

    monkeypatch.setattr(TransactionalId, "init", ask_late)
    with pytest.raises(ProducerFenced, match="its next epoch is 2, behind 0"):
        producer.abort_transaction(30)
    with pytest.raises(ProducerFenced):
        producer.begin_transaction()


@pytest.mark.parametrize(
    ("partition", "value", "error"),
    [(7, b"lost", UnknownTopicOrPartition), (0, b"x" * 2_000_000, RecordTooLarge)],
    ids=["unknown partition", "too large"],
)
@pytest.mark.parametrize("in_a_list", [False, True], ids=["send", "send_many"])
def test_a_record_that_is_not_accepted_is_not_left_out(
    cluster: EmbeddedCluster,
    topic: str,
    partition: int,
    value: bytes,
    error: type[KafkaError],
    in_a_list: bool,
) -> None:
    """The error is in its future, at which nobody may look: the commit raises it, too."""
    with producer_on(cluster.bootstrap, topic, max_block_ms=1000) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(ProducerRecord(topic, b"with it", partition=0))
        if in_a_list:
            producer.send_many(topic, [value], partition=partition)
        else:
            producer.send(ProducerRecord(topic, value, partition=partition))
        with pytest.raises(error):
            producer.commit_transaction()
        producer.abort_transaction()
        with producer.transaction():
            producer.send(ProducerRecord(topic, b"next"))
    committed_values(cluster.bootstrap, topic, [b"next"])


def test_a_commit_knows_of_a_failure_at_once(
    cluster: EmbeddedCluster, topic: str, producer: KafkaProducer
) -> None:
    """A commit that waited for the record raises its error, also before the record's callback has
    returned."""
    cluster.faults.add("Produce", topic=topic, error="MESSAGE_SIZE_TOO_LARGE")
    is_over = threading.Event()
    producer.begin_transaction()
    producer.send(ProducerRecord(topic, b"gone"), lambda *_: is_over.wait(10))
    with pytest.raises(MessageSizeTooLarge):
        producer.commit_transaction(30)
    is_over.set()
    producer.abort_transaction(30)


def test_a_producer_that_is_forgotten_asks_the_coordinator(
    cluster: EmbeddedCluster, topic: str, producer: KafkaProducer
) -> None:
    """In a transaction it does not go on under an epoch of its own."""
    cluster.faults.add("Produce", topic=topic, error="UNKNOWN_PRODUCER_ID", times=1)
    with pytest.raises(UnknownProducerId), producer.transaction():
        producer.send(ProducerRecord(topic, b"gone"))
    with producer.transaction():
        producer.send(ProducerRecord(topic, b"kept"))
    committed_values(cluster.bootstrap, topic, [b"kept"])


def send_in_block(bootstrap: str, topic: str, unknown: Callable[[], None]) -> None:
    with producer_on(bootstrap, topic, max_block_ms=1000) as producer:
        producer.init_transactions()
        with pytest.raises(RequestTimedOut), producer.transaction():
            producer.send(ProducerRecord(topic, b"kept")).result(30)
        unknown()
        producer.commit_transaction(30)


def send_in_async_block(bootstrap: str, topic: str, unknown: Callable[[], None]) -> None:
    async def send() -> None:
        async with AsyncKafkaProducer(
            bootstrap_servers=bootstrap, transactional_id=topic, max_block_ms=1000
        ) as producer:
            await producer.init_transactions()
            with pytest.raises(RequestTimedOut):
                async with producer.transaction():
                    await (await producer.send(ProducerRecord(topic, b"kept")))
            unknown()
            await producer.commit_transaction(30)

    asyncio.run(send())


@pytest.mark.parametrize("send", [send_in_block, send_in_async_block])
def test_a_block_whose_commit_may_be_done_is_only_committed_again(
    cluster: EmbeddedCluster, topic: str, send: Callable[[str, str, Callable[[], None]], None]
) -> None:
    """Its error is the commit's, not that of an abort, which such a transaction does not allow."""
    late = cluster.faults.add("EndTxn", error="REQUEST_TIMED_OUT")
    send(cluster.bootstrap, topic, late.remove)
    committed_values(cluster.bootstrap, topic, [b"kept"])


def test_transactions_need_a_name_and_a_broker_that_has_them() -> None:
    """The errors say which is missing."""
    with (
        KafkaProducer(bootstrap_servers="127.0.0.1:1") as producer,
        pytest.raises(ConfigError, match=r"need transactional\.id"),
    ):
        producer.init_transactions()
    with pytest.raises(ConfigError, match=r"transactional\.id needs enable\.idempotence"):
        KafkaProducerConfig(bootstrap_servers="h:1", transactional_id="x", enable_idempotence=False)
    with (
        EmbeddedCluster(brokers=1, config={"api.level": "0.10.2"}) as cluster,
        KafkaProducer(bootstrap_servers=cluster.bootstrap, transactional_id="x") as producer,
        pytest.raises(UnsupportedVersion),
    ):
        producer.init_transactions()
