"""One log line for what went wrong with many partitions in the same way."""

from __future__ import annotations

from kafka08.broker.grouped_errors import GroupedErrors
from kafka08.errors import NotLeaderForPartition, UnknownTopicOrPartition
from kafka08.structs import TopicPartition


def test_the_first_of_each_kind_is_named_and_the_others_counted() -> None:
    """In the order in which they came; nothing comes of nothing."""
    refused = GroupedErrors()
    assert [] == list(refused)
    first, other = NotLeaderForPartition("first"), UnknownTopicOrPartition("other")
    refused.add(TopicPartition("t", 0), first)
    refused.add(TopicPartition("t", 1), other)
    for number in range(2, 5):
        refused.add(TopicPartition("t", number), NotLeaderForPartition("again"))
    assert [("partition [t,0] and 3 more", first), ("partition [t,1]", other)] == list(refused)
