"""Tools of 0.10.2.2 on groups and topics of ours, and our commands on groups of a 0.10.2.2."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer

from kafka08.embedded import EmbeddedCluster
from kafka08.groups import GroupReader, explain_coordinated
from kafka08.producer import KafkaProducer, KafkaProducerConfig, ProducerRecord
from kafka08.structs import TopicPartition
from tests.interop.group_crowd import check_crowd
from tests.interop.jvm import POM_0_10_2, JvmKafka, ToolResult, command, guard

POM = Path(__file__).parent / "pom-tools-0.10.2.2.xml"
COUNT = 100


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    keys = {"offsets.topic.num.partitions": 4}
    with EmbeddedCluster(brokers=2, level="0.10.2", config=keys) as cluster:
        cluster.create_topic("t", 2)
        produced = run(
            "org.apache.kafka.tools.VerifiableProducer",
            *("--broker-list", cluster.bootstrap, "--topic", "t"),
            *("--max-messages", str(COUNT), "--acks", "-1"),
        )
        events = [json.loads(line) for line in produced.stdout.splitlines()]
        assert {"sent": COUNT, "acked": COUNT}.items() <= events[-1].items()
        yield cluster


def run(main_class: str, *words: str) -> ToolResult:
    done = subprocess.run(
        command(main_class, *words, pom=POM),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return ToolResult(done.returncode, done.stdout, done.stderr)


def java_line(bootstrap: str, topic: str, group: str) -> list[str]:
    return command(
        "org.apache.kafka.tools.VerifiableConsumer",
        *("--broker-list", bootstrap, "--topic", topic, "--group-id", group),
        *("--reset-policy", "earliest"),
        pom=POM,
    )


def our_line(bootstrap: str, topic: str, group: str) -> list[str]:
    module = "tests.interop.programs.verifiable_consumer"
    return [sys.executable, "-m", module, bootstrap, topic, group]


class VerifiableConsumer:
    """The consumer of Kafka's system tests, which says in JSON what happens to it; Java's or ours,
    by its command line.

    next_offsets   partition → the offset behind what it has read of it since it was assigned
    """

    def __init__(self, line: Sequence[str]) -> None:
        self.next_offsets: dict[int, int] = {}
        self.consumed: list[tuple[int, int]] = []
        """Partition and offset of each message."""
        self._committed: dict[int, int] = {}
        self._process = subprocess.Popen(line, stdout=subprocess.PIPE, text=True)
        guard().add(self._process.pid)

    def until(self, name: str) -> dict[str, Any]:
        """The next event of that name."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            event: dict[str, Any] = json.loads(line)
            self._judge(event)
            if event["name"] == name:
                return event
        raise AssertionError(f"it ended before {name}")

    def read(self, *ends: int) -> None:
        """Until it has committed so many messages of each partition that it has."""
        while any(self._committed.get(number, 0) < ends[number] for number in self.next_offsets):
            self.until("offsets_committed")

    def _judge(self, event: dict[str, Any]) -> None:
        """By the rules of Kafka's system tests (ConsumerEventHandler in kafkatest 0.10.2): what it
        reads belongs to it and follows what it has read, and it commits no more than that."""
        match event:
            case {"name": "partitions_assigned", "partitions": found}:
                self.next_offsets = {one["partition"]: -1 for one in found}
            case {"name": "records_consumed", "partitions": found}:
                for one in found:
                    number, first, last = one["partition"], one["minOffset"], one["maxOffset"]
                    assert self.next_offsets[number] in {-1, first}, event
                    assert one["count"] == last + 1 - first, event
                    self.consumed += [(number, offset) for offset in range(first, last + 1)]
                    self.next_offsets[number] = last + 1
            case {"name": "offsets_committed", "success": success, "offsets": found}:
                assert success, event
                assert all(one["offset"] <= self.next_offsets[one["partition"]] for one in found)
                self._committed |= {one["partition"]: one["offset"] for one in found}

    def leave(self) -> None:
        self._process.terminate()
        self.until("shutdown_complete")
        self._process.wait(20)
        guard().drop(self._process.pid)

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()


@contextmanager
def verifiable_consumer(line: Sequence[str]) -> Iterator[VerifiableConsumer]:
    consumer = VerifiableConsumer(line)
    try:
        yield consumer
    finally:
        consumer.end()


def group_command(cluster: EmbeddedCluster, *words: str) -> ToolResult:
    return run(
        "kafka.admin.ConsumerGroupCommand",
        *("--bootstrap-server", cluster.bootstrap, "--new-consumer", *words),
    )


def test_the_verifiable_consumer_and_the_group_command(cluster: EmbeddedCluster) -> None:
    """VerifiableConsumer reads and commits every message of VerifiableProducer. The group command
    lists its group, shows its member while it lives, and its offsets after it has left."""
    line = java_line(cluster.bootstrap, "t", "verifiable")
    with verifiable_consumer(line) as consumer:
        assigned = consumer.until("partitions_assigned")
        assert sorted(p["partition"] for p in assigned["partitions"]) == [0, 1]
        offsets: dict[int, int] = {}
        while sum(offsets.values()) < COUNT:
            committed = consumer.until("offsets_committed")
            assert committed["success"]
            offsets |= {p["partition"]: p["offset"] for p in committed["offsets"]}
        assert offsets == {0: COUNT // 2, 1: COUNT // 2}
        assert "verifiable" in group_command(cluster, "--list").stdout.split()
        described = group_command(cluster, "--describe", "--group", "verifiable").stdout
        rows = [line.split() for line in described.splitlines() if line.startswith("t ")]
        assert [(row[1], row[2], row[4], row[7]) for row in rows] == [
            ("0", "50", "0", "consumer-1"),
            ("1", "50", "0", "consumer-1"),
        ]
        with GroupReader(bootstrap=cluster.bootstrap) as reader:
            ours = reader.coordinated_facts("verifiable")
        assert ours is not None
        assert [m.member_id for m in ours.group.members] == [rows[0][5]]
        consumer.leave()
    stopped = group_command(cluster, "--describe", "--group", "verifiable")
    assert "has no active members" in stopped.stderr
    missing = group_command(cluster, "--describe", "--group", "nobody")
    assert "Consumer group 'nobody' does not exist." in missing.stdout


def test_verifiable_consumers_of_both_kinds_in_one_group(cluster: EmbeddedCluster) -> None:
    """Our and Java's members continue from each other's commits: no event breaks a rule of Kafka's
    system tests, and each message goes to one member, once."""
    topic = group = "both-kinds"
    cluster.create_topic(topic, 2)
    words = (cluster.bootstrap, topic, group)
    sent = 0

    def produce() -> None:
        nonlocal sent
        sent += COUNT
        config = KafkaProducerConfig(bootstrap_servers=cluster.bootstrap)
        with KafkaProducer(config) as producer:
            for number in range(2 * COUNT):
                producer.send(ProducerRecord(topic, b"x", partition=number % 2))

    with (
        verifiable_consumer(java_line(*words)) as java,
        verifiable_consumer(our_line(*words)) as ours,
    ):
        produce()
        for member in (java, ours):
            while len(member.next_offsets) != 1:
                member.until("partitions_assigned")
        produce()
        for member in (java, ours):
            member.read(sent, sent)
        ours.leave()
        produce()
        java.until("partitions_assigned")
        java.read(sent, sent)
        with verifiable_consumer(our_line(*words)) as successor:
            for member in (java, successor):
                member.until("partitions_assigned")
            java.leave()
            produce()
            successor.until("partitions_assigned")
            successor.read(sent, sent)
            successor.leave()
        everything = java.consumed + ours.consumed + successor.consumed
    assert sorted(everything) == [(number, offset) for number in (0, 1) for offset in range(sent)]


def test_our_commands_on_a_group_of_the_jvm(tmp_path: Path) -> None:
    """List, describe, explain and reset handle a JVM group like one of ours, with and without
    ZooKeeper. The exporter reads the offsets of many groups at once."""
    with JvmKafka(tmp_path, pom=POM_0_10_2) as kafka:
        [broker] = kafka.brokers
        keys = {"group.id": "g", "auto.offset.reset": "earliest", "enable.auto.commit": False}
        member = Consumer({"bootstrap.servers": broker.address, **keys})
        line = [sys.executable, "-m", "kafka08.cli"]
        at = ["--bootstrap", broker.address]
        subprocess.run([*line, "produce", "t", *at], input=b"a\nb\nc\n", check=True)
        member.subscribe(["t"])
        assert len(member.consume(3, timeout=30)) == 3
        member.commit(asynchronous=False)
        for zk in (None, kafka.zookeeper):
            with GroupReader(zk, broker.address) as reader:
                [listed] = reader.coordinated_groups().groups
                facts = reader.coordinated_facts("g")
            assert (listed.name, listed.state, len(listed.members)) == ("g", "Stable", 1)
            assert facts is not None
            assert facts.group.members[0].owns == (TopicPartition("t", 0),)
            assert [(p.kafka, p.lag) for p in facts.partitions] == [(3, 0)]
            assert explain_coordinated(facts) == []
        reset = [*line, "group", "reset", "g", "--to", "earliest", "--execute", *at]
        refused = subprocess.run(reset, capture_output=True, text=True, check=False)
        assert "the group has live members, stop them first: rdkafka-" in refused.stderr
        member.close()
        subprocess.run(reset, check=True)
        got = subprocess.run(
            [*line, "offsets", "get", "g", "--json", *at], capture_output=True, check=True
        )
        assert [row["kafka"] for row in json.loads(got.stdout)] == [0]
        check_crowd(kafka.zookeeper, broker.address, [TopicPartition("t", 0)])
