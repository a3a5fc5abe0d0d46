"""Transactions of librdkafka on three brokers: what readers of committed messages see."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from kafka08.client import ClusterClient, parse_bootstrap
from kafka08.doctor import SnapshotReader, findings_of
from kafka08.embedded import EmbeddedCluster
from kafka08.hashing import transaction_partition
from kafka08.log.coordinator_batches import transactional_batch
from kafka08.protocol.produce import (
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
    ProduceTopic,
)
from kafka08.structs import TRANSACTIONS_TOPIC
from kafka08.structs import TopicPartition as Partition

PARTITIONS = 2
TIMEOUT_S = 30
COMMANDS = (sys.executable, "-m", "kafka08.cli", "transaction")


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    config = {"transaction.state.log.num.partitions": 3, "offsets.topic.num.partitions": 3}
    with EmbeddedCluster(brokers=3, level="0.11.0", config=config) as cluster:
        yield cluster


@pytest.fixture
def topic(cluster: EmbeddedCluster, request: pytest.FixtureRequest) -> str:
    name = str(request.node.originalname)
    cluster.create_topic(name, PARTITIONS, 3, {"min.insync.replicas": "2"})
    return name


def producer(cluster: EmbeddedCluster, name: str) -> Producer:
    made = Producer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "transactional.id": name,
            "linger.ms": 1,
            "log_level": 0,
        }
    )
    made.init_transactions(TIMEOUT_S)
    return made


def reader(cluster: EmbeddedCluster, group: str, isolation: str = "read_committed") -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": group,
            "isolation.level": isolation,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )


def values(cluster: EmbeddedCluster, topic: str, isolation: str = "read_committed") -> list[str]:
    """All values that such a reader gets, sorted."""
    found: list[str] = []
    ends = 0
    with closing(reader(cluster, "unused", isolation)) as consumer:
        consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
        deadline = time.monotonic() + TIMEOUT_S
        while ends < PARTITIONS:
            message = consumer.poll(1)
            assert time.monotonic() < deadline, f"{found} and no end"
            if message is not None and message.error():
                ends += 1
            elif message is not None:
                found.append((message.value() or b"").decode())
    return sorted(found)


def send(sender: Producer, topic: str, *texts: str) -> None:
    """One message to each partition in turn, all acknowledged."""
    for number, text in enumerate(texts):
        sender.produce(topic, text, partition=number % PARTITIONS)
    assert 0 == sender.flush(TIMEOUT_S)


def run(cluster: EmbeddedCluster, *words: str) -> str:
    """The output of a command."""
    done = subprocess.run(
        [*COMMANDS, *words, "--bootstrap", cluster.bootstrap], capture_output=True, check=True
    )
    return done.stdout.decode()


def test_what_is_committed_is_read(cluster: EmbeddedCluster, topic: str) -> None:
    """In all partitions at once; nothing of an aborted or open transaction, nor what comes behind
    the open one."""
    sender = producer(cluster, topic)
    for text, ends in (("a", sender.commit_transaction), ("b", sender.abort_transaction)):
        sender.begin_transaction()
        send(sender, topic, f"{text}0", f"{text}1")
        ends(TIMEOUT_S)
    sender.begin_transaction()
    send(sender, topic, "c0", "c1")
    other = producer(cluster, f"{topic} 2")
    other.begin_transaction()
    send(other, topic, "d0", "d1")
    other.commit_transaction(TIMEOUT_S)
    assert ["a0", "a1"] == values(cluster, topic)
    sender.commit_transaction(TIMEOUT_S)
    assert ["a0", "a1", "c0", "c1", "d0", "d1"] == values(cluster, topic)
    assert 8 == len(values(cluster, topic, "read_uncommitted"))


def test_a_second_producer_fences_the_first(cluster: EmbeddedCluster, topic: str) -> None:
    """Its transaction is aborted; it can neither send nor commit."""
    first = producer(cluster, topic)
    first.begin_transaction()
    send(first, topic, "a0", "a1")
    second = producer(cluster, topic)
    with pytest.raises(KafkaException, match="_FENCED"):
        first.commit_transaction(TIMEOUT_S)
    second.begin_transaction()
    send(second, topic, "b0")
    second.commit_transaction(TIMEOUT_S)
    assert ["b0"] == values(cluster, topic)


def test_offsets_are_committed_with_the_output(cluster: EmbeddedCluster, topic: str) -> None:
    """A loop that reads, transforms and writes: an aborted round is read again, a committed one is
    not."""
    source = producer(cluster, f"{topic} source")
    source.begin_transaction()
    send(source, topic, "a", "b")
    source.commit_transaction(TIMEOUT_S)
    cluster.create_topic(f"{topic}.out", PARTITIONS, 3)
    sender = producer(cluster, topic)
    for ends in (sender.abort_transaction, sender.commit_transaction, sender.commit_transaction):
        copy(cluster, topic, sender, ends)
    assert ["A", "B"] == values(cluster, f"{topic}.out")


def copy(
    cluster: EmbeddedCluster, topic: str, sender: Producer, ends: Callable[[float], object]
) -> None:
    """One round of such a loop, by a new member of the group."""
    with closing(reader(cluster, topic)) as consumer:
        partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
        consumer.assign(consumer.committed(partitions, TIMEOUT_S))
        sender.begin_transaction()
        ended = 0
        while ended < PARTITIONS:
            message = consumer.poll(TIMEOUT_S)
            assert message is not None
            if message.error():
                ended += 1
            else:
                sender.produce(f"{topic}.out", (message.value() or b"").upper(), partition=0)
        sender.flush(TIMEOUT_S)
        positions = consumer.position(partitions)
        sender.send_offsets_to_transaction(
            [one for one in positions if one.offset >= 0],
            consumer.consumer_group_metadata(),
            TIMEOUT_S,
        )
        ends(TIMEOUT_S)


def test_a_killed_coordinator(cluster: EmbeddedCluster, topic: str) -> None:
    """The next one commits what its producer has begun at the first."""
    sender = producer(cluster, topic)
    sender.begin_transaction()
    send(sender, topic, "a0", "a1")
    coordinator = cluster.leader_of(TRANSACTIONS_TOPIC, transaction_partition(topic, 3))
    cluster.kill(coordinator)
    try:
        sender.commit_transaction(TIMEOUT_S)
        assert ["a0", "a1"] == values(cluster, topic)
    finally:
        cluster.restart(coordinator)


def test_the_commands(cluster: EmbeddedCluster, topic: str) -> None:
    """list and describe show an open transaction, abort ends it and fences its producer."""
    sender = producer(cluster, topic)
    sender.begin_transaction()
    send(sender, topic, "a0", "a1")
    (found,) = json.loads(run(cluster, "list", "--open", "--json"))
    assert (topic, "Ongoing", 2) == (
        found["transactional_id"],
        found["state"],
        found["partitions"],
    )
    described = json.loads(run(cluster, "describe", topic, "--json"))
    assert [f"{topic}-0", f"{topic}-1"] == described["partitions"]
    assert "Would abort" in run(cluster, "abort", topic, "--dry-run")
    assert "Aborted" in run(cluster, "abort", topic)
    assert "no open transaction" in run(cluster, "abort", topic)
    assert [] == json.loads(run(cluster, "list", "--open", "--json"))
    assert [] == values(cluster, topic)
    with pytest.raises(KafkaException, match="_FENCED"):
        sender.commit_transaction(TIMEOUT_S)


def late_batch(cluster: EmbeddedCluster, topic: str) -> None:
    """A transactional batch to a leader that does not coordinate its transactional id: it cannot
    know that no transaction has it."""
    with closing(ClusterClient(parse_bootstrap(cluster.bootstrap), negotiates=True)) as client:
        leader = client.leader(Partition(topic, 0)).id
        names = (f"ghost {n}" for n in range(100))
        numbers = {p.partition: p.leader for p in client.partitions(TRANSACTIONS_TOPIC)}
        name = next(one for one in names if numbers[transaction_partition(one, 3)] != leader)
        now_ms = round(time.time() * 1000)
        data, _ = transactional_batch([(None, b"late")], 77_000, 5, 0, -1, now_ms)
        request = ProduceRequest(-1, 5000, [ProduceTopic(topic, [ProducePartition(0, data.data)])])
        request.transactional_id, request.version = name, 3
        response = client.at_leader(Partition(topic, 0), lambda one: one.send(request))
        assert isinstance(response, ProduceResponse)
        assert 0 == response.topics[0].partitions[0].error_code


def test_what_no_coordinator_ends_is_ended_by_hand(cluster: EmbeddedCluster, topic: str) -> None:
    """`transaction hanging` shows the partition, the doctor the same once it is overdue, and
    `transaction abort --partition` lets readers go on."""
    sender = producer(cluster, topic)
    late_batch(cluster, topic)
    sender.begin_transaction()
    send(sender, topic, "a0")
    sender.commit_transaction(TIMEOUT_S)
    assert [] == values(cluster, topic)
    [row] = json.loads(run(cluster, "hanging", "--json"))
    assert (topic, 0, 0, 77_000, 5, None) == tuple(
        row[one]
        for one in ("topic", "partition", "waits_at", "producer_id", "epoch", "transactional_id")
    )
    with SnapshotReader(cluster.zookeeper.connect_string) as reader:
        snapshot = reader.read_snapshot()
    overdue = replace(snapshot, now_ms=snapshot.now_ms + 3_600_000)
    assert "transaction-hanging" in {one.check for one in findings_of(overdue)}
    assert "transaction-hanging" not in {one.check for one in findings_of(snapshot)}
    assert "Would end" in run(cluster, "abort", "--partition", f"{topic}-0", "--dry-run")
    assert "Aborted" in run(cluster, "abort", "--partition", f"{topic}-0")
    assert ["a0"] == values(cluster, topic)
    assert "No reader" in run(cluster, "abort", "--partition", f"{topic}-0")


def test_a_coordinator_ends_its_own_transactions(cluster: EmbeddedCluster, topic: str) -> None:
    """By hand only its id can be aborted."""
    sender = producer(cluster, topic)
    sender.begin_transaction()
    send(sender, topic, "a0")
    [row] = [one for one in json.loads(run(cluster, "hanging", "--json")) if one["topic"] == topic]
    assert (topic, "Ongoing", "no") == (row["transactional_id"], row["state"], row["overdue"])
    with pytest.raises(subprocess.CalledProcessError) as caught:
        run(cluster, "abort", "--partition", f"{topic}-0")
    assert f"kafka08 transaction abort {topic}" in caught.value.stderr.decode()
    sender.commit_transaction(TIMEOUT_S)
