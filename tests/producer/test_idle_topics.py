"""What a KafkaProducer forgets. A topic that it has not written to for five minutes: to ask for its
metadata would create it again after its deletion. And the partitions of one that brokers do not
know any more."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from kafka08.errors import RequestTimeout, TopicMissing
from kafka08.producer import KafkaProducer, ProducerRecord, sender
from kafka08.protocol.metadata import MetadataRequest
from tests.producer.producers import SECONDS, T0, U0, producer_on, values
from tests.producer.tcp_cluster import TcpCluster
from tests.waiting import until


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "TOPIC_EXPIRY_S", 0.0)


def ask_for_metadata(producer: KafkaProducer, cluster: TcpCluster) -> list[str] | None:
    """Have it ask; the topics of the request."""
    asked = len(cluster.asked)

    def requests() -> list[MetadataRequest]:
        return [r for _, r in cluster.asked[asked:] if isinstance(r, MetadataRequest)]

    producer._routes.metadata.request_update()
    producer._network.wake_up()
    until(lambda: bool(requests()))
    return requests()[0].topics


def test_an_idle_topic_is_named_no_more(cluster: TcpCluster) -> None:
    """Its queues, route and metrics go, and a later record works as the first did. One with a
    record that waits stays."""
    with producer_on(cluster, linger_ms=60_000) as producer:
        producer.send(ProducerRecord("t", b"1", partition=0))
        producer.flush()
        producer.send(ProducerRecord("u", b"2", partition=0))
        assert ask_for_metadata(producer, cluster) == ["u"]
        assert [queue.tp for queue in producer._accumulator.queues()] == [U0]
        assert list(producer._routes.by_topic) == ["u"]
        until(lambda: "t" not in producer._routes.metadata.cluster.topics)
        assert not [name for name in producer.metrics() if name.endswith(".t")]
        producer.send(ProducerRecord("t", b"3", partition=0))
    assert values(cluster, T0) == [b"1", b"3"]
    assert values(cluster, U0) == [b"2"]


def test_a_record_whose_topic_is_forgotten_meanwhile_is_sent(cluster: TcpCluster) -> None:
    """A thread may have found the queue before, and append to it after."""
    with producer_on(cluster) as producer:
        producer.send(ProducerRecord("t", b"1", partition=0)).result(SECONDS)
        queue = producer._routes.by_topic["t"].queues[0]
        producer._routes.forget(producer._accumulator.forget_idle(float("inf")))
        queue.leader = None
        future = producer._append(queue, None, b"2", None, -1)
        assert future.result(SECONDS).offset == 1


def test_a_deleted_topic_is_missing_like_one_that_never_was(
    cluster: TcpCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its records used to go to the leaders that it had, each to be refused; now they wait for
    metadata, as Java's do, and for the topic if it is created again. Other topics go on."""
    monkeypatch.setattr(sender, "TOPIC_EXPIRY_S", 300.0)
    with producer_on(cluster, max_block_ms=200) as producer:
        producer.send(ProducerRecord("t", b"1", partition=0)).result(SECONDS)
        producer.send(ProducerRecord("u", b"2", partition=0)).result(SECONDS)
        leaders = {tp: cluster.leaders.pop(tp) for tp in [*cluster.leaders] if tp.topic == "t"}
        ask_for_metadata(producer, cluster)
        until(lambda: "t" not in producer._routes.by_topic)
        with pytest.raises(TopicMissing, match="no metadata of topic t within 200 ms"):
            producer.send(ProducerRecord("t", b"lost", partition=0)).result(SECONDS)
        producer.send(ProducerRecord("u", b"3", partition=0)).result(SECONDS)
        cluster.leaders.update(leaders)
        producer.send(ProducerRecord("t", b"4", partition=0)).result(SECONDS)
    assert values(cluster, T0) == [b"1", b"4"]


def test_silence_does_not_say_that_a_topic_is_missing(cluster: TcpCluster) -> None:
    """Brokers that knew none once, and then answered nothing, may have it by now: a mirror that
    skips what is missing would drop its messages."""
    with producer_on(cluster, max_block_ms=2000) as producer, ThreadPoolExecutor(1) as thread:
        sent = thread.submit(producer.send, ProducerRecord("none", b"1"))
        until(lambda: "none" in producer._routes.metadata.cluster.topics, "a first answer")
        for broker in cluster.levels:
            cluster.pause(broker)
        error = sent.result(SECONDS).exception(SECONDS)
        for broker in cluster.levels:
            cluster.resume(broker)
    assert type(error) is RequestTimeout
