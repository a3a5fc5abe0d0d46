"""ClusterMetadata: what a response changes in a client's picture."""

from __future__ import annotations

import pytest

from kafka08.client.metadata import ClusterMetadata, PartitionInfo
from kafka08.errors import InvalidTopic, LeaderNotAvailable, UnknownTopicOrPartition
from kafka08.protocol.metadata import (
    BrokerEndpoint,
    MetadataResponse,
    PartitionMetadata,
    TopicMetadata,
)
from kafka08.structs import Broker, TopicPartition

T0 = TopicPartition("t", 0)


def response(*topics: TopicMetadata, brokers: tuple[int, ...] = (1, 2)) -> MetadataResponse:
    return MetadataResponse([BrokerEndpoint(b, f"b{b}", 9092) for b in brokers], list(topics))


def topic(name: str, leaders: dict[int, int], error: int = 0) -> TopicMetadata:
    return TopicMetadata(
        error, name, [PartitionMetadata(0, p, leader, [1], [1]) for p, leader in leaders.items()]
    )


def test_partitions_come_in_ascending_order() -> None:
    """Brokers answer in the order of a hash map."""
    metadata = ClusterMetadata().updated(response(topic("t", {2: 1, 0: 2, 1: 1})))
    assert [info.partition for info in metadata.partitions("t")] == [0, 1, 2]
    assert metadata.leader(T0) == Broker(2, "b2", 9092)


def test_a_dead_replica_does_not_hide_the_leader() -> None:
    """Error 9 of a partition is no obstacle to using its leader."""
    of_topic = TopicMetadata(0, "t", [PartitionMetadata(9, 0, 1, [1], [1])])
    metadata = ClusterMetadata().updated(response(of_topic))
    assert metadata.leader(T0).id == 1
    assert metadata.partitions("t") == (PartitionInfo(0, 1, (1,), (1,)),)


def test_each_failed_lookup_has_its_own_error() -> None:
    """No leader, a dead leader, an unknown partition, an unknown topic and a topic that was never
    requested have different errors."""
    metadata = ClusterMetadata().updated(response(topic("t", {0: -1, 1: 9}), topic("gone", {}, 3)))
    with pytest.raises(LeaderNotAvailable, match=r"\[t,0\]"):
        metadata.leader(T0)
    with pytest.raises(LeaderNotAvailable, match=r"\[t,1\]: its leader, broker 9, is not alive"):
        metadata.leader(TopicPartition("t", 1))
    with pytest.raises(UnknownTopicOrPartition, match=r"\[t,2\]"):
        metadata.leader(TopicPartition("t", 2))
    with pytest.raises(UnknownTopicOrPartition, match="topic gone"):
        metadata.partitions("gone")
    with pytest.raises(UnknownTopicOrPartition, match="no broker lists topic"):
        metadata.partitions("other")


def test_a_passing_error_keeps_the_partitions_that_were_known() -> None:
    """Error 5 or -1 for the topic says nothing new; 3 and 17 say that it is not there."""
    known = ClusterMetadata().updated(response(topic("t", {0: 1})))
    assert known.updated(response(topic("t", {}, 5))).leader(T0).id == 1
    assert known.updated(response(topic("t", {}, -1))).leader(T0).id == 1
    with pytest.raises(UnknownTopicOrPartition):
        known.updated(response(topic("t", {}, 3))).leader(T0)
    with pytest.raises(InvalidTopic):
        known.updated(response(topic("t", {}, 17))).leader(T0)
    with pytest.raises(LeaderNotAvailable):
        ClusterMetadata().updated(response(topic("t", {}, 5))).leader(T0)


def test_a_response_without_brokers_keeps_those_known() -> None:
    """The response of a broker that met an error, or of a cluster without topics."""
    known = ClusterMetadata().updated(response(topic("t", {0: 1})))
    assert known.updated(response(brokers=())).brokers == known.brokers


def test_only_a_response_for_all_topics_forgets_any() -> None:
    """A response about one topic leaves the others."""
    known = ClusterMetadata().updated(response(topic("t", {0: 1}), topic("u", {0: 1})))
    assert known.updated(response(topic("u", {0: 2}))).topics.keys() == {"t", "u"}
    assert known.updated(response(topic("u", {0: 2})), all_topics=True).topics.keys() == {"u"}


def test_replicas_that_are_offline_are_left_out() -> None:
    """As in version 0, which does not list them."""
    found = PartitionMetadata(0, 0, 1, [3, 1, 2], [1, 3], offline=[3], leader_epoch=6)
    (info,) = ClusterMetadata().updated(response(TopicMetadata(0, "t", [found]))).partitions("t")
    assert info == PartitionInfo(0, 1, (1, 2), (1,), 6)
