"""An idempotent producer: nothing is stored twice or in another order, whatever is lost."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from math import inf
from typing import Any

import pytest

from kafka08.config import INT_MAX
from kafka08.errors import (
    ConfigError,
    ConnectionFailed,
    ConsumerCoordinatorNotAvailable,
    KafkaError,
    MessageSizeTooLarge,
    NotEnoughReplicas,
    NotLeaderForPartition,
    OutOfOrderSequence,
    RequestTimedOut,
    RequestTimeout,
    UnknownProducerId,
    UnknownTopicOrPartition,
    UnsupportedForMessageFormat,
    UnsupportedVersion,
)
from kafka08.format import batches
from kafka08.levels import Level
from kafka08.producer import KafkaProducer, KafkaProducerConfig, ProducerRecord
from kafka08.producer.batch import RecordBatch
from kafka08.producer.idempotence import EPOCH_MAX, Idempotence, Identity
from kafka08.producer.sequences import Sequences
from kafka08.protocol.init_producer_id import InitProducerIdRequest
from tests.producer.producers import SECONDS, U0, config_on, values
from tests.producer.tcp_cluster import TcpCluster

ME = Identity(7, 0)
SENT = [b"%d" % n for n in range(30)]


@pytest.fixture
def cluster() -> Iterator[TcpCluster]:
    """Two brokers of 0.11; 2 leads [u,0]."""
    with TcpCluster({"t": {0: 1, 1: 2}, "u": {0: 2}}) as cluster:
        cluster.levels = dict.fromkeys(cluster.levels, Level.V0_11_0)
        cluster.is_later = True
        yield cluster


def producer_on(cluster: TcpCluster, **keys: Any) -> KafkaProducer:
    """A batch for each record."""
    usual: dict[str, Any] = {
        "api_version_request": True,
        "enable_idempotence": True,
        "retry_backoff_ms": 5,
        "reconnect_backoff_ms": 5,
        "batch_size": 1,
    }
    return KafkaProducer(config_on(cluster, **{**usual, **keys}))


def sent_as(cluster: TcpCluster) -> list[tuple[int, int, int]]:
    """(producer id, epoch, sequence) of each batch that arrived."""
    return [
        (batch.producer_id, batch.producer_epoch, batch.base_sequence)
        for request in cluster.produced()
        for topic in request.topics
        for part in topic.partitions
        for batch in batches(part.message_set)
    ]


# ---------------------------------------------------------------------------------- the rules


def batch() -> RecordBatch:
    return RecordBatch(U0, 0, 1, 0.0, magic=2, count=2)


def given(count: int) -> tuple[Sequences, list[RecordBatch]]:
    """So many batches in flight to a broker that has stored one of ours."""
    sequences, first, some = Sequences(), batch(), [batch() for _ in range(count)]
    sequences.give(first, ME)
    sequences.end(first, None)
    for in_flight, one in enumerate(some):
        assert sequences.may_send(one, in_flight)
        sequences.give(one, ME)
    return sequences, some


def test_a_batch_keeps_its_sequence() -> None:
    """Each record has a number; five batches at most are on their way."""
    sequences, some = given(5)
    assert [one.sent_as for one in some] == [(7, 0, 2 + 2 * n) for n in range(5)]
    assert not sequences.may_send(batch(), 5)
    sequences.end(some[0], None)
    assert sequences.may_send(batch(), 4)


def test_the_first_batch_goes_alone() -> None:
    """Until the partition has stored it, also under a new id, and after it forgot the producer."""
    sequences, first = Sequences(), batch()
    sequences.give(first, ME)
    assert not sequences.may_send(batch(), 1)
    assert sequences.passes(first, NotLeaderForPartition()) is None
    sequences.put_back(first, deque())
    assert sequences.may_send(first, 0)
    sequences.end(first, None)
    for _ in range(2):
        second = batch()
        assert sequences.may_send(second, 0)
        sequences.give(second, ME)
    sequences.passes(second, UnknownProducerId())
    assert not sequences.may_send(batch(), 2)
    sequences.restart()
    sequences.give(batch(), Identity(8, 0))
    assert not sequences.may_send(batch(), 1)


def test_numbers_wrap_around() -> None:
    """The next one after 2**31 - 1 is 0."""
    sequences, large = Sequences(), batch()
    large.count = (1 << 31) - 1
    sequences.give(large, ME)
    following = [batch(), batch()]
    for one in following:
        sequences.give(one, ME)
    assert [one.sent_as for one in following] == [(7, 0, (1 << 31) - 1), (7, 0, 1)]


def test_a_batch_that_is_sent_again_goes_first() -> None:
    """By itself, before those behind it and new ones; it keeps its place among them."""
    sequences, (first, second, third) = given(3)
    waiting: deque[RecordBatch] = deque([batch()])
    for one in (second, third, first):
        assert sequences.passes(one, OutOfOrderSequence()) is (one is not first)
        sequences.put_back(one, waiting)
    assert list(waiting)[:3] == [first, second, third]
    assert sequences.may_send(first, 0)
    assert not sequences.may_send(second, 1)
    sequences.end(first, None)
    assert sequences.may_send(second, 0)


def test_after_a_batch_that_is_not_stored_comes_the_next_epoch() -> None:
    """As soon as no batch of this one is in flight: those behind it begin from 0."""
    sequences, (first, second, third) = given(3)
    sequences.end(first, MessageSizeTooLarge())
    assert sequences.passes(third, OutOfOrderSequence()) is True
    assert not sequences.may_send(second, 1)
    assert not sequences.may_send(batch(), 1)
    assert sequences.may_send(second, 0)
    for one in (second, third):
        sequences.give(one, ME)
    assert [one.sent_as for one in (second, third)] == [(7, 1, 0), (7, 1, 2)]


@pytest.mark.parametrize(
    "error",
    [
        ConnectionFailed("lost"),
        RequestTimedOut(),
        NotLeaderForPartition("a leader that waited for its followers"),
        UnknownTopicOrPartition("a leader whose replica was taken away while it waited"),
    ],
)
@pytest.mark.parametrize("attempts", [0, 1])
def test_what_may_be_stored_keeps_its_sequence(error: KafkaError, attempts: int) -> None:
    """After a batch whose result nobody knows, those behind it are sent as they were, one by one,
    until the broker says which it lacks. So after any batch that was sent more than once."""
    sequences, (first, second, third) = given(3)
    first.attempts = attempts
    sequences.end(first, NotEnoughReplicas() if attempts else error)
    assert sequences.may_send(second, 0)
    assert not sequences.may_send(second, 1)
    assert second.sent_as == (7, 0, 4)
    sequences.end(second, None)
    assert sequences.passes(third, OutOfOrderSequence()) is True
    assert sequences.may_send(third, 0)
    sequences.give(third, ME)
    assert third.sent_as == (7, 1, 0)


def test_a_broker_that_lacks_what_it_had() -> None:
    """An error for the oldest batch is final: records in front of it are lost."""
    sequences, (first, second) = given(2)
    assert sequences.passes(first, OutOfOrderSequence()) is False
    sequences.end(first, OutOfOrderSequence())
    assert sequences.may_send(second, 0)
    sequences.give(second, ME)
    assert second.sent_as == (7, 1, 0)


def test_a_broker_that_has_forgotten_the_producer() -> None:
    """The batch is sent under the next epoch, unless an earlier attempt may have been stored."""
    sequences, (first, second) = given(2)
    assert sequences.passes(first, UnknownProducerId()) is True
    assert sequences.passes(second, UnknownProducerId()) is True
    assert sequences.may_send(first, 0)
    sequences.give(first, ME)
    assert first.sent_as == (7, 1, 0)
    first.attempts = 1
    assert sequences.passes(first, UnknownProducerId()) is None


def test_the_last_epoch_needs_another_id() -> None:
    """It goes on with the newest id of the producer."""
    sequences, one = Sequences(), batch()
    sequences.give(one, Identity(7, EPOCH_MAX))
    assert sequences.identity == Identity(7, EPOCH_MAX)
    sequences.end(one, MessageSizeTooLarge())
    following = batch()
    assert sequences.may_send(following, 0)
    sequences.give(following, Identity(8, 0))
    assert following.sent_as == (8, 0, 0)


# ---------------------------------------------------------------------------------- with brokers


def send_all(producer: KafkaProducer) -> list[int]:
    futures = [producer.send(ProducerRecord("u", value)) for value in SENT]
    return [future.result(SECONDS).offset for future in futures]


def test_batches_are_numbered(cluster: TcpCluster) -> None:
    """All under the id that one broker gave, with acks=all."""
    with producer_on(cluster) as producer:
        assert send_all(producer) == list(range(30))
    assert sent_as(cluster) == [(7, 0, n) for n in range(30)]
    assert {request.required_acks for request in cluster.produced()} == {-1}
    asked = [one for _, one in cluster.asked if isinstance(one, InitProducerIdRequest)]
    assert len(asked) == 1


@pytest.mark.parametrize("cuts", [(0,), (0, 0, 0), (5, -1, 0)])
def test_lost_responses_store_nothing_twice(cluster: TcpCluster, cuts: tuple[int, ...]) -> None:
    """The batches that were in flight are sent again as they were."""
    with producer_on(cluster) as producer:
        send_all(producer)
        cluster.cut(*cuts)
        assert send_all(producer) == list(range(30, 60))
    assert values(cluster, U0) == SENT + SENT
    assert {epoch for _, epoch, _ in sent_as(cluster)} == {0}


def test_a_refusal_changes_no_order(cluster: TcpCluster) -> None:
    """While one batch is sent again, those behind it wait."""
    with producer_on(cluster) as producer:
        send_all(producer)
        cluster.refuse(U0, 0, 0, NotLeaderForPartition.code, 0, NotLeaderForPartition.code)
        assert send_all(producer) == list(range(30, 60))
    assert values(cluster, U0) == SENT + SENT


def test_a_record_that_is_refused_fails_alone(cluster: TcpCluster) -> None:
    """The others are stored in their order, under the next epoch."""
    cluster.guilty = b"17"
    with producer_on(cluster) as producer:
        futures = [producer.send(ProducerRecord("u", value)) for value in SENT]
        for value, future in zip(SENT, futures, strict=True):
            if value == b"17":
                with pytest.raises(MessageSizeTooLarge):
                    future.result(SECONDS)
            else:
                future.result(SECONDS)
    assert values(cluster, U0) == [value for value in SENT if value != b"17"]
    assert {epoch for _, epoch, _ in sent_as(cluster)} == {0, 1}


@pytest.mark.parametrize("keys", [{}, {"enable_idempotence": None, "request_timeout_ms": 300}])
def test_a_wait_for_a_producer_id_ends(cluster: TcpCluster, keys: dict[str, Any]) -> None:
    """With the error of the broker that gives none, as one without ZooKeeper."""
    cluster.id_error = ConsumerCoordinatorNotAvailable.code
    with producer_on(cluster, **{"delivery_timeout_ms": 300, **keys}) as producer:
        future = producer.send(ProducerRecord("u", b"a"))
        with pytest.raises(RequestTimeout, match="no broker gave a producer id within 300 ms: "):
            future.result(SECONDS)
        cluster.id_error = 0
        producer.send(ProducerRecord("u", b"b")).result(SECONDS)
    assert values(cluster, U0) == [b"b"]


def test_an_old_broker_gets_nothing(cluster: TcpCluster) -> None:
    """It may store a record twice; the error says so."""
    cluster.is_later = False
    cluster.levels = dict.fromkeys(cluster.levels, Level.V0_10_2)
    with producer_on(cluster) as producer:
        future = producer.send(ProducerRecord("u", b"a"))
        with pytest.raises(UnsupportedVersion, match=r"needs brokers from 0\.11"):
            future.result(SECONDS)
    assert cluster.produced() == []


def test_where_nothing_is_said_it_is_wanted(cluster: TcpCluster) -> None:
    """Brokers of 0.11 get sequences, with acks=all, and what is lost again. Older ones get none,
    with acks=1, and a refusal is the end."""
    with producer_on(cluster, enable_idempotence=None) as producer:
        send_all(producer)
        cluster.cut(0)
        cluster.refuse(U0, NotLeaderForPartition.code)
        assert send_all(producer) == list(range(30, 60))
    assert values(cluster, U0) == SENT + SENT
    assert sent_as(cluster)[0] == (7, 0, 0)
    assert {request.required_acks for request in cluster.produced()} == {-1}
    cluster.is_later = False
    cluster.levels = dict.fromkeys(cluster.levels, Level.V0_10_2)
    with producer_on(cluster, enable_idempotence=None) as producer:
        producer.send(ProducerRecord("u", b"a")).result(SECONDS)
        cluster.refuse(U0, NotLeaderForPartition.code)
        refused = producer.send(ProducerRecord("u", b"b"))
        with pytest.raises(NotLeaderForPartition):
            refused.result(SECONDS)
    assert sent_as(cluster)[-1] == (-1, -1, -1)
    assert cluster.produced()[-1].required_acks == 1


@pytest.mark.parametrize(
    ("keys", "plain", "once"),
    [
        ({}, (1, 0, inf), (-1, INT_MAX, 120)),
        ({"acks": "all"}, (-1, 0, inf), (-1, INT_MAX, 120)),
        ({"retries": 3}, (1, 3, inf), (-1, 3, inf)),
        ({"delivery_timeout_ms": 5000}, (1, 0, 5), (-1, INT_MAX, 5)),
        ({"acks": "all", "retries": 3}, (-1, 3, inf), (-1, 3, inf)),
    ],
)
def test_what_is_set_counts_with_every_broker(
    keys: dict[str, Any], plain: tuple[int, int, float], once: tuple[int, int, float]
) -> None:
    """Unset, acks and retries are those of 0.8.2.2, and those of Kafka 3 with idempotence."""
    config = KafkaProducerConfig(bootstrap_servers="h:1", **keys)
    assert config.idempotence is Idempotence.WANTED
    assert (config.terms(once=False), config.terms(once=True)) == (plain, once)


def test_a_topic_of_an_older_format_gets_no_sequences(
    cluster: TcpCluster, caplog: pytest.LogCaptureFixture
) -> None:
    """Where they are only wanted: everything is stored in its order, also after a refusal."""
    cluster.stores_ids = False
    with producer_on(cluster, enable_idempotence=None, acks="all", retries=3) as producer:
        assert send_all(producer) == list(range(30))
        cluster.refuse(U0, 0, NotLeaderForPartition.code)
        assert send_all(producer) == list(range(30, 60))
    assert values(cluster, U0) == SENT + SENT
    assert "retries may store records twice" in caplog.text
    assert sent_as(cluster)[-1] == (-1, -1, -1)


def test_sequences_that_are_required_are_not_given_up(cluster: TcpCluster) -> None:
    """The record fails."""
    cluster.stores_ids = False
    with producer_on(cluster) as producer:
        future = producer.send(ProducerRecord("u", b"a"))
        with pytest.raises(UnsupportedForMessageFormat):
            future.result(SECONDS)
    assert values(cluster, U0) == []


@pytest.mark.parametrize(
    ("keys", "named"),
    [
        ({"acks": "1"}, "acks all"),
        ({"retries": 0}, "retries above 0"),
        ({"max_in_flight_requests_per_connection": 6}, "5 at most"),
    ],
)
def test_settings_that_contradict_it(keys: dict[str, Any], named: str) -> None:
    """With true they are an error; without the key they turn it off."""
    with pytest.raises(ConfigError, match=named):
        KafkaProducerConfig(bootstrap_servers="h:1", enable_idempotence=True, **keys)
    config = KafkaProducerConfig(bootstrap_servers="h:1", **keys)
    assert config.idempotence is Idempotence.OFF
