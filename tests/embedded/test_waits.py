"""Waits for states: each returns when its state is there, and else says what was seen last."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from kafka08.consumer import ConsumerConfig, ConsumerConnector, KafkaConsumer
from kafka08.embedded import EmbeddedCluster
from kafka08.embedded.group_states import committed, small_lag, stable
from kafka08.embedded.not_yet import NotYet
from kafka08.embedded.waits import check_isr, check_leader, check_leaders
from kafka08.errors import KafkaError
from kafka08.groups import CoordinatedFacts, CoordinatedGroup, CoordinatedMember, PartitionFacts
from kafka08.producer import KafkaProducer, KafkaProducerConfig, ProducerRecord
from kafka08.protocol.metadata import MetadataResponse, PartitionMetadata, TopicMetadata
from kafka08.structs import Broker, LeaderAndIsr, TopicPartition

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
AT_ONCE = 0.05


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(2) as cluster:
        yield cluster


def test_a_leader_moves_and_the_isr_heals(cluster: EmbeddedCluster) -> None:
    """After a kill another broker leads, as every running broker knows; after `heal` the killed one
    is in the ISR again. What is not there is named."""
    cluster.create_topic("moves", 2, 2)
    cluster.wait.isr("moves")
    former = cluster.wait.leader("moves", 1)
    cluster.kill(former)
    leader = cluster.wait.leader("moves", 1, other_than=former)
    assert leader is cluster.brokers[1 - former.id]
    with pytest.raises(KafkaError) as caught:
        cluster.wait.isr("moves", timeout=AT_ONCE)
    assert str(caught.value).startswith("not within 0.05 s: the ISR of moves is whole. Last seen: ")
    cluster.heal()
    cluster.wait.isr("moves")


def test_a_group_of_consumers(cluster: EmbeddedCluster) -> None:
    """Two members share the partitions, commit, and have no lag once they have read everything."""
    cluster.create_topic("read", 2)
    with ExitStack() as opened:
        consumers = [
            opened.enter_context(
                KafkaConsumer(
                    bootstrap_servers=cluster.bootstrap,
                    group_id="readers",
                    auto_offset_reset="earliest",
                    enable_auto_commit=False,
                )
            )
            for _ in range(2)
        ]
        for consumer in consumers:
            consumer.subscribe(["read"])
            consumer.poll(0.0)
        polled(consumers, lambda: cluster.wait.group("readers", 2, timeout=AT_ONCE))
        owned = cluster.wait.group("readers", 2)
        assert [[("read", 0)], [("read", 1)]] == sorted(map(list, owned.values()))
        with pytest.raises(KafkaError, match="Last seen: state Stable, 2 members"):
            cluster.wait.group("readers", 3, timeout=AT_ONCE)
        send(cluster, "read", 3)
        read = TopicPartition("read", 0)
        with pytest.raises(KafkaError, match="Last seen: nothing is committed"):
            cluster.wait.lag("readers", timeout=AT_ONCE)
        polled(consumers, lambda: sum(c.position(read) for c in owners(consumers, read)) == 3)
        for consumer in consumers:
            consumer.commit()
        assert 3 == cluster.wait.committed("readers", read, 2)
    send(cluster, "read", 2)
    with pytest.raises(KafkaError, match=r"Last seen: lag 2, of \[read,0\] 2$"):
        cluster.wait.lag("readers", 1, topic="read", timeout=AT_ONCE)
    with pytest.raises(
        KafkaError, match=r"has committed 5 of \[read,0\]. Last seen: 3 is committed"
    ):
        cluster.wait.committed("readers", read, 5, timeout=AT_ONCE)
    assert 2 == cluster.wait.lag("readers", 2)


def test_a_group_of_zookeeper(cluster: EmbeddedCluster) -> None:
    """The same for members that share partitions by ZooKeeper."""
    cluster.create_topic("old", 2)
    keys = {"group.id": "old", "zookeeper.connect": cluster.zookeeper.connect_string}
    with ExitStack() as opened:
        for number in range(2):
            config = ConsumerConfig({**keys, "consumer.id": str(number)})
            connector = opened.enter_context(ConsumerConnector(config))
            connector.create_message_streams({"old": 1})
        owned = cluster.wait.group("old", 2)
        assert {"old_0": (("old", 0),), "old_1": (("old", 1),)} == owned
    with pytest.raises(KafkaError, match="Last seen: no member"):
        cluster.wait.group("old", 1, timeout=AT_ONCE)


def test_a_dead_broker_ends_a_wait_at_once(cluster: EmbeddedCluster) -> None:
    """With its log: the state will not come."""
    broker = cluster.brokers[0]
    broker.process.kill()
    began = time.monotonic()
    with pytest.raises(KafkaError, match=r"(?s)broker 0 ended with exit code -9.*INFO"):
        cluster.wait.topic("never")
    assert time.monotonic() - began < 10
    broker.note_death()
    cluster.heal()


def known(*leaders: int) -> MetadataResponse:
    partitions = [PartitionMetadata(0, n, leader, [0], [0]) for n, leader in enumerate(leaders)]
    return MetadataResponse([], [TopicMetadata(0, "t", partitions)])


def group(state: str, *members: tuple[TopicPartition, ...]) -> CoordinatedFacts:
    described = tuple(
        CoordinatedMember(f"m{number}", "c", "/h", ("t",), owns)
        for number, owns in enumerate(members)
    )
    found = CoordinatedGroup("g", Broker(0, "h", 1), state, "consumer", "range", described)
    offsets = (facts(T0, 5, 8), facts(T1, None, 4))
    return CoordinatedFacts(found, offsets)


def facts(tp: TopicPartition, offset: int | None, end: int) -> PartitionFacts:
    return PartitionFacts(tp, None, offset, 0, end, True, 0, None)


@pytest.mark.parametrize(
    ("look", "seen"),
    [
        (lambda: check_leaders(1, None, "t", 2), "broker 1 does not respond"),
        (lambda: check_leaders(1, known(0), "t", 2), "broker 1 knows no leader of t, partitions 1"),
        (
            lambda: check_leaders(1, known(-1), "t", 1),
            "broker 1 knows no leader of t, partitions 0",
        ),
        (lambda: check_leader(1, known(0), "t", 0, 2), "leader 2, but broker 1 knows 0"),
        (lambda: check_leader(1, known(), "t", 0, 2), "leader 2, but broker 1 knows -1"),
        (
            lambda: check_isr({0: (1, 2)}, {0: LeaderAndIsr(1, 0, (1,), 0, 0)}),
            "partition 0 has ISR [1] of replicas [1, 2]",
        ),
        (lambda: check_isr({0: (1,)}, {}), "partition 0 has ISR [] of replicas [1]"),
        (
            lambda: stable(group("AwaitingSync", (T0,)), 1),
            "state AwaitingSync, 1 member",
        ),
        (lambda: stable(group("Stable", (T0,)), 2), "state Stable, 1 member"),
        (lambda: stable(None, 1), "no member"),
        (lambda: committed(None, T0, 1), "nothing is committed"),
        (lambda: committed(group("Stable"), T1, 1), "nothing is committed"),
        (lambda: committed(group("Stable"), T0, 6), "5 is committed"),
        (lambda: small_lag(None, None, 0), "no partition that the group reads"),
        (lambda: small_lag(group("Stable"), None, 0), "nothing is committed of [t,1]"),
        (lambda: small_lag(group("Stable"), "u", 0), "no partition that the group reads"),
    ],
)
def test_what_was_seen_last(look: Callable[[], object], seen: str) -> None:
    """A sentence for the error of each wait."""
    with pytest.raises(NotYet) as caught:
        look()
    assert seen == str(caught.value)


def test_what_is_there() -> None:
    """The values that the waits return."""
    check_leaders(1, known(0, 1), "t", 2)
    check_leader(1, known(0, 1), "t", 1, 1)
    check_isr({0: (1, 2)}, {0: LeaderAndIsr(1, 0, (2, 1), 0, 0)})
    found = group("Stable", (T0,), (T1,))
    assert {"m0": (T0,), "m1": (T1,)} == stable(found, 2)
    assert {} == stable(None, 0)
    assert 5 == committed(found, T0, 4)


def polled(consumers: list[KafkaConsumer], reached: Callable[[], object]) -> None:
    """Poll all in turn until the state is there."""
    give_up_at = time.monotonic() + 60
    while True:
        for consumer in consumers:
            consumer.poll(0.01)
        try:
            if reached():
                return
        except KafkaError:
            pass
        assert time.monotonic() < give_up_at


def owners(consumers: list[KafkaConsumer], tp: TopicPartition) -> list[KafkaConsumer]:
    return [consumer for consumer in consumers if tp in consumer.assignment()]


def send(cluster: EmbeddedCluster, topic: str, count: int) -> None:
    """To its first partition."""
    with KafkaProducer(KafkaProducerConfig(bootstrap_servers=cluster.bootstrap)) as producer:
        for _ in range(count):
            producer.send(ProducerRecord(topic, b"x", partition=0)).result(30)
