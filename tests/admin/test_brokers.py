"""Descriptions of brokers, from registrations and descriptions of topics."""

from __future__ import annotations

from kafka08.admin import PartitionDescription, TopicDescription
from kafka08.admin.brokers import brokers_of
from kafka08.client.bootstrap import parse_bootstrap
from kafka08.structs import TopicPartition
from kafka08.zk.nodes import BrokerRegistration

HOST = BrokerRegistration("h", 9092, timestamp_ms=5)


def topic(*partitions: PartitionDescription) -> TopicDescription:
    return TopicDescription("t", partitions, {})


def test_leaders_and_replicas_are_counted_by_broker() -> None:
    """A partition counts for its leader once, and for each broker that it is assigned to."""
    topics = [
        topic(
            PartitionDescription(0, 1, (1, 2), (1, 2)),
            PartitionDescription(1, 2, (2, 1), (2, 1)),
            PartitionDescription(2, 1, (1,), (1,)),
        )
    ]
    one, two = brokers_of({1: HOST, 2: HOST}, 2, topics)
    assert (1, 2, 3, False) == (one.broker_id, one.leaders, one.replicas, one.is_controller)
    assert (2, 1, 2, True) == (two.broker_id, two.leaders, two.replicas, two.is_controller)


def test_a_missing_replica_counts_at_leader_and_follower() -> None:
    """The partition is under-replicated at its leader, and out of sync at the broker that is not in
    the ISR."""
    topics = [topic(PartitionDescription(0, 1, (1, 2), (1,)))]
    one, two = brokers_of({1: HOST, 2: HOST}, None, topics)
    partition = (TopicPartition("t", 0),)
    assert (partition, ()) == (one.under_replicated, one.out_of_sync)
    assert ((), partition) == (two.under_replicated, two.out_of_sync)


def test_a_dead_broker_with_replicas_is_not_left_out() -> None:
    """It has no registration, and everything that it holds is out of sync; -1 is no leader."""
    topics = [topic(PartitionDescription(0, -1, (7,), ()), PartitionDescription(1, None, (7,), ()))]
    one, dead = brokers_of({1: HOST}, 1, topics)
    assert (1, 0) == (one.broker_id, one.leaders)
    assert (7, None, 0, 2) == (dead.broker_id, dead.address, dead.leaders, len(dead.out_of_sync))
    assert dead.as_dict()["registered"] is False
    assert dead.as_dict()["host"] is None


def test_a_broker_without_a_plaintext_listener_has_no_address() -> None:
    """Its endpoints are shown instead."""
    registration = BrokerRegistration(None, -1, version=4, endpoints=("SSL://h:9093",))
    [broker] = brokers_of({1: registration}, None, [])
    assert broker.address is None
    shown = broker.as_dict()
    assert (None, None, ["SSL://h:9093"]) == (shown["host"], shown["port"], shown["endpoints"])


def test_an_address_is_shown_as_bootstrap_takes_it() -> None:
    """An IPv6 address in brackets: `broker list` printed ::1:9092, which every option refuses."""
    [broker] = brokers_of({1: BrokerRegistration("::1", 9092)}, None, [])
    assert "[::1]:9092" == broker.address
    assert [("::1", 9092)] == parse_bootstrap(broker.address)
