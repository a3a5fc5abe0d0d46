"""Producer and simple consumer on a cluster of our own brokers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka08.client import ClusterClient, parse_bootstrap
from kafka08.client.log_offsets import log_ends
from kafka08.consumer import SimpleConsumer
from kafka08.embedded.cluster import EmbeddedCluster
from kafka08.errors import OffsetMetadataTooLarge, OffsetOutOfRange
from kafka08.producer import KeyedMessage, Producer, ProducerConfig
from kafka08.structs import NO_OFFSET, OffsetAndMetadata, TopicPartition
from tests.documents import run_program


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(brokers=2, config={"num.partitions": "3"}) as cluster:
        yield cluster


@pytest.fixture
def client(cluster: EmbeddedCluster) -> Iterator[ClusterClient]:
    client = ClusterClient(parse_bootstrap(cluster.bootstrap))
    yield client
    client.close()


def producer_on(cluster: EmbeddedCluster, **keys: Any) -> Producer:
    return Producer(
        ProducerConfig(
            {
                "metadata.broker.list": cluster.bootstrap,
                "serializer.class": "kafka.serializer.StringEncoder",
                "request.required.acks": 1,
            },
            **keys,
        )
    )


def whole(
    client: ClusterClient, topic: str, *, max_bytes: int = 1 << 20
) -> list[tuple[TopicPartition, int, bytes, bytes]]:
    """(partition, offset, key, value) of all messages of the topic, in order."""
    found = []
    for info in client.partitions(topic):
        tp = TopicPartition(topic, info.partition)
        leader = client.leader(tp)
        with SimpleConsumer(leader.host, leader.port) as consumer:
            messages = consumer.read_range(tp, 0, max_bytes=max_bytes)
            found += [(tp, m.offset, m.key or b"", m.value or b"") for m in messages]
    return found


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4"])
def test_every_sent_message_is_read(
    cluster: EmbeddedCluster, client: ClusterClient, codec: str
) -> None:
    """Each message is read once, with acks 1 and -1, by large fetches and by small ones that must
    grow."""
    topic = f"codec-{codec}"
    sent = []
    for acks in (1, -1):
        lines = [(f"key-{n}", f"value {n} of acks {acks}") for n in range(300)]
        with producer_on(cluster, compression_codec=codec, request_required_acks=acks) as producer:
            producer.send([KeyedMessage(topic, value, key) for key, value in lines])
        sent += lines
    read = whole(client, topic)
    assert sorted((k.decode(), v.decode()) for _, _, k, v in read) == sorted(sent)
    assert whole(client, topic, max_bytes=20) == read
    ends = log_ends(client, {tp for tp, *_ in read})
    assert sum(ends.values()) == len(sent)


def test_commits_in_both_stores(cluster: EmbeddedCluster, client: ClusterClient) -> None:
    """Each store returns its own offset; only Kafka's stores metadata."""
    with producer_on(cluster) as producer:
        producer.send(KeyedMessage("commits", "x"))
    tp = TopicPartition("commits", 0)
    leader = client.leader(tp)
    with SimpleConsumer(leader.host, leader.port) as consumer:
        consumer.commit_offsets("g", {tp: OffsetAndMetadata(3, "dropped")})
        assert consumer.fetch_offsets("g", [tp], "kafka")[tp].offset == NO_OFFSET
        consumer.commit_offsets("g", {tp: OffsetAndMetadata(4, "kept")}, "kafka")
        assert consumer.fetch_offsets("g", [tp]) == {tp: OffsetAndMetadata(3, "")}
        assert consumer.fetch_offsets("g", [tp], "kafka") == {tp: OffsetAndMetadata(4, "kept")}
        with pytest.raises(OffsetMetadataTooLarge):
            consumer.commit_offsets("g", {tp: OffsetAndMetadata(5, "m" * 4097)}, "kafka")
        with pytest.raises(OffsetOutOfRange):
            consumer.fetch(tp, 99)


def test_the_documented_reader_continues_where_it_stopped(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    """The program of docs/simple-consumer.md reads without gap or repetition in two runs."""
    with producer_on(cluster, partitioner_class="operator:mod") as producer:
        producer.send([KeyedMessage("storm", f"message {n}", partition_key=3) for n in range(10)])
    read: list[str] = []
    for count in ("4", "6"):
        read += run_program(
            "simple-consumer.md",
            tmp_path,
            *("storm", "0", count),
            bootstrap=cluster.bootstrap,
            zookeeper=cluster.zookeeper.connect_string,
        )
    assert read == [f"{n} message {n}" for n in range(10)]
