"""Guarantee 10 of docs/kafka-consumer.md: a KafkaConsumer follows the cluster. On brokers of ours
at each level that has groups."""

from __future__ import annotations

import re

from kafka08.admin import AdminClient
from kafka08.admin.moves import MoveStatus
from kafka08.embedded import EmbeddedCluster
from kafka08.errors import KafkaError
from kafka08.hashing import group_partition
from kafka08.producer import KafkaProducer, KafkaProducerConfig, ProducerRecord
from kafka08.structs import OFFSETS_TOPIC, TopicPartition
from tests.integration.polling_cluster import (
    consumer_of,
    fill,
    numbers,
    read,
)
from tests.waiting import until


def test_guarantee_10_new_topics_of_a_pattern_are_read(
    cluster: EmbeddedCluster, topic: str
) -> None:
    """The consumer finds them within metadata.max.age.ms."""
    fill(cluster, topic, 4)
    with consumer_of(cluster, f"g-{topic}", metadata_max_age_ms=300) as consumer:
        consumer.subscribe(re.compile(f"{topic}(-new)?"))
        found = read(consumer, 4)
        cluster.create_topic(f"{topic}-new", partitions=4, replication_factor=2)
        fill(cluster, f"{topic}-new", 8)
        found += read(consumer, 8)
        assert len(found) == 12
        assert consumer.subscription() == {topic, f"{topic}-new"}


def test_guarantee_10_a_new_topic_is_read_at_once(cluster: EmbeddedCluster) -> None:
    """A subscribed topic that is created later is found, although the metadata is valid for five
    minutes. The subscription does not create it."""
    name = "made-for-its-reader"
    with consumer_of(cluster, name) as consumer:
        consumer.subscribe([name])
        consumer.poll(1.0)
        cluster.create_topic(name, partitions=1, replication_factor=2)
        until(lambda: consumer.poll(0.1) or consumer.assignment(), "it has the new partitions")


def test_guarantee_10_new_partitions_are_read(cluster: EmbeddedCluster, topic: str) -> None:
    """The group's leader assigns them."""
    fill(cluster, topic, 4)
    with consumer_of(cluster, f"g-{topic}", metadata_max_age_ms=300) as consumer:
        consumer.subscribe([topic])
        read(consumer, 4)
        with AdminClient(cluster.zookeeper.connect_string) as admin:
            admin.alter_topic(topic, partitions=6)
        until(lambda: consumer.poll(0.1) or len(consumer.assignment()) == 6, "it has six")


def test_guarantee_10_a_topic_that_is_deleted_and_recreated(cluster: EmbeddedCluster) -> None:
    """The recreated topic may have fewer partitions. The group gives up the missing ones, although
    the metadata is valid for five minutes, and reads the new ones from their start."""
    name = "short-lived"
    cluster.create_topic(name, partitions=4, replication_factor=2)
    fill(cluster, name, 8)
    with (
        consumer_of(cluster, name) as consumer,
        AdminClient(cluster.zookeeper.connect_string) as admin,
    ):
        consumer.subscribe([name])
        assert len(read(consumer, 8)) == 8
        admin.delete_topic(name)
        until(lambda: consumer.poll(0.1) or len(consumer.assignment()) < 4, "what is gone", 30)
        cluster.create_topic(name, partitions=1, replication_factor=2)
        until(lambda: consumer.poll(0.1) or len(consumer.assignment()) == 1, "what is new", 30)
        with KafkaProducer(KafkaProducerConfig(bootstrap_servers=cluster.bootstrap)) as producer:
            producer.send(ProducerRecord(name, b"new", partition=0))
        assert [(one.offset, one.value) for one in read(consumer, 1)] == [(0, b"new")]


def test_guarantee_10_a_coordinator_that_dies_is_followed(
    cluster: EmbeddedCluster, topic: str
) -> None:
    """The member keeps its membership at the next coordinator, and commits there."""
    group = f"g-{topic}"
    fill(cluster, topic, 40)
    assigned: list[int] = []
    with consumer_of(cluster, group, session_timeout_ms=6000) as consumer:
        consumer.subscribe([topic], on_assigned=lambda found: assigned.append(len(found)))
        found = numbers(read(consumer, 40))
        consumer.commit()
        victim = cluster.leader_of(OFFSETS_TOPIC, group_partition(group, 3))
        cluster.kill(victim)
        until(lambda: filled(cluster, topic, 40), "the other brokers lead")
        found += numbers(read(consumer, 40, seconds=40))
        consumer.commit()
        cluster.restart(victim)
        committed = consumer.committed()
    assert set(found) == set(range(80))
    assert sum(one.offset for one in committed.values() if one is not None) == len(found)
    assert assigned == [4]


def test_guarantee_10_a_coordinator_that_hands_over_is_followed(
    cluster: EmbeddedCluster, topic: str
) -> None:
    """The former coordinator stays alive and returns NotCoordinator. A member that ignored this
    would never learn of another member that joins."""
    group = f"g-{topic}"
    silent = {"enable_auto_commit": False}  # a commit would look for the coordinator, too
    with (
        consumer_of(cluster, group, **silent) as first,
        consumer_of(cluster, group, **silent) as second,
    ):
        first.subscribe([topic])
        until(lambda: first.poll(0.1) or len(first.assignment()) == 4, "it has all")
        offsets = TopicPartition(OFFSETS_TOPIC, group_partition(group, 3))
        former = cluster.leader_of(*offsets)
        with AdminClient(cluster.zookeeper.connect_string) as admin:
            moves = {offsets: (1 - former.id, former.id)}
            admin.move_partitions(moves)
            until(
                lambda: MoveStatus.COMPLETED is admin.move_statuses(moves)[offsets], "the new order"
            )
            admin.elect_preferred([offsets])
        until(lambda: cluster.leader_of(*offsets) is not former, "another coordinator")
        second.subscribe([topic])

        def share() -> bool:
            for consumer in (first, second):
                consumer.poll(0.1)
            return len(first.assignment()) == len(second.assignment()) == 2

        until(share, "both to share the partitions")


def filled(cluster: EmbeddedCluster, topic: str, start: int) -> bool:
    """Whether the partitions accept 40 more messages."""
    try:
        for number in range(4):
            assert cluster.leader_of(topic, number).expected_running
        fill(cluster, topic, 40, start)
    except (AssertionError, KafkaError):
        return False
    return True
