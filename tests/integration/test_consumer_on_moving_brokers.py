"""Guarantee 6: three brokers of ours are restarted one after the other under a consumer."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from kafka08.admin import AdminClient
from kafka08.client import ClusterClient, RetryPolicy, parse_bootstrap
from kafka08.client.requests import produce_request, produce_results
from kafka08.consumer import ConsumerConfig, ConsumerConnector, KafkaStream
from kafka08.embedded.cluster import EmbeddedCluster
from kafka08.errors import check
from kafka08.network.connection import Connection
from kafka08.protocol import message_set
from kafka08.protocol.produce import ProduceResponse
from kafka08.structs import TopicPartition
from tests.waiting import until

PARTITIONS = 6
BATCH = 50
CONFIG = {
    "zookeeper.session.timeout.ms": "3000",
    "controlled.shutdown.retry.backoff.ms": "100",
    "delete.topic.enable": "true",
}


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(brokers=3, level="0.8.2", config=CONFIG) as running:
        running.create_topic("moving", PARTITIONS, 3)
        yield running


def produce(client: ClusterClient, round_: int) -> None:
    """Produce BATCH messages to each partition with acks=-1. A lost response may store a batch
    twice."""
    values = [(None, b"%d" % (round_ * BATCH + n)) for n in range(BATCH)]
    data = message_set.encode(values)
    for number in range(PARTITIONS):
        tp = TopicPartition("moving", number)

        def send(connection: Connection, tp: TopicPartition = tp) -> None:
            request = produce_request({tp: data}, required_acks=-1, timeout_ms=5000)
            response = connection.send(request)
            assert isinstance(response, ProduceResponse)
            code = produce_results(response)[tp].error_code
            check(code, str(tp))

        client.at_leader(tp, send)


def read(stream: KafkaStream[bytes, bytes], seen: list[tuple[int, int, int]]) -> None:
    for message in stream:
        seen.append((message.partition, message.offset, int(message.value or -1)))


def test_guarantee_6_brokers_move_under_a_consumer(cluster: EmbeddedCluster) -> None:
    """The consumer reads everything produced before, between and after the restarts, in order and
    each offset once, without any intervention."""
    client = ClusterClient(
        parse_bootstrap(cluster.bootstrap), retry_policy=RetryPolicy(tries=100, backoff_ms=100)
    )
    config = ConsumerConfig(
        group_id="g",
        zookeeper_connect=cluster.zookeeper.connect_string,
        auto_offset_reset="smallest",
    )
    seen: list[tuple[int, int, int]] = []
    with ConsumerConnector(config) as connector:
        [stream] = connector.create_message_streams({"moving": 1})["moving"]
        reader = threading.Thread(target=read, args=(stream, seen), daemon=True)
        reader.start()
        for round_, broker in enumerate(cluster.brokers):
            produce(client, round_)
            cluster.restart(broker)
        produce(client, len(cluster.brokers))
        total = BATCH * (len(cluster.brokers) + 1)
        everything = {(p, value) for p in range(PARTITIONS) for value in range(total)}
        until(lambda: {(p, value) for p, _, value in seen} == everything, "all messages", 30)
    client.close()
    reader.join(10)
    for number in range(PARTITIONS):
        offsets = [offset for p, offset, _ in seen if p == number]
        assert offsets == list(range(len(offsets))), "in order, none twice, none left out"


@pytest.mark.parametrize("storage", ["zookeeper", "kafka"])
def test_guarantee_6_a_topic_is_made_again(cluster: EmbeddedCluster, storage: str) -> None:
    """Its messages are read from the first on, also those below the offset that is committed for
    the former topic."""
    client = ClusterClient(
        parse_bootstrap(cluster.bootstrap), retry_policy=RetryPolicy(tries=100, backoff_ms=100)
    )
    config = ConsumerConfig(
        group_id="g",
        zookeeper_connect=cluster.zookeeper.connect_string,
        auto_commit_interval_ms=100,
        offsets_storage=storage,
        dual_commit_enabled=False,
    )
    seen: list[tuple[int, int, int]] = []
    with (
        ConsumerConnector(config) as connector,
        AdminClient(cluster.zookeeper.connect_string) as admin,
    ):
        [stream] = connector.create_message_streams({"moving": 1})["moving"]
        reader = threading.Thread(target=read, args=(stream, seen), daemon=True)
        reader.start()

        def all_are_read() -> bool:
            produce(client, 0)
            return {partition for partition, *_ in seen} == set(range(PARTITIONS))

        until(all_are_read, "every partition to be read")  # from its end on, which may be late
        produce(client, 0)
        admin.delete_topic("moving")
        until(lambda: "moving" not in admin.list_topics(), "the deletion", 30)
        cluster.create_topic("moving", PARTITIONS, 3)
        produce(client, 1)
        expected = [(p, n, BATCH + n) for p in range(PARTITIONS) for n in range(BATCH)]
        until(
            lambda: sorted(one for one in seen if one[2] >= BATCH) == expected,
            "the messages of the new topic",
            30,
        )
    reader.join(10)
    client.close()
