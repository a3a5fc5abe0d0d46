"""kafka08 mirror with a cluster of 0.8.2.2 at either end."""

from __future__ import annotations

import threading
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


@pytest.mark.parametrize("codec", ["none", "snappy"])
@pytest.mark.parametrize("jvm_is", ["source", "target"])
def test_a_topic_is_copied_as_it_is(
    jvm_kafka: JvmKafka, kafka08_cluster: EmbeddedCluster, jvm_is: str, codec: str
) -> None:
    """From 0.8.2.2 to ours and from ours to 0.8.2.2: keys, values and order, null keys too,
    whatever the codec."""
    topic = f"mirrored-{jvm_is}-{codec}"
    ours = (kafka08_cluster.zookeeper.connect_string, kafka08_cluster.bootstrap)
    theirs = (jvm_kafka.zookeeper, jvm_kafka.bootstrap)
    (zookeeper, source), (_, target) = (theirs, ours) if jvm_is == "source" else (ours, theirs)
    for cluster in (jvm_kafka, kafka08_cluster):
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
