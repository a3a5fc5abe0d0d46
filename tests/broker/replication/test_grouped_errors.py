"""One log line for the same error of many partitions."""

from __future__ import annotations

from kafka08.broker.replication.grouped_errors import GroupedErrors
from kafka08.errors import NotLeaderForPartition, UnknownTopicOrPartition
from kafka08.structs import TopicPartition


def test_the_first_of_each_kind_is_named_and_the_others_counted() -> None:
    """The line has the first partition of each kind and the number of others, in order of arrival.
    Without errors there is no line."""
    refused = GroupedErrors()
    assert [] == list(refused)
    first, other = NotLeaderForPartition("first"), UnknownTopicOrPartition("other")
    refused.add(TopicPartition("t", 0), first)
    refused.add(TopicPartition("t", 1), other)
    for number in range(2, 5):
        refused.add(TopicPartition("t", number), NotLeaderForPartition("again"))
    assert [("partition [t,0] and 3 more", str(first)), ("partition [t,1]", str(other))] == list(
        refused
    )
