"""kafka08 mirror with a cluster of 0.8.2.2 at either end."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from kafka08.client import ClusterClient, parse_bootstrap
from kafka08.consumer import ConsumerConfig, SimpleConsumer, Whitelist
from kafka08.embedded import EmbeddedCluster
from kafka08.mirror import Mirror
from kafka08.mirror.settings import SOURCE_DEFAULTS, TARGET_DEFAULTS
from kafka08.producer import KafkaProducer, KafkaProducerConfig
from kafka08.structs import TopicPartition
from tests.interop.jvm import JvmKafka
from tests.waiting import until

PAIRS = [(b"k%d" % (n % 7) if n % 3 else None, b"v%d" % n) for n in range(300)]


def write(bootstrap: str, topic: str, codec: str) -> None:
    config = KafkaProducerConfig(bootstrap_servers=bootstrap, compression_type=codec, acks="all")
    with KafkaProducer(config) as producer:
        keys, values = zip(*PAIRS, strict=True)
        producer.send_many(topic, values, keys).result(60)


def read(bootstrap: str, topic: str) -> list[tuple[bytes | None, bytes | None]]:
    """Every message of the topic's one partition."""
    with closing(ClusterClient(parse_bootstrap(bootstrap))) as cluster:
        leader = cluster.leader(TopicPartition(topic, 0))
    with SimpleConsumer(leader.host, leader.port) as consumer:
        return [(m.key, m.value) for m in consumer.read_range(TopicPartition(topic, 0), 0)]


@pytest.fixture(scope="module")
def later_cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(1, level="0.10.2") as cluster:
        yield cluster


@pytest.mark.parametrize(
    ("level", "codec"), [("0.8.2", "none"), ("0.8.2", "snappy"), ("0.10.2", "snappy")]
)
@pytest.mark.parametrize("jvm_is", ["source", "target"])
def test_a_topic_is_copied_as_it_is(
    jvm_kafka: JvmKafka, request: pytest.FixtureRequest, jvm_is: str, level: str, codec: str
) -> None:
    """Mirroring from 0.8.2.2 to ours and back keeps keys, null keys, values and order, with any
    codec and at any level."""
    topic = f"mirrored-{jvm_is}-{codec}-{level}"
    fixture = "kafka08_cluster" if level == "0.8.2" else "later_cluster"
    own: EmbeddedCluster = request.getfixturevalue(fixture)
    ours = (own.zookeeper.connect_string, own.bootstrap)
    theirs = (jvm_kafka.zookeeper, jvm_kafka.bootstrap)
    (zookeeper, source), (_, target) = (theirs, ours) if jvm_is == "source" else (ours, theirs)
    for cluster in (jvm_kafka, own):
        cluster.create_topic(topic)
    write(source, topic, codec)
    mirror = Mirror(
        ConsumerConfig({**SOURCE_DEFAULTS, "zookeeper.connect": zookeeper, "group.id": topic}),
        KafkaProducerConfig(
            {**TARGET_DEFAULTS, "bootstrap.servers": target, "compression.type": codec}
        ),
        Whitelist(topic),
    )
    stopping = threading.Event()
    running = threading.Thread(target=mirror.run, args=(stopping,))
    running.start()
    try:
        until(lambda: mirror.counts.messages >= len(PAIRS), "the copies")
    finally:
        stopping.set()
        running.join()
    assert PAIRS == read(target, topic)
