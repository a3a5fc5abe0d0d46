"""Which partitions a response about a group is about, and how far it is behind in each."""

from __future__ import annotations

import pytest

from kafka08.observe.coordinated import CoordinatedGroup, CoordinatedMember
from kafka08.observe.group import PartitionFacts
from kafka08.observe.members import Member
from kafka08.observe.snapshot import COORDINATOR, ZOOKEEPER, Committed, GroupState, partitions_of
from kafka08.structs import Broker, TopicPartition

ASSIGNED = {"read": (0, 1), "owned": (0,), "committed": (0, 1, 2), "other": (0,)}


def test_all_partitions_of_every_topic_that_concerns_the_group() -> None:
    """Those of topics that it reads and of topics with one offset; a partition that does not exist
    any more stays, and a topic that does not exist has none."""
    known = [TopicPartition("committed", 1), TopicPartition("gone", 5)]
    found = partitions_of(ASSIGNED, {"read", "owned", "deleted"}, known)
    assert sorted(found) == [
        TopicPartition("committed", 0),
        TopicPartition("committed", 1),
        TopicPartition("committed", 2),
        TopicPartition("gone", 5),
        TopicPartition("owned", 0),
        TopicPartition("read", 0),
        TopicPartition("read", 1),
    ]


@pytest.mark.parametrize(
    ("zookeeper", "kafka", "start", "end", "lag", "text"),
    [
        (30, 40, 10, 100, 60, "60"),
        (30, None, 10, 100, 70, "70"),
        (None, None, 10, 100, 90, "at least 90"),
        (None, None, 100, 100, 0, "at least 0"),
        (None, None, 0, 0, 0, "0"),
        (None, None, None, None, None, None),
        (120, None, 10, 100, None, None),
        (5, None, 10, 100, 95, "95"),
        (-1, None, 10, 100, 90, "at least 90"),
        (30, None, 10, -1, None, None),
    ],
)
def test_the_lag_of_a_partition(
    zookeeper: int | None,
    kafka: int | None,
    start: int | None,
    end: int | None,
    lag: int | None,
    text: str | None,
) -> None:
    """It counts from the newest offset. Without one it counts from the log's start and is a lower
    bound, since older messages may be deleted, unless the log begins at 0."""
    found = PartitionFacts(TopicPartition("t", 0), zookeeper, kafka, start, end)
    assert (found.lag, found.lag_text) == (lag, text)


def test_nothing_is_said_of_a_partition_that_kafka_was_not_asked_about() -> None:
    """It may have an offset there: neither "never committed" nor a lag."""
    found = PartitionFacts(TopicPartition("t", 0), None, None, 10, 100, coordinator_responded=False)
    assert not found.never_committed
    assert found.lag is None


REGISTERED = (Member("g_a", None, 1),)
IN_KAFKA = {TopicPartition("t", 0): Committed(1)}


def at_coordinator(*members: str, protocol_type: str = "consumer") -> CoordinatedGroup:
    described = tuple(CoordinatedMember(one, "c", "/h") for one in members)
    return CoordinatedGroup("g", Broker(0, "h", 1), "Stable", protocol_type, "", described)


@pytest.mark.parametrize(
    ("group", "kinds"),
    [
        (GroupState(), ()),
        (GroupState(in_zookeeper=True), (ZOOKEEPER,)),
        (GroupState(kafka=IN_KAFKA), (ZOOKEEPER,)),
        (GroupState(coordinated=at_coordinator()), (COORDINATOR,)),
        (GroupState(kafka=IN_KAFKA, coordinated=at_coordinator(protocol_type="")), (COORDINATOR,)),
        (GroupState(in_zookeeper=True, coordinated=at_coordinator(protocol_type="")), (ZOOKEEPER,)),
        (
            GroupState(in_zookeeper=True, coordinated=at_coordinator("m")),
            (COORDINATOR, ZOOKEEPER),
        ),
        (GroupState(in_zookeeper=True, coordinated=at_coordinator()), (ZOOKEEPER, COORDINATOR)),
        (
            GroupState(in_zookeeper=True, registered=REGISTERED, coordinated=at_coordinator("m")),
            (ZOOKEEPER, COORDINATOR),
        ),
    ],
)
def test_the_kinds_of_a_group(group: GroupState, kinds: tuple[str, ...]) -> None:
    """Of two of one name the one with members comes first, else the one in ZooKeeper; one that only
    commits to Kafka is of ZooKeeper if that has it, or if no coordinator knows it."""
    assert kinds == group.kinds
