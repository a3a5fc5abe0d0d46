"""0.8.2.2's own clients and tools, and librdkafka, on a cluster of ours: none may notice, nor that
the cluster is of level 0.10.2."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer
from confluent_kafka import TopicPartition as RdTopicPartition

from kafka08.admin import AdminClient, describe_lines
from kafka08.consumer import ConsumerConfig, ConsumerConnector
from kafka08.embedded import EmbeddedCluster
from tests.interop.jvm import run_tool

CODECS = ["none", "gzip", "snappy", "lz4"]
CONFLUENT = {"broker.version.fallback": "0.8.2.2", "api.version.request": False}
"""librdkafka speaks as 0.8 does with these, without asking for versions."""


@pytest.fixture(scope="module", params=["0.8.2", "0.10.2"])
def cluster(request: pytest.FixtureRequest) -> Iterator[EmbeddedCluster]:
    """Two of our brokers of either level; topics made by asking get three partitions."""
    keys = {"num.partitions": 3, "offsets.topic.num.partitions": 4, "delete.topic.enable": "true"}
    with EmbeddedCluster(brokers=2, config=keys, level=request.param) as cluster:
        yield cluster


def tool(main_class: str, *args: str, stdin: str = "") -> str:
    """The output of a tool of 0.8.2.2, which must succeed."""
    result = run_tool(main_class, *args, stdin=stdin)
    assert result.rc == 0, f"{main_class} {args}: {result}"
    return result.stdout


def sizes(cluster: EmbeddedCluster, topic: str) -> dict[int, int]:
    """partition → log end, as GetOffsetShell prints it."""
    printed = tool(
        "kafka.tools.GetOffsetShell",
        *("--broker-list", cluster.bootstrap, "--topic", topic, "--time", "-1"),
    )
    rows = [line.split(":") for line in printed.splitlines()]
    assert all(name == topic for name, _, _ in rows)
    return {int(partition): int(offset) for _, partition, offset in rows}


@pytest.mark.parametrize("codec", CODECS)
def test_console_producer_to_console_consumer(cluster: EmbeddedCluster, codec: str) -> None:
    """With each codec keys and values arrive once. The producer's Metadata request creates the
    topic, so its first tries get error 5 and are repeated."""
    topic = f"console-{codec}"
    lines = [f"k{n}\tvalue {n} é" for n in range(300)]
    tool(
        "kafka.tools.ConsoleProducer",
        *("--broker-list", cluster.bootstrap, "--topic", topic, "--sync"),
        *("--property", "parse.key=true", "--compression-codec", codec),
        *("--request-required-acks", "-1", "--message-send-max-retries", "10"),
        stdin="".join(f"{line}\n" for line in lines),
    )
    read = tool(
        "kafka.tools.ConsoleConsumer",
        *("--zookeeper", cluster.zookeeper.connect_string, "--topic", topic, "--from-beginning"),
        *("--property", "print.key=true", "--max-messages", str(len(lines))),
    )
    assert sorted(lines) == sorted(read.splitlines())
    assert len(lines) == sum(sizes(cluster, topic).values())


def test_new_producer_under_load(cluster: EmbeddedCluster) -> None:
    """The logs have each of 20,000 messages that the new producer of 0.8.2.2 sends with acks=-1 and
    lz4."""
    cluster.create_topic("new-producer", 3)
    printed = tool(
        "org.apache.kafka.clients.tools.ProducerPerformance",
        *("new-producer", "20000", "100", "-1", "acks=-1", "compression.type=lz4"),
        f"bootstrap.servers={cluster.bootstrap}",
    )
    assert "20000 records sent" in printed
    assert 20_000 == sum(sizes(cluster, "new-producer").values())


def test_topics_by_the_jvms_tool(cluster: EmbeddedCluster) -> None:
    """TopicCommand creates a topic (our controller elects), describes it in the lines of our
    command, lists it, and deletes it (our controller and brokers do)."""
    where = ["--zookeeper", cluster.zookeeper.connect_string]
    shape = ["--partitions", "3", "--replication-factor", "1", "--config", "retention.ms=5000000"]
    created = tool("kafka.admin.TopicCommand", "--create", "--topic", "theirs", *where, *shape)
    assert created.startswith('Created topic "theirs".')
    with AdminClient(zookeeper=cluster.zookeeper.connect_string) as admin:
        admin.await_leaders("theirs")
        ours = list(describe_lines(admin.describe_topics(["theirs"])))
    described = tool("kafka.admin.TopicCommand", "--describe", "--topic", "theirs", *where)
    assert ours == described.splitlines()
    assert "theirs" in tool("kafka.admin.TopicCommand", "--list", *where).splitlines()


def test_a_jvm_group_with_offsets_in_kafka(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    """A console consumer commits to our offset manager; a member of ours continues there, and
    ConsumerOffsetChecker finds the offsets and no lag."""
    cluster.create_topic("grouped", 1)
    tool(
        "kafka.tools.ConsoleProducer",
        *("--broker-list", cluster.bootstrap, "--topic", "grouped", "--sync"),
        *("--request-required-acks", "1"),
        stdin="".join(f"{n}\n" for n in range(10)),
    )
    config = tmp_path / "consumer.properties"
    config.write_text("group.id=shared\noffsets.storage=kafka\ndual.commit.enabled=false\n")
    read = tool(
        "kafka.tools.ConsoleConsumer",
        *("--zookeeper", cluster.zookeeper.connect_string, "--topic", "grouped"),
        *("--from-beginning", "--max-messages", "6", "--consumer.config", str(config)),
    )
    assert [str(n) for n in range(6)] == read.splitlines()
    connector = ConsumerConnector(
        ConsumerConfig(
            {"zookeeper.connect": cluster.zookeeper.connect_string, "group.id": "shared"},
            offsets_storage="kafka",
            dual_commit_enabled=False,
            consumer_timeout_ms=20_000,
        )
    )
    try:
        [stream] = connector.create_message_streams({"grouped": 1})["grouped"]
        assert [6, 7, 8, 9] == [int(next(stream).value or -1) for _ in range(4)]
        connector.commit_offsets()
    finally:
        connector.shutdown()
    checked = tool(
        "kafka.tools.ConsumerOffsetChecker",
        *("--zookeeper", cluster.zookeeper.connect_string, "--group", "shared"),
        *("--topic", "grouped"),
    )
    assert re.search(r"shared +grouped +0 +10 +10 +0 ", checked), checked


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy"])
def test_librdkafka(cluster: EmbeddedCluster, codec: str) -> None:
    """confluent-kafka, set to 0.8, produces and reads back every message."""
    topic = f"rd-{codec}"
    cluster.create_topic(topic, 2)
    common = {"bootstrap.servers": cluster.bootstrap, **CONFLUENT}
    errors: list[object] = []

    def delivered(error: object, _: object) -> None:
        if error is not None:
            errors.append(error)

    producer = Producer({**common, "compression.codec": codec, "acks": "all"})
    for n in range(500):
        producer.produce(topic, value=b"v%d" % n, key=b"k%d" % n, callback=delivered)
    assert 0 == producer.flush(30)
    assert [] == errors
    consumer = Consumer({**common, "group.id": "rd", "enable.auto.commit": False})
    consumer.assign([RdTopicPartition(topic, p, OFFSET_BEGINNING) for p in range(2)])
    found: set[object] = set()
    while len(found) < 500:
        messages = consumer.consume(500, timeout=20)
        assert messages, f"nothing more after {len(found)} messages"
        for message in messages:
            assert message.error() is None, message.error()
            found.add((message.key(), message.value()))
    consumer.close()
    assert {(b"k%d" % n, b"v%d" % n) for n in range(500)} == found
