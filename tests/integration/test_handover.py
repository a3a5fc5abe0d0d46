"""The last step of a migration, live: connector members with their offsets in Kafka give way to
KafkaConsumer members, and back."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from kafka08.consumer import ConsumerConfig, ConsumerConnector, KafkaConsumer
from kafka08.embedded import EmbeddedCluster
from kafka08.errors import ConsumerTimeout
from kafka08.migration import OffsetMigration
from kafka08.producer import KafkaProducer, KafkaProducerConfig, ProducerRecord

GROUP = "movers"
PARTITIONS = 4


@pytest.fixture(scope="module", params=["0.9.0", "0.10.2"])
def cluster(request: pytest.FixtureRequest) -> Iterator[EmbeddedCluster]:
    config = {"api.level": request.param, "offsets.topic.num.partitions": 3}
    with EmbeddedCluster(brokers=1, config=config) as running:
        running.create_topic("t", partitions=PARTITIONS)
        yield running


def produce(cluster: EmbeddedCluster, start: int, count: int) -> None:
    with KafkaProducer(KafkaProducerConfig(bootstrap_servers=cluster.bootstrap)) as producer:
        for number in range(start, start + count):
            producer.send(ProducerRecord("t", b"%d" % number, partition=number % PARTITIONS))


def connector_of(cluster: EmbeddedCluster) -> ConsumerConnector:
    return ConsumerConnector(
        ConsumerConfig(
            {
                "group.id": GROUP,
                "zookeeper.connect": cluster.zookeeper.connect_string,
                "offsets.storage": "kafka",
                "dual.commit.enabled": False,
                "auto.offset.reset": "smallest",
                "consumer.timeout.ms": 3000,
            }
        )
    )


def read_by_connector(cluster: EmbeddedCluster, count: int, left: int = 0) -> list[int]:
    """As many messages by a member, the last `left` of them not finished."""
    found: list[int] = []
    first = connector_of(cluster)
    with first:
        [stream] = first.create_message_streams({"t": 1})["t"]
        try:
            for message in stream:
                found.append(int(message.value or b""))
                if len(found) == count:
                    break
        except ConsumerTimeout:
            pass
        if not left:
            first.commit_offsets()
        with OffsetMigration(cluster.zookeeper.connect_string, GROUP) as migration:
            waiting = migration.handover()
            assert not waiting.is_ready
            assert any(first.consumer_id in line for line in waiting.obstacles)
    return found


def poll(consumers: list[KafkaConsumer], found: list[int], count: int) -> None:
    """Until they have read so many and share the partitions. A member that closes in its first join
    cannot leave: it does not know its id yet."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        if len(found) >= count and all(len(one.assignment()) == 2 for one in consumers):
            return
        for consumer in consumers:
            found += [int(message.value or b"") for message in consumer.poll(0.1)]


def consumer_of(cluster: EmbeddedCluster, **keys: Any) -> KafkaConsumer:
    return KafkaConsumer(
        bootstrap_servers=cluster.bootstrap,
        group_id=GROUP,
        auto_offset_reset="none",
        session_timeout_ms=6000,
        heartbeat_interval_ms=200,
        **keys,
    )


def test_members_are_replaced_and_return(cluster: EmbeddedCluster) -> None:
    """The tool names the remaining old member, and then the offsets of the new ones. In both
    directions no message is skipped, and only uncommitted ones are repeated."""
    produce(cluster, 0, 400)
    old = read_by_connector(cluster, 150, left=1)
    with OffsetMigration(cluster.zookeeper.connect_string, GROUP) as migration:
        ready = migration.handover()
        assert ready.is_ready, ready.obstacles
        assert sum(ready.offsets.values()) == 149
    new: list[int] = []
    with consumer_of(cluster) as one, consumer_of(cluster) as two:
        for consumer in (one, two):
            consumer.subscribe(["t"])
        poll([one, two], new, 251)
        with OffsetMigration(cluster.zookeeper.connect_string, GROUP) as migration:
            assert migration.handover().members == 2
    assert Counter(old + new) - Counter(range(400)) == Counter(old[-1:])
    assert set(old + new) == set(range(400))
    produce(cluster, 400, 40)
    again = read_by_connector(cluster, 40)
    assert sorted(again) == list(range(400, 440))
