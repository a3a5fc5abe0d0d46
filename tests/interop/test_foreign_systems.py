"""Kafka Streams, Kafka Connect and Apache Flink on a broker of ours at 0.11.0."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from kafka08.consumer import KafkaConsumer, KafkaConsumerConfig
from kafka08.embedded import EmbeddedCluster
from kafka08.producer import KafkaProducer, ProducerRecord
from tests.interop.foreign_clients import HERE, PROGRAMS, Program, needed
from tests.interop.jvm import TOOL_FLAGS, command, compiled
from tests.waiting import until

STREAMS: Final = HERE / "pom-streams-3.9.1.xml"
FLINK: Final = HERE / "pom-flink-2.2.0.xml"
VALUES: Final = [b"%d" % n for n in range(40)]


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(brokers=1, level="0.11.0") as cluster:
        yield cluster


def fill(cluster: EmbeddedCluster, *topics: str) -> None:
    """Make the topics; VALUES are in the first."""
    for topic in topics:
        cluster.create_topic(topic, 2)
    with KafkaProducer(bootstrap_servers=cluster.bootstrap) as producer:
        for value in VALUES:
            producer.send(ProducerRecord(topics[0], value))


def read(cluster: EmbeddedCluster, topic: str, count: int) -> list[tuple[Any, Any]]:
    """Keys and values of at least so many committed messages."""
    keys = {
        "bootstrap.servers": cluster.bootstrap,
        "group.id": f"of-{topic}",
        "auto.offset.reset": "earliest",
        "isolation.level": "read_committed",
    }
    found: list[tuple[Any, Any]] = []
    with KafkaConsumer(KafkaConsumerConfig(keys)) as consumer:
        consumer.subscribe([topic])

        def has_all() -> bool:
            found.extend((one.key, one.value) for one in consumer.poll(100))
            return len(found) >= count

        until(has_all, f"{count} messages in {topic}")
    return found


def test_streams_count(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    """Through a repartition topic and a changelog, which it creates itself."""
    fill(cluster, "numbers", "counts")
    with needed("Kafka Streams"):
        classes = compiled(PROGRAMS / "JavaStreams.java", STREAMS)
        words = (cluster.bootstrap, "numbers", "counts", str(tmp_path))
        line = command("JavaStreams", *words, classes=classes, pom=STREAMS)
    with Program("Kafka Streams", line, {}) as running:
        counted: dict[bytes, bytes] = {}
        while len(counted) < 10 or set(counted.values()) != {b"4"}:
            counted.update(read(cluster, "counts", 1))
        running.terminate()
        running.finished()
    assert {b"%d" % digit for digit in range(10)} == set(counted)


WORKER: Final = """
bootstrap.servers={bootstrap}
key.converter=org.apache.kafka.connect.storage.StringConverter
value.converter=org.apache.kafka.connect.storage.StringConverter
offset.storage.file.filename={directory}/offsets
listeners=http://127.0.0.1:0
"""
CONNECTORS: Final = {
    "Source": "file={directory}/lines\ntopic=from-file\n",
    "Sink": "file={directory}/copied\ntopics=to-file\n",
}


def test_connect_copies_files(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    """A standalone worker: the lines of a file become messages, and messages the lines of one."""
    fill(cluster, "to-file", "from-file")
    (tmp_path / "lines").write_bytes(b"".join(value + b"\n" for value in VALUES))
    places = {"bootstrap": cluster.bootstrap, "directory": tmp_path}
    (tmp_path / "worker").write_text(WORKER.format(**places))
    for kind, keys in CONNECTORS.items():
        made = f"org.apache.kafka.connect.file.FileStream{kind}Connector"
        text = f"name={kind}\nconnector.class={made}\n{keys.format(**places)}"
        (tmp_path / kind).write_text(text)
    files = [str(tmp_path / name) for name in ("worker", *CONNECTORS)]
    with needed("Kafka Connect"):
        line = command("org.apache.kafka.connect.cli.ConnectStandalone", *files, pom=STREAMS)
    copied = tmp_path / "copied"
    with Program("Kafka Connect", line, {}) as running:
        messages = read(cluster, "from-file", len(VALUES))
        until(
            lambda: copied.exists() and len(copied.read_bytes().split()) >= len(VALUES),
            "the lines of the copied file",
        )
        running.terminate()
        running.finished()
    assert sorted(VALUES) == sorted(value for _, value in messages)
    assert sorted(VALUES) == sorted(copied.read_bytes().split())


def test_flink_copies_exactly_once(cluster: EmbeddedCluster) -> None:
    """Its sink writes in transactions, which its checkpoints commit."""
    fill(cluster, "flink-from", "flink-to")
    with needed("Apache Flink"):
        classes = compiled(PROGRAMS / "JavaFlink.java", FLINK)
        flags = (*TOOL_FLAGS, "-Xmx512m", "--add-opens=java.base/java.util=ALL-UNNAMED")
        words = (cluster.bootstrap, "flink-from", "flink-to")
        line = command("JavaFlink", *words, flags=flags, classes=classes, pom=FLINK)
    with Program("Apache Flink", line, {}) as running:
        running.finished(120)
    assert sorted(VALUES) == sorted(value for _, value in read(cluster, "flink-to", len(VALUES)))
