"""client.rack on three JVM brokers of 3.9.1, each in a rack of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kafka08.admin import BrokerAdmin
from kafka08.client import parse_bootstrap
from kafka08.consumer import KafkaConsumer
from kafka08.producer import KafkaProducer, ProducerRecord
from kafka08.structs import TopicPartition
from tests.interop.jvm import POM_3_9, JvmBroker, JvmMissing, classpath, new_zookeeper
from tests.waiting import until

TP = TopicPartition("t", 0)
SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[list[JvmBroker]]:
    """Those with the ids 1, 2 and 3."""
    try:
        classpath(POM_3_9)
    except JvmMissing as missing:
        pytest.skip(str(missing))
    with ExitStack() as stack:
        zookeeper = stack.enter_context(new_zookeeper(tmp_path)).connect_string
        found = []
        for number in (1, 2, 3):
            keys = {"broker.rack": f"rack-{number}", "replica.selector.class": SELECTOR}
            broker = JvmBroker(tmp_path, number, zookeeper, keys, pom=POM_3_9)
            found.append(stack.enter_context(broker))
        yield found


def write(bootstrap: str, first: int, count: int) -> None:
    with KafkaProducer(bootstrap_servers=bootstrap, acks="all", retries=20) as producer:
        sent = [
            producer.send(ProducerRecord("t", b"%d" % n, partition=0))
            for n in range(first, first + count)
        ]
        for future in sent:
            future.result(60)


def follower_of(consumer: KafkaConsumer) -> float:
    """The broker from which it fetches; -1 if that is the leader."""
    return consumer.metrics()["consumer-fetch-manager-metrics.t-0"]["preferred-read-replica"]


@pytest.mark.interop
@pytest.mark.timeout(300)
def test_the_nearest_replica_is_read_and_the_leader_when_it_is_gone(
    brokers: list[JvmBroker],
) -> None:
    """Each message once, in order: from the follower in the consumer's rack, then from the leader
    after that follower has ended."""
    bootstrap = ",".join(broker.address for broker in brokers)
    with BrokerAdmin(parse_bootstrap(bootstrap)) as admin:
        until(lambda: len(admin.live_brokers()) == 3, "three brokers")
        admin.create_topic("t", assignment={0: [1, 2, 3]})
    write(bootstrap, 0, 100)
    found: list[bytes | None] = []
    with KafkaConsumer(
        bootstrap_servers=bootstrap, client_rack="rack-2", auto_offset_reset="earliest"
    ) as consumer:
        consumer.assign([TP])
        consumer.seek(TP, 0)

        def reads(count: int) -> bool:
            found.extend(message.value for message in consumer.poll(0.2))
            return len(found) >= count

        until(lambda: reads(100), "the messages", explain=lambda: f"{len(found)} came")
        assert follower_of(consumer) == 2
        write(bootstrap, 100, 100)
        until(lambda: reads(200), "more messages", explain=lambda: f"{len(found)} came")
        assert follower_of(consumer) == 2
        brokers[1].kill()
        write(bootstrap, 200, 100)
        until(lambda: reads(300), "the rest", explain=lambda: f"{len(found)} came")
        assert follower_of(consumer) == -1
    assert found == [b"%d" % n for n in range(300)]
