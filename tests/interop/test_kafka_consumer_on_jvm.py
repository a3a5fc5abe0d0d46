"""KafkaConsumer on brokers of 0.9.0.1 to 3.9.1, in groups with Java's and librdkafka's."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from kafka08.consumer import KafkaConsumer, OffsetAndTimestamp
from kafka08.errors import UnsupportedVersion
from kafka08.kernel.types import CREATE_TIME, NO_TIMESTAMP, NO_TIMESTAMP_TYPE
from kafka08.network.connection import Connection
from kafka08.producer import KafkaProducer, KafkaProducerConfig, ProducerRecord
from kafka08.producer.partitioners import partition_for_key
from kafka08.protocol.metadata import MetadataRequest
from kafka08.structs import TopicPartition
from tests.integration.librdkafka_member import CLIENT_KEYS
from tests.integration.polling_cluster import consumer_at, read
from tests.interop.foreign_member import Foreign
from tests.interop.jvm import (
    POM_0_9_0,
    POM_0_10_2,
    POM_2_8,
    POM_3_9,
    TOOL_FLAGS,
    JvmBroker,
    JvmMissing,
    classpath,
    command,
    knows_brokers,
    new_zookeeper,
    run_tool,
)
from tests.waiting import until

POLLING_MEMBER = Path(__file__).parent / "PollingMember.java"
PARTITIONS = 6
T0 = 1_500_000_000_000


RELEASES = {
    "0.9.0.1": POM_0_9_0,
    "0.10.2.2": POM_0_10_2,
    "2.8.2": POM_2_8,
    "3.9.1": POM_3_9,
}
LATER = ("2.8.2", "3.9.1")
"""Those that convert messages for a client of 0.10."""


@pytest.fixture(scope="module", params=list(RELEASES.values()), ids=list(RELEASES))
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[JvmBroker]:
    try:
        classpath(request.param)
    except JvmMissing as missing:
        pytest.skip(str(missing))
    directory = tmp_path_factory.mktemp("jvm")
    properties = {
        "num.partitions": str(PARTITIONS),
        "group.min.session.timeout.ms": "500",
        "group.initial.rebalance.delay.ms": "0",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "1",
        "log.retention.ms": "-1",  # some messages are of 2017
    }
    with new_zookeeper(directory) as zookeeper:
        where = zookeeper.connect_string
        with JvmBroker(directory, 1, where, properties, pom=request.param) as running:
            until(lambda: knows_brokers(running), "the broker to know itself")
            yield running


def level_of(broker: JvmBroker) -> str:
    return "0.9.0" if any("kafka_2.11-0.9" in part for part in broker.command) else "0.10.2"


def is_0_9(broker: JvmBroker) -> bool:
    return level_of(broker) == "0.9.0"


def producer_of(broker: JvmBroker, **keys: Any) -> Producer:
    spoken = CLIENT_KEYS[level_of(broker)]
    return Producer({"bootstrap.servers": broker.address, **spoken, **keys})


def create_topic(broker: JvmBroker, topic: str) -> None:
    """By a request that names it, and wait for its leaders: librdkafka's producer says "Unknown
    topic" for good if the broker said so once, while it created the topic."""
    with Connection("127.0.0.1", broker.port) as connection:

        def is_led() -> bool:
            found: Any = connection.send(MetadataRequest([topic]))
            partitions = found.topics[0].partitions
            return [p.error_code for p in partitions] == [0] * PARTITIONS

        until(is_led, f"topic {topic}")


def consumer_of(broker: JvmBroker, group: str = "", **keys: Any) -> KafkaConsumer:
    return consumer_at(broker.address, group, **keys)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4"])
def test_messages_with_their_timestamps(broker: JvmBroker, codec: str) -> None:
    """Messages arrive compressed or not, from 0.10 on with the producer's timestamp."""
    topic = f"times-{codec}"
    create_topic(broker, topic)
    producer = producer_of(broker, **{"compression.type": codec, "linger.ms": 50})
    for number in range(300):
        producer.produce(topic, b"%d" % number, b"key", partition=0, timestamp=T0 + number)
    assert producer.flush(30) == 0
    tp = TopicPartition(topic, 0)
    with consumer_of(broker) as consumer:
        consumer.assign([tp])
        found: list[Any] = []
        while len(found) < 300:
            found += consumer.poll(5.0)
        assert [message.value for message in found] == [b"%d" % n for n in range(300)]
        assert {message.key for message in found} == {b"key"}
        if is_0_9(broker):
            assert {message.timestamp_type for message in found} == {NO_TIMESTAMP_TYPE}
            with pytest.raises(UnsupportedVersion):
                consumer.offsets_for_times({tp: T0})
            return
        times = [(message.timestamp, message.timestamp_type) for message in found]
        assert times == [(T0 + number, CREATE_TIME) for number in range(300)]
        wanted = {tp: T0 + 120}
        assert consumer.offsets_for_times(wanted) == {tp: OffsetAndTimestamp(120, T0 + 120)}
        assert consumer.offsets_for_times({tp: T0 + 300}) == {tp: None}


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4"])
def test_timestamps_of_our_producer(broker: JvmBroker, codec: str) -> None:
    """KafkaProducer gives messages timestamps on brokers from 0.10 on, and says where there are
    none. Java's console consumer of 0.10.2.2 prints the same, and brokers find them by time."""
    topic = f"ours-{codec}"
    config = KafkaProducerConfig(
        bootstrap_servers=broker.address, compression_type=codec, linger_ms=50, batch_size=2000
    )
    with KafkaProducer(config) as producer:
        futures = [
            producer.send(ProducerRecord(topic, b"%d" % n, b"key", 0, T0 + n)) for n in range(300)
        ]
        told = [future.result(60).timestamp for future in futures]
    times = [NO_TIMESTAMP if is_0_9(broker) else T0 + number for number in range(300)]
    assert told == times
    tp = TopicPartition(topic, 0)
    with consumer_of(broker) as consumer:
        consumer.assign([tp])
        found: list[Any] = []
        while len(found) < 300:
            found += consumer.poll(5.0)
        assert [message.value for message in found] == [b"%d" % n for n in range(300)]
        assert [message.timestamp for message in found] == times
        if not is_0_9(broker):
            response = consumer.offsets_for_times({tp: T0 + 120})
            assert response == {tp: OffsetAndTimestamp(120, T0 + 120)}
    if level_of(broker) == "0.10.2" and codec in ("none", "lz4"):
        options = (
            "--from-beginning",
            "--max-messages",
            "300",
            "--property",
            "print.timestamp=true",
        )
        place = ("--bootstrap-server", broker.address, "--topic", topic)
        tool = run_tool("kafka.tools.ConsoleConsumer", *place, *options, pom=POM_0_10_2)
        printed = [f"CreateTime:{T0 + number}\t{number}" for number in range(300)]
        assert tool.stdout.splitlines() == printed


def test_lines_of_our_command(broker: JvmBroker) -> None:
    """`kafka08 produce` sends lines as the release's console producer does: by its new producer, so
    that from 0.10 on each has the time of its send."""
    produce = ("produce", "lines", "--bootstrap", broker.address, "--key-separator", ":")
    lines = b"".join(b"%d:%d\n" % (n, n) for n in range(30))
    before = time.time_ns() // 1_000_000
    subprocess.run([sys.executable, "-m", "kafka08.cli", *produce], input=lines, check=True)
    after = time.time_ns() // 1_000_000
    with consumer_of(broker) as consumer:
        consumer.assign([TopicPartition("lines", n) for n in range(PARTITIONS)])
        found: list[Any] = []
        while len(found) < 30:
            found += consumer.poll(5.0)
    assert {m.key: m.partition for m in found} == {
        key: partition_for_key(key, PARTITIONS) for key in (b"%d" % n for n in range(30))
    }
    times = {message.timestamp for message in found}
    if is_0_9(broker):
        assert times == {NO_TIMESTAMP}
    else:
        assert before <= min(times) <= max(times) <= after


later = pytest.mark.parametrize(
    "broker", [RELEASES[name] for name in LATER], ids=LATER, indirect=True
)


@later
def test_a_later_broker_drops_its_newer_features(broker: JvmBroker) -> None:
    """Headers and transaction markers are left out; messages of aborted transactions arrive, as for
    every client of 0.10. The consumer reaches the log's end."""
    create_topic(broker, "later")
    producer = producer_of(broker, **{"transactional.id": "t"})
    producer.init_transactions(60)
    for number in range(4):
        producer.begin_transaction()
        producer.produce("later", b"%d" % number, headers=[("h", b"v")], partition=0)
        producer.flush(30)
        if number % 2:
            producer.commit_transaction()
        else:
            producer.abort_transaction()
    tp = TopicPartition("later", 0)
    found: list[Any] = []
    with consumer_of(broker) as consumer:
        consumer.assign([tp])

        def is_at_end() -> bool:
            found.extend(consumer.poll(0.2))
            return consumer.position(tp) == 8

        until(is_at_end, "the log end")
        assert [(m.offset, m.value) for m in found] == [(2 * n, b"%d" % n) for n in range(4)]


@later
def test_zstd_of_a_later_broker_is_read(broker: JvmBroker) -> None:
    """As the broker stores it, beside a partition without."""
    create_topic(broker, "zstd")
    zstd = producer_of(broker, **{"compression.type": "zstd"})
    zstd.produce("zstd", b"x" * 500, partition=0)
    plain = producer_of(broker)
    plain.produce("zstd", b"plain", partition=1)
    assert zstd.flush(30) == plain.flush(30) == 0
    with consumer_of(broker) as consumer:
        consumer.assign([TopicPartition("zstd", n) for n in (0, 1)])
        found = read(consumer, 2, 30)
    assert {message.partition: message.value for message in found} == {0: b"x" * 500, 1: b"plain"}


def java_member(broker: JvmBroker, topic: str, group: str) -> list[str]:
    keys = (
        f"bootstrap.servers={broker.address}",
        f"group.id={group}",
        "auto.offset.reset=earliest",
        "enable.auto.commit=false",
        "session.timeout.ms=6000",
        "heartbeat.interval.ms=200",
        "metadata.max.age.ms=1000",
    )
    return command(str(POLLING_MEMBER), topic, *keys, flags=TOOL_FLAGS, pom=POM_0_10_2)


def librdkafka_member(broker: JvmBroker, topic: str, group: str) -> list[str]:
    module = "tests.integration.librdkafka_member"
    return [sys.executable, "-m", module, broker.address, topic, group, level_of(broker)]


@pytest.mark.parametrize("other", [java_member, librdkafka_member])
def test_one_group_with_another_client(
    broker: JvmBroker,
    tmp_path: Path,
    other: Callable[[JvmBroker, str, str], list[str]],
) -> None:
    """Our member leads, then the other client's leads after ours left, and gives its partitions
    back when it leaves: every message goes to exactly one member."""
    if is_0_9(broker) and other is java_member:
        pytest.skip("the consumer of 0.10.2.2 does not speak to brokers of 0.9")
    topic = group = f"mixed-{other.__name__}"
    sent = 0
    create_topic(broker, topic)
    producer = producer_of(broker)

    def produce() -> None:
        nonlocal sent
        for value in range(sent, sent + 300):
            producer.produce(topic, str(value).encode(), partition=value % PARTITIONS)
        sent += 300
        assert producer.flush(30) == 0

    ours: list[str] = []

    def read(consumer: KafkaConsumer) -> int:
        ours.extend((message.value or b"").decode() for message in consumer.poll(0.1))
        return len(consumer.assignment())

    produce()
    first = consumer_of(broker, group, session_timeout_ms=6000)
    first.subscribe([topic])
    until(lambda: read(first) == PARTITIONS, "ours has all")
    foreign = Foreign(other(broker, topic, group), tmp_path, "member")
    try:
        until(lambda: read(first) == 3 and foreign.assigned == 3, "they share")
        produce()
        until(lambda: read(first) and len(ours) + len(foreign.values) >= sent, "all is read")
        with first:
            pass
        produce()
        until(lambda: foreign.assigned == PARTITIONS, "it takes over")
        until(lambda: len(ours) + len(foreign.values) >= sent, "all is read")
        with consumer_of(broker, group, session_timeout_ms=6000) as second:
            second.subscribe([topic])
            until(lambda: read(second) == 3 and foreign.assigned == 3, "they share")
            if other is java_member:
                foreign.leave()
            else:
                foreign.process.terminate()
                assert foreign.process.wait(30) == 0
            until(lambda: read(second) == PARTITIONS, "ours has all")
            produce()
            until(lambda: read(second) and len(ours) + len(foreign.values) >= sent, "all is read")
    finally:
        foreign.end()
    counts = Counter(ours + foreign.values)
    assert counts.keys() == {str(value) for value in range(sent)}
    assert set(counts.values()) == {1}
