"""Producer on brokers in memory: requests per leader, retries, failures."""

from __future__ import annotations

import random
from typing import Any

import pytest

from kafka08.errors import (
    FailedToSend,
    InvalidMessage,
    LeaderNotAvailable,
    MessageSizeTooLarge,
    NotLeaderForPartition,
    ProducerClosed,
    RequestTimeout,
    UnknownTopicOrPartition,
)
from kafka08.producer import KeyedMessage, Producer, ProducerConfig
from kafka08.protocol.metadata import MetadataRequest
from kafka08.protocol.produce import ProduceRequest
from kafka08.protocol.types import Request, Response
from kafka08.runtime.threads import ThreadRuntime
from kafka08.structs import NO_LEADER, TopicPartition
from tests.client.fake_cluster import PORT, FakeCluster
from tests.network.scripted import Hangup

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster({"t": {0: 1, 1: 2}, "u": {0: 2}})


def producer_on(cluster: FakeCluster, **keys: Any) -> Producer:
    keys.setdefault("request_required_acks", 1)
    config = ProducerConfig(metadata_broker_list=f"b1:{PORT},b2:{PORT}", **keys)
    return Producer(
        config,
        runtime=ThreadRuntime(
            connect=cluster.network.connect, clock=cluster.clock, rng=random.Random(3)
        ),
        partitioner=lambda key, partitions: int(key) % partitions,
        key_encoder=lambda key: b"key %d" % key,
    )


def requests(cluster: FakeCluster) -> list[ProduceRequest]:
    return [r for r in cluster.network.requests(ProduceRequest) if isinstance(r, ProduceRequest)]


def test_it_prints_where_it_sends_and_whether_it_is_closed(cluster: FakeCluster) -> None:
    """repr() has the brokers, whether the producer is closed, and whether it is asynchronous."""
    producer = producer_on(cluster)
    assert repr(producer) == f"<Producer to b1:{PORT},b2:{PORT}, sync>"
    producer.close()
    assert repr(producer) == f"<Producer to b1:{PORT},b2:{PORT}, sync, closed>"


def test_one_request_per_leader(cluster: FakeCluster) -> None:
    """All messages for a broker go in one request. The order within a partition is kept."""
    messages = [KeyedMessage(topic, b"%d" % n, key=n) for n in range(6) for topic in "tu"]
    with producer_on(cluster) as producer:
        producer.send(messages)
    assert len(requests(cluster)) == 2
    assert cluster.messages(T0) == [(b"key %d" % n, b"%d" % n) for n in (0, 2, 4)]
    assert cluster.messages(T1) == [(b"key %d" % n, b"%d" % n) for n in (1, 3, 5)]
    assert len(cluster.messages(U0)) == 6
    assert {(r.required_acks, r.timeout_ms) for r in requests(cluster)} == {(1, 10000)}


def test_nulls_are_sent_as_nulls(cluster: FakeCluster) -> None:
    """Null is sent as null without a call of the encoder."""
    producer_on(cluster).send([KeyedMessage("t", None, key=0), KeyedMessage("u", b"v")])
    assert cluster.messages(T0) == [(b"key 0", None)]
    assert cluster.messages(U0) == [(None, b"v")]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4"])
def test_sets_are_compressed_for_the_topics_named(cluster: FakeCluster, codec: str) -> None:
    """With compressed.topics, compression.codec applies to these topics alone."""
    producer = producer_on(cluster, compression_codec=codec, compressed_topics="t")
    producer.send([KeyedMessage("t", b"x" * 100, key=0), KeyedMessage("t", b"y", key=2)])
    producer.send(KeyedMessage("u", b"z"))
    assert cluster.codecs == [["none", "gzip", "snappy", "lz4"].index(codec), 0]
    assert cluster.messages(T0) == [(b"key 0", b"x" * 100), (b"key 2", b"y")]


def test_a_moved_leader_is_found(cluster: FakeCluster) -> None:
    """A moved leader is found after the backoff and a refresh of the metadata. Messages that were
    stored are not sent again."""
    producer = producer_on(cluster)
    producer.send([KeyedMessage("t", b"a", key=0), KeyedMessage("t", b"b", key=1)])
    cluster.leaders[T0] = 2
    producer.send([KeyedMessage("t", b"c", key=0), KeyedMessage("t", b"d", key=1)])
    assert [value for _, value in cluster.messages(T0)] == [b"a", b"c"]
    assert [value for _, value in cluster.messages(T1)] == [b"b", b"d"]
    assert cluster.clock.slept == [0.1]


def test_a_leader_that_does_not_know_the_topic_yet_is_asked_again(cluster: FakeCluster) -> None:
    """UnknownTopicOrPartition (3) in a Produce response lasts until the broker gets LeaderAndIsr.
    It costs a try, as with the JVM's producer."""
    cluster.refuse(T0, *[UnknownTopicOrPartition.code] * 3)
    producer_on(cluster).send(KeyedMessage("t", b"a", key=0))
    assert cluster.messages(T0) == [(b"key 0", b"a")]
    assert cluster.clock.slept == [0.1] * 3


@pytest.mark.parametrize("retries", [0, 1, 3])
def test_there_are_retries_plus_one_tries(cluster: FakeCluster, retries: int) -> None:
    """message.send.max.retries counts the tries after the first. There is no backoff after the last
    one."""
    cluster.refuse(T0, *[NotLeaderForPartition.code] * 10)
    producer = producer_on(cluster, message_send_max_retries=retries, retry_backoff_ms=7)
    messages = [KeyedMessage("t", b"a", key=0), KeyedMessage("t", b"b", key=1)]
    with pytest.raises(FailedToSend) as caught:
        producer.send(messages)
    assert sum(request.topics[0].partitions[0].partition == 0 for request in requests(cluster)) == (
        retries + 1
    )
    assert cluster.clock.slept == [0.007] * retries
    assert caught.value.messages == (messages[0],)
    assert str(caught.value).startswith(
        f"Failed to send messages after {retries + 1} tries: 1 of 2: 1 for t: "
        "NotLeaderForPartition (6): [t,0] at id:1"
    )
    assert isinstance(caught.value.__cause__, NotLeaderForPartition)
    assert [value for _, value in cluster.messages(T1)] == [b"b"]


def test_an_error_that_is_not_retriable_is_not_retried(cluster: FakeCluster) -> None:
    """A message that is too large for the broker is not sent again. The others of the batch are
    stored."""
    cluster.refuse(T0, MessageSizeTooLarge.code)
    cluster.refuse(T1, NotLeaderForPartition.code)
    with pytest.raises(FailedToSend, match="MessageSizeTooLarge") as caught:
        producer_on(cluster).send([KeyedMessage("t", b"a", key=n) for n in range(4)])
    assert [message.key for message in caught.value.messages] == [0, 2]  # type: ignore[attr-defined]
    assert len(cluster.messages(T1)) == 2
    assert len(requests(cluster)) == 3


def test_an_illegal_topic_fails_alone(cluster: FakeCluster) -> None:
    """An illegal topic fails without a request: 0.8 would refuse all topics of the request."""
    with producer_on(cluster) as producer, pytest.raises(FailedToSend, match="1 of 2") as raised:
        producer.send([KeyedMessage("a b", b"x"), KeyedMessage("u", b"y")])
    assert raised.value.messages == (KeyedMessage("a b", b"x"),)
    assert cluster.messages(U0) == [(None, b"y")]
    asked = cluster.network.requests(MetadataRequest)
    assert [r.topics for r in asked if isinstance(r, MetadataRequest)] == [["u"]]


def test_a_dead_broker_is_survived(cluster: FakeCluster) -> None:
    """A dead broker's partition gets another leader before the retries are used up."""
    producer = producer_on(cluster)
    producer.send(KeyedMessage("t", b"a", key=0))
    cluster.network.remove("b1", PORT)

    def elect(seconds: float) -> None:
        cluster.brokers.remove(1)
        cluster.leaders[T0] = 2

    cluster.clock.sleep = elect  # type: ignore[method-assign]
    producer.send(KeyedMessage("t", b"b", key=0))
    assert [value for _, value in cluster.messages(T0)] == [b"a", b"b"]


@pytest.mark.parametrize("hang_up", [True, False])
def test_a_lost_response_means_a_second_copy(cluster: FakeCluster, hang_up: bool) -> None:
    """If the response is lost after the broker stored the message, the retry stores a second copy:
    at least once."""
    lost = [True]

    def script(request: Request) -> Response | bytes | None:
        response = cluster.respond(1, request)
        if isinstance(request, ProduceRequest) and lost:
            lost.clear()
            if hang_up:
                raise Hangup
            return b""
        return response

    cluster.network.broker("b1", PORT, script)
    producer_on(cluster).send(KeyedMessage("t", b"a", key=0))
    assert cluster.messages(T0) == [(b"key 0", b"a")] * 2


def test_silence_ends_in_a_timeout(cluster: FakeCluster) -> None:
    """A broker that does not answer causes FailedToSend, with RequestTimeout as its cause."""

    def script(request: Request) -> Response | bytes | None:
        return b"" if isinstance(request, ProduceRequest) else cluster.respond(1, request)

    cluster.network.broker("b1", PORT, script)
    with pytest.raises(FailedToSend, match="respond to a ProduceRequest within 12000") as caught:
        producer_on(cluster).send(KeyedMessage("t", b"a", key=0))
    assert isinstance(caught.value.__cause__, RequestTimeout)


def test_a_topic_that_is_being_created_is_waited_for(cluster: FakeCluster) -> None:
    """The metadata request creates the topic, and the producer retries until it has a leader."""
    new = TopicPartition("new", 0)

    def create(seconds: float) -> None:
        cluster.clock.slept.append(seconds)
        cluster.leaders[new] = 1 if len(cluster.clock.slept) == 2 else NO_LEADER

    cluster.clock.sleep = create  # type: ignore[method-assign]
    producer_on(cluster).send(KeyedMessage("new", b"a"))
    assert cluster.messages(new) == [(None, b"a")]
    assert len(cluster.clock.slept) == 2


def test_a_partition_without_leader_fails_alone(cluster: FakeCluster) -> None:
    """A partition without leader fails alone. The rest of the batch is sent at the first try."""
    cluster.leaders[T0] = NO_LEADER
    with pytest.raises(FailedToSend, match="LeaderNotAvailable") as caught:
        producer_on(cluster).send([KeyedMessage("t", b"a", key=0), KeyedMessage("t", b"b", key=1)])
    assert len(requests(cluster)) == 1
    assert cluster.messages(T1) == [(b"key 1", b"b")]
    assert isinstance(caught.value.__cause__, LeaderNotAvailable)


def test_without_any_broker_everything_fails(cluster: FakeCluster) -> None:
    """Without any broker all messages fail, after all tries."""
    cluster.down(1)
    cluster.down(2)
    messages = [KeyedMessage("t", b"a"), KeyedMessage("u", b"b")]
    with pytest.raises(FailedToSend, match="2 of 2: 1 for t: no broker responded") as caught:
        producer_on(cluster).send(messages)
    assert caught.value.messages == tuple(messages)


def test_acks_0_is_not_answered(cluster: FakeCluster) -> None:
    """With acks 0 the producer waits for no response, and the messages are stored."""
    producer = producer_on(cluster, request_required_acks=0)
    for n in range(5):
        producer.send(KeyedMessage("t", b"%d" % n, key=0))
    assert [value for _, value in cluster.messages(T0)] == [b"%d" % n for n in range(5)]
    assert cluster.network.opened.count(("b1", PORT)) <= 2


def test_acks_0_notices_the_closed_connection_and_looks_for_the_leader(
    cluster: FakeCluster,
) -> None:
    """With acks 0, if the former leader closes the connection, the first send is lost, as acks 0
    allows. The next one goes to the new leader."""
    producer = producer_on(cluster, request_required_acks=0)
    producer.send(KeyedMessage("t", b"a", key=0))
    cluster.leaders[T0] = 2
    producer.send(KeyedMessage("t", b"lost", key=0))
    producer.send(KeyedMessage("t", b"c", key=0))
    assert [value for _, value in cluster.messages(T0)] == [b"a", b"c"]


def test_metadata_is_refreshed_by_age(cluster: FakeCluster) -> None:
    """After topic.metadata.refresh.interval.ms one request refreshes all topics that were sent
    to."""
    producer = producer_on(cluster, topic_metadata_refresh_interval_ms=60_000)
    producer.send([KeyedMessage("t", b"a", key=0), KeyedMessage("u", b"a")])
    producer.send(KeyedMessage("t", b"b", key=0))
    cluster.clock.advance(61)
    producer.send(KeyedMessage("t", b"c", key=0))
    producer.send(KeyedMessage("t", b"d", key=0))
    assert cluster.network.requests(MetadataRequest) == [MetadataRequest(["t", "u"])] * 2


def test_topics_that_are_not_used_any_more_are_not_refreshed(cluster: FakeCluster) -> None:
    """Each refresh by age asks for the topics that were sent to since the last one: to ask for one
    that was deleted might create it again."""
    producer = producer_on(cluster, topic_metadata_refresh_interval_ms=60_000)
    producer.send([KeyedMessage("t", b"a", key=0), KeyedMessage("u", b"a")])
    for _ in range(2):
        cluster.clock.advance(61)
        producer.send(KeyedMessage("t", b"b", key=0))
    first, *refreshes = cluster.network.requests(MetadataRequest)
    assert [MetadataRequest(["t", "u"]), MetadataRequest(["t"])] == refreshes
    assert first == refreshes[0]


def test_an_idle_topic_is_forgotten(cluster: FakeCluster) -> None:
    """As a KafkaProducer does it: a producer for topics that come and go would grow for ever. A
    later message works as the first did."""
    producer = producer_on(cluster)
    handler: Any = producer._handler
    producer.send([KeyedMessage("t", b"a", key=0), KeyedMessage("u", b"a")])
    for expected in ({"t", "u"}, {"u"}):
        cluster.clock.advance(301)
        producer.send(KeyedMessage("u", b"b"))
        assert handler._cluster.metadata.topics.keys() == expected
        assert handler._stats._topics.keys() == expected
    producer.send(KeyedMessage("t", b"c", key=0))
    assert [value for _, value in cluster.messages(T0)] == [b"a", b"c"]


@pytest.mark.parametrize("retries", [0, 1])
def test_a_leader_that_moved_is_looked_up_by_the_next_call(
    cluster: FakeCluster, retries: int
) -> None:
    """After the last try, too, the leaders are looked up again, without a backoff: without retries
    no message would be sent before topic.metadata.refresh.interval.ms is over."""
    producer = producer_on(cluster, message_send_max_retries=retries, retry_backoff_ms=7)
    producer.send(KeyedMessage("t", b"a", key=0))
    cluster.refuse(T0, *[NotLeaderForPartition.code] * (retries + 1))
    with pytest.raises(FailedToSend):
        producer.send(KeyedMessage("t", b"b", key=0))
    cluster.leaders[T0] = 2
    producer.send([KeyedMessage("t", b"c", key=0), KeyedMessage("u", b"d")])
    assert [value for _, value in cluster.messages(T0)] == [b"a", b"c"]
    assert cluster.clock.slept == [0.007] * retries


def test_a_damaged_set_is_sent_again(cluster: FakeCluster) -> None:
    """A set whose CRC is wrong at the broker was damaged on its way: the retry is not."""
    cluster.refuse(T0, InvalidMessage.code)
    producer_on(cluster, message_send_max_retries=1).send(KeyedMessage("t", b"a", key=0))
    assert cluster.messages(T0) == [(b"key 0", b"a")]


def test_a_negative_interval_refreshes_only_after_failures(cluster: FakeCluster) -> None:
    """With a negative interval the producer refreshes after failures alone, and keeps its random
    partition until then."""
    producer = producer_on(cluster, topic_metadata_refresh_interval_ms=-1)
    for _ in range(10):
        producer.send(KeyedMessage("t", b"a"))
        cluster.clock.advance(10_000)
    assert len(cluster.network.requests(MetadataRequest)) == 1
    assert sorted([len(cluster.messages(T0)), len(cluster.messages(T1))]) == [0, 10]


def test_a_random_partition_without_leader_is_drawn_again(cluster: FakeCluster) -> None:
    """After a failure the producer draws among the partitions that have a leader now."""
    producer = producer_on(cluster)
    producer.send(KeyedMessage("t", b"a"))
    first, other = (T0, T1) if cluster.messages(T0) else (T1, T0)
    cluster.leaders[first] = NO_LEADER
    cluster.refuse(first, NotLeaderForPartition.code)
    producer.send(KeyedMessage("t", b"b"))
    assert cluster.messages(other) == [(None, b"b")]


def test_an_encoder_that_fails_sends_nothing(cluster: FakeCluster) -> None:
    """An encoder's error reaches the caller before anything is sent."""
    with pytest.raises(TypeError, match="DefaultEncoder takes bytes"):
        producer_on(cluster).send(
            [KeyedMessage("t", b"a", key=0), KeyedMessage("t", "text", key=0)]
        )
    assert requests(cluster) == []


def test_a_message_needs_a_topic(cluster: FakeCluster) -> None:
    """A message without topic is an error, as in the JVM, and nothing of its batch is sent."""
    with pytest.raises(ValueError, match="topic"):
        producer_on(cluster).send([KeyedMessage("t", b"x", key=0), KeyedMessage("", b"x")])
    assert requests(cluster) == []


def test_a_closed_producer_says_so(cluster: FakeCluster) -> None:
    """A call after close() is ProducerClosed, also with an empty batch. close() may be called
    twice."""
    producer = producer_on(cluster)
    producer.send([])
    producer.close()
    producer.close()
    with pytest.raises(ProducerClosed):
        producer.send([])


def test_many_reasons_are_cut_short(cluster: FakeCluster) -> None:
    """The text of the error lists the first reasons. `messages` has all messages."""
    messages = [KeyedMessage(f"missing-{n}", b"") for n in range(50)]
    with pytest.raises(FailedToSend, match=r"50 of 50: .*45 more reasons$") as caught:
        producer_on(cluster, message_send_max_retries=0).send(messages)
    assert len(caught.value.messages) == 50


def test_a_response_about_other_partitions_is_a_failure(cluster: FakeCluster) -> None:
    """A partition that the response leaves out does not count as stored."""

    def script(request: Request) -> Response | None:
        response = cluster.respond(1, request)
        if isinstance(request, ProduceRequest) and response is not None:
            response.topics.clear()  # type: ignore[attr-defined]
        return response

    cluster.network.broker("b1", PORT, script)
    with pytest.raises(FailedToSend, match="other partitions than those requested"):
        producer_on(cluster).send(KeyedMessage("t", b"a", key=0))


def test_connections_are_reused(cluster: FakeCluster) -> None:
    """All sends use one connection per broker."""
    producer = producer_on(cluster)
    for n in range(10):
        producer.send([KeyedMessage("t", b"a", key=n), KeyedMessage("t", b"a", key=n + 1)])
    assert sorted(cluster.network.opened) == [("b1", PORT), ("b2", PORT)]


def test_connections_that_broke_while_idle_are_replaced(cluster: FakeCluster) -> None:
    """A connection that the broker closed while it was idle is replaced without an error; no
    message is lost or stored twice."""
    producer = producer_on(cluster)
    producer.send(KeyedMessage("t", b"a", key=0))
    for sock in cluster.network.sockets:
        sock.broken = True
    producer.send(KeyedMessage("t", b"b", key=0))
    assert len(cluster.messages(T0)) == 2


def test_metrics_count_messages_sets_and_requests(cluster: FakeCluster) -> None:
    """Metrics have the names that 0.8 uses in JMX: for all topics and brokers, and for each."""
    cluster.refuse(T0, NotLeaderForPartition.code)
    messages = [KeyedMessage("t", b"a" * 50, key=n) for n in range(4)]
    with producer_on(cluster) as producer:
        producer.send([*messages, KeyedMessage("u", b"b")])
        found = producer.metrics()
    of_all, of_u = found["ProducerTopicMetrics"], found["ProducerTopicMetrics.u"]
    assert (5, 1) == (of_all["MessagesPerSec.Count"], of_u["MessagesPerSec.Count"])
    assert of_all["MessagesPerSec.OneMinuteRate"] > 0
    # The set of T0 goes twice.
    assert 6 * 50 < of_all["BytesPerSec.Count"] < 6 * 100
    stats = found["ProducerStats"]
    assert (1, 0) == (stats["ResendsPerSec.Count"], stats["FailedSendsPerSec.Count"])
    requested = found["ProducerRequestMetrics"]
    assert len(requests(cluster)) == requested["ProducerRequestRateAndTimeMs.Count"] == 3
    assert 2 == found[f"ProducerRequestMetrics.b1:{PORT}"]["ProducerRequestRateAndTimeMs.Count"]
    assert 0 < requested["ProducerRequestSize.Mean"] <= requested["ProducerRequestSize.Max"]
    assert "ProducerSendThread" not in found


def test_metrics_count_abandoned_batches(cluster: FakeCluster) -> None:
    """A batch that is given up counts once, and so does a message that cannot be encoded."""
    cluster.refuse(T0, MessageSizeTooLarge.code)
    with producer_on(cluster) as producer:
        with pytest.raises(FailedToSend):
            producer.send(KeyedMessage("t", b"a", key=0))
        stats = producer.metrics()["ProducerStats"]
    assert (0, 1) == (stats["ResendsPerSec.Count"], stats["FailedSendsPerSec.Count"])
    fussy = producer_on(cluster, producer_type="async")
    fussy.send(KeyedMessage("t", 5, key=0))
    fussy.close()
    assert 1 == fussy.metrics()["ProducerStats"]["SerializationErrorsPerSec.Count"]
