"""Range and round robin on hand-made groups; tests/interop compares them with Java's."""

from __future__ import annotations

from kafka08.client.metadata import ClusterMetadata, PartitionInfo, TopicInfo
from kafka08.consumer.group.assignors import (
    MemberSubscription,
    RangeAssignor,
    RoundRobinAssignor,
    java_sorted,
    partition_counts,
)
from kafka08.errors import LeaderNotAvailable
from kafka08.structs import TopicPartition


def numbers(partitions: list[TopicPartition]) -> list[str]:
    return [f"{topic}{number}" for topic, number in partitions]


def test_range_gives_the_first_members_the_rest() -> None:
    """Each topic by itself, so the first member has more of both."""
    shares = RangeAssignor().share({"t": 3, "u": 3}, {"m2": ["t", "u"], "m1": ["t", "u"]})
    assert numbers(shares["m1"]) == ["t0", "t1", "u0", "u1"]
    assert numbers(shares["m2"]) == ["t2", "u2"]


def test_range_counts_those_that_want_the_topic() -> None:
    """Another member of the group makes their runs no shorter."""
    shares = RangeAssignor().share({"t": 4, "u": 1}, {"m1": ["t"], "m2": ["t"], "m3": ["u"]})
    assert [numbers(shares[m]) for m in ("m1", "m2", "m3")] == [["t0", "t1"], ["t2", "t3"], ["u0"]]


def test_round_robin_continues_from_topic_to_topic() -> None:
    """It skips a member that is not subscribed to the topic."""
    shares = RoundRobinAssignor().share({"t": 3, "u": 3}, {"m1": ["t", "u"], "m2": ["u"]})
    assert numbers(shares["m1"]) == ["t0", "t1", "t2", "u1"]
    assert numbers(shares["m2"]) == ["u0", "u2"]


def test_a_topic_that_does_not_exist_is_left_out() -> None:
    """Its members get what there is, or nothing."""
    for assignor in (RangeAssignor(), RoundRobinAssignor()):
        shares = assignor.share({"t": 1}, {"m1": ["t", "new"], "m2": ["new"]})
        assert shares == {"m1": [TopicPartition("t", 0)], "m2": []}


def test_topics_without_partitions_have_no_count() -> None:
    """Topics that are missing in the metadata or in error have no count; the others are sorted by
    name, in whatever order members subscribed."""
    parts = tuple(PartitionInfo(number, leader=1) for number in range(2))
    known = {
        "u": TopicInfo("u", partitions=parts),
        "t": TopicInfo("t", partitions=parts[:1]),
        "bad": TopicInfo("bad", LeaderNotAvailable),
    }
    counts = partition_counts(
        ClusterMetadata({}, known),
        [MemberSubscription(("u", "bad", "t")), MemberSubscription(("new",))],
    )
    assert list(counts.items()) == [("t", 1), ("u", 2)]


def test_members_sort_as_in_java() -> None:
    """Members sort by UTF-16 units: a character beyond the basic plane comes before U+FFFD."""
    assert java_sorted(["�", "\U0001f600", "b", "a"]) == ["a", "b", "\U0001f600", "�"]
