"""KafkaProducer.metrics: records that were stored, sent again or given up."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka08.errors import NotLeaderForPartition
from kafka08.producer import ProducerRecord
from kafka08.producer.batch import RecordBatch
from kafka08.producer.sender_metrics import SenderMetrics
from kafka08.structs import TopicPartition
from tests.producer.producers import SECONDS, producer_on
from tests.producer.tcp_cluster import TcpCluster

T0 = TopicPartition("t", 0)
TOTALS = ("record-send", "byte")


@pytest.fixture
def cluster() -> Iterator[TcpCluster]:
    with TcpCluster({"t": {0: 1}, "u": {0: 1}}) as cluster:
        yield cluster


def test_a_request_counts_all_its_batches() -> None:
    """Records and bytes of all batches of a partition, mean and largest of batches."""
    batches = [RecordBatch(T0, 0, 100, created, count=count) for created, count in ((5, 2), (4, 3))]
    metrics = SenderMetrics()
    metrics.sent([(batches, [10, 30])], 6.0)
    every, topic = metrics.values(6.0), metrics.topics(6.0)["t"]
    assert [5, 40, 5, 40] == [of[f"{name}-total"] for of in (every, topic) for name in TOTALS]
    assert (20, 30) == (every["batch-size-avg"], every["batch-size-max"])
    assert (1500, 2000) == (every["record-queue-time-avg"], every["record-queue-time-max"])
    assert 5 == every["records-per-request-avg"]


def test_records_and_bytes_are_counted_by_topic_and_together(cluster: TcpCluster) -> None:
    """Records and bytes count by topic and in total, by Java's names. A rate is that of the window
    so far."""
    with producer_on(cluster) as producer:
        for topic, count in (("t", 30), ("u", 12)):
            for _ in range(count):
                producer.send(ProducerRecord(topic, b"x" * 100)).result(SECONDS)
        found = producer.metrics()
    every = found["producer-metrics"]
    assert 42 == every["record-send-total"]
    assert 30 == found["producer-topic-metrics.t"]["record-send-total"]
    assert 12 * 100 < found["producer-topic-metrics.u"]["byte-total"] < 12 * 200
    assert 0 < every["record-send-rate"] < 42
    assert 0 < every["request-latency-avg"] <= every["request-latency-max"] < SECONDS * 1000
    assert 0 == every["record-error-total"] == every["record-retry-total"]
    assert every["buffer-total-bytes"] == every["buffer-available-bytes"]
    assert 1 <= every["connection-count"]


def test_a_batch_that_is_sent_again_counts_as_a_retry_and_not_as_an_error(
    cluster: TcpCluster,
) -> None:
    """A batch that is sent again counts as a retry and not as an error, and as sent each time, as
    in Java."""
    cluster.refuse(T0, NotLeaderForPartition.code)
    with producer_on(cluster, retries=3) as producer:
        producer.send(ProducerRecord("t", b"x")).result(SECONDS)
        every = producer.metrics()["producer-metrics"]
    assert (1, 0, 2) == tuple(every[f"record-{what}-total"] for what in ("retry", "error", "send"))


def test_a_record_that_is_given_up_is_an_error(cluster: TcpCluster) -> None:
    """A record that is given up counts as an error, also for its topic."""
    cluster.guilty = b"x"
    with producer_on(cluster) as producer:
        assert producer.send(ProducerRecord("t", b"x")).exception(SECONDS) is not None
        found = producer.metrics()
    assert 1 == found["producer-metrics"]["record-error-total"]
    assert 1 == found["producer-topic-metrics.t"]["record-error-total"]
