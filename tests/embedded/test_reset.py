"""EmbeddedCluster.reset: what clients have made is gone, and later ones find nothing of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka08.admin import AdminClient
from kafka08.consumer import KafkaConsumer
from kafka08.embedded import EmbeddedCluster
from kafka08.errors import ConfigError
from kafka08.producer import KafkaProducer, KafkaProducerConfig, ProducerRecord
from kafka08.structs import TopicPartition
from kafka08.zk import paths
from kafka08.zk.client import ZkClient

T0 = TopicPartition("t", 0)


@pytest.mark.parametrize("level", ["0.8.2", "0.9.0", "0.10.2"])
def test_a_reset_cluster_is_as_new(level: str) -> None:
    """Topics with their messages and overrides, groups of both kinds with their offsets, and a
    killed broker: a group of the same name begins a topic of the same name at its first message."""
    with (
        EmbeddedCluster(2, level=level) as cluster,
        ZkClient(cluster.zookeeper.connect_string) as zk,
    ):
        zk.put("/consumers/old/offsets/t/0", "7")
        for values in ([b"1", b"2"], [b"3"]):
            cluster.create_topic("t", 1, 2, {"retention.ms": "60000"})
            send(cluster, values)
            if level != "0.8.2":
                assert values == read_all(cluster)
            cluster.kill(1)
            cluster.reset()
            assert all(broker.running for broker in cluster.brokers)
            with AdminClient(zk=zk) as admin:
                assert [] == admin.list_topics() == admin.topics_marked_for_deletion()
            assert [] == zk.children(paths.CONSUMERS) == zk.children(paths.TOPIC_CONFIGS)
        cluster.create_topic("t")
        assert [0] == send(cluster, [b"first"])


def test_a_reset_needs_brokers_that_delete(tmp_path: Path) -> None:
    """Without delete.topic.enable topics would only be marked, for ever."""
    cluster = EmbeddedCluster(1, {"delete.topic.enable": False}, data_dir=tmp_path)
    with pytest.raises(ConfigError, match=r"delete\.topic\.enable: a reset needs true"):
        cluster.reset()
    cluster.stop()


def send(cluster: EmbeddedCluster, values: list[bytes]) -> list[int]:
    """The offsets that they got."""
    config = KafkaProducerConfig(bootstrap_servers=cluster.bootstrap, acks="all")
    with KafkaProducer(config) as producer:
        return [producer.send(ProducerRecord("t", value)).result(30).offset for value in values]


def read_all(cluster: EmbeddedCluster) -> list[bytes | None]:
    """The messages that the group has not read yet, which it commits."""
    with KafkaConsumer(
        bootstrap_servers=cluster.bootstrap, group_id="g", auto_offset_reset="earliest"
    ) as consumer:
        consumer.subscribe(["t"])
        end = consumer.end_offsets([T0])[T0]
        read: list[bytes | None] = []
        while len(read) < end:
            read += [message.value for message in consumer.poll(10.0)]
        consumer.commit()
    return read
