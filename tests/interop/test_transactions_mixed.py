"""Transactions that a JVM 0.11.0.3 and ours coordinate in turn, on one directory and in one
cluster."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from kafka08.errors import ProducerFenced
from kafka08.producer import KafkaProducer, ProducerRecord
from tests.interop.jvm import POM_0_11, POM_3_9
from tests.interop.seats import MixedCluster, Release, Seat, mixed_cluster
from tests.waiting import until

TOPIC = "t"
KEYS = {
    "transaction.state.log.num.partitions": "3",
    "offsets.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
}
TIMEOUT_S = 60


def release(brokers: int, pom: Path = POM_0_11, pins: Mapping[str, str] = {}) -> Release:
    keys = {
        "transaction.state.log.replication.factor": str(brokers),
        "transaction.state.log.min.isr": "1",
        "offsets.topic.replication.factor": str(brokers),
    }
    return Release(pom, "0.11.0", {**KEYS, **keys, **pins})


def producer(cluster: MixedCluster, name: str) -> Producer:
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


def values(cluster: MixedCluster) -> list[str]:
    """What readers of committed messages get."""
    keys = {
        "bootstrap.servers": cluster.bootstrap,
        "group.id": "unused",
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
        "log_level": 0,
    }
    found: list[str] = []
    with closing(Consumer(keys)) as consumer:
        consumer.assign([TopicPartition(TOPIC, 0, 0)])
        while True:
            message = consumer.poll(TIMEOUT_S)
            assert message is not None, f"{found}, and no end"
            if message.error():
                return found
            found.append((message.value() or b"").decode())


@pytest.mark.timeout(300)
@pytest.mark.parametrize("jvm_first", [True, False], ids=["jvm", "ours"])
def test_an_open_transaction_changes_hands(tmp_path: Path, jvm_first: bool) -> None:
    """The broker is killed while a transaction is open, and the other one takes its directory: it
    commits, aborts and fences what was begun there, and goes on with the producers' ids."""
    with mixed_cluster(tmp_path, 1, release(1)) as cluster:
        (seat,) = cluster.seats
        starts = [seat.start_jvm, seat.start_ours]
        if not jvm_first:
            starts.reverse()
        starts[0]()
        cluster.admin.create_topic(TOPIC)
        cluster.await_isr(TOPIC, 1)
        commits, aborts = producer(cluster, "commits"), producer(cluster, "aborts")
        wanted: list[str] = []
        for turn in range(1, 4):
            for sender in (commits, aborts):
                sender.begin_transaction()
                sender.produce(TOPIC, f"{turn} {'c' if sender is commits else 'a'}")
                assert 0 == sender.flush(TIMEOUT_S)
            left = producer(cluster, f"left {turn}")
            left.begin_transaction()
            left.produce(TOPIC, f"{turn} left")
            assert 0 == left.flush(TIMEOUT_S)
            seat.kill()
            starts[turn % 2]()
            commits.commit_transaction(TIMEOUT_S)
            aborts.abort_transaction(TIMEOUT_S)
            producer(cluster, f"left {turn}")
            wanted.append(f"{turn} c")
            # The markers follow the answer to EndTxn.
            until(lambda: wanted == values(cluster), f"{wanted} to be read")


@pytest.mark.timeout(300)
def test_each_coordinates_and_leads(tmp_path: Path) -> None:
    """In a cluster of both, transactions of every coordinator are committed and aborted in
    partitions of every leader; one is killed in between."""
    with mixed_cluster(tmp_path, 2, release(2)) as cluster:
        jvm, ours = cluster.seats
        jvm.start_jvm()
        ours.start_ours()
        for turn in range(2):
            cluster.admin.create_topic(f"{TOPIC}{turn}", assignment={0: (1 + turn, 2 - turn)})
            cluster.await_isr(f"{TOPIC}{turn}", 1, 2)
        cluster.admin.create_topic(TOPIC, 1, 2)
        cluster.await_isr(TOPIC, 1, 2)
        senders = [producer(cluster, f"p{number}") for number in range(6)]
        wanted: list[str] = []

        def round_of(text: str) -> None:
            for number, sender in enumerate(senders):
                for ends, letter in (
                    (sender.commit_transaction, "c"),
                    (sender.abort_transaction, "a"),
                ):
                    send(sender, f"{text} {number} {letter}")
                    ends(TIMEOUT_S)
                wanted.append(f"{text} {number} c")

        round_of("both")
        until(lambda: wanted == values(cluster), "all to be read")
        for seat, start in ((jvm, jvm.start_jvm), (ours, ours.start_ours)):
            seat.kill()
            round_of(f"without {seat.id}")
            start()
            cluster.await_isr(TOPIC, 1, 2)
            until(lambda: wanted == values(cluster), "all to be read")


@pytest.mark.timeout(600)
def test_transactions_are_open_while_brokers_become_3_9(tmp_path: Path) -> None:
    """Ours, JVM 3.9.1 pinned to our protocol and format, ours again, and JVM 3.9.1 without pins
    follow one another broker by broker: what is open is committed, aborted or fenced afterwards."""
    pins = {"inter.broker.protocol.version": "0.11.0", "log.message.format.version": "0.11.0"}
    pinned, later = release(2, POM_3_9, pins), release(2, POM_3_9)

    def ours(seat: Seat) -> None:
        seat.start_ours()

    def jvm(seat: Seat) -> None:
        seat.start_jvm(pinned)

    def unpinned(seat: Seat) -> None:
        seat.start_jvm(later)

    with mixed_cluster(tmp_path, 2, release(2)) as cluster:
        for seat in cluster.seats:
            ours(seat)
        cluster.admin.create_topic(TOPIC, 1, 2)
        cluster.await_isr(TOPIC, 1, 2)
        commits, aborts = own_producer(cluster, "commits"), own_producer(cluster, "aborts")
        wanted: list[str] = []
        for turn, start in enumerate((jvm, ours, jvm, unpinned)):
            left = own_producer(cluster, f"left {turn}")
            for sender, letter in ((commits, "c"), (aborts, "a"), (left, "left")):
                sender.begin_transaction()
                sender.send(ProducerRecord(TOPIC, f"{turn} {letter}".encode())).result(TIMEOUT_S)
            for seat in cluster.seats:
                seat.stop()
                start(seat)
                cluster.await_isr(TOPIC, 1, 2)
            commits.commit_transaction()
            aborts.abort_transaction()
            own_producer(cluster, f"left {turn}").close()
            with pytest.raises(ProducerFenced):
                left.commit_transaction()
            left.close()
            wanted.append(f"{turn} c")
            until(lambda: wanted == values(cluster), f"{wanted} to be read")
        commits.close()
        aborts.close()


def own_producer(cluster: MixedCluster, name: str) -> KafkaProducer:
    made = KafkaProducer(
        bootstrap_servers=cluster.bootstrap, transactional_id=name, transaction_timeout_ms=300_000
    )
    made.init_transactions()
    return made


def send(sender: Producer, text: str) -> None:
    sender.begin_transaction()
    for topic in (TOPIC, f"{TOPIC}0", f"{TOPIC}1"):
        sender.produce(topic, text)
    assert 0 == sender.flush(TIMEOUT_S)
