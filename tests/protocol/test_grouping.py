"""Partitions grouped for the wire and back: nothing is lost on the way."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kafka08.protocol.grouping import by_partition, by_topic
from kafka08.protocol.offsets import OffsetsPartitionResponse, OffsetsTopicResponse
from kafka08.structs import TopicPartition

partitions = st.builds(TopicPartition, st.sampled_from("abc"), st.integers(0, 5))


@given(st.dictionaries(partitions, st.integers()))
def test_grouping_by_topic_keeps_every_partition(items: dict[TopicPartition, int]) -> None:
    """Every partition is there once, topics in the order of their first partition."""
    grouped = by_topic(items)
    assert {TopicPartition(t, p): i for t, parts in grouped.items() for p, i in parts} == items
    assert list(grouped) == list(dict.fromkeys(tp.topic for tp in items))


@given(st.dictionaries(partitions, st.integers(-1, 20)))
def test_by_partition_reverses_grouping(codes: dict[TopicPartition, int]) -> None:
    """Values grouped by topic come back under the same partitions."""
    topics = [
        OffsetsTopicResponse(topic, [OffsetsPartitionResponse(p, code, []) for p, code in parts])
        for topic, parts in by_topic(codes).items()
    ]
    assert {tp: a.error_code for tp, a in by_partition(topics).items()} == codes


def test_the_last_of_two_partitions_of_one_name_counts() -> None:
    """As in the JVM's maps the last one wins, within one topic or in two."""
    first, second, third = (OffsetsPartitionResponse(0, 0, [offset]) for offset in (1, 2, 3))
    topics = [OffsetsTopicResponse("t", [first, second]), OffsetsTopicResponse("t", [third])]
    assert by_partition(topics[:1]) == {TopicPartition("t", 0): second}
    assert by_partition(topics) == {TopicPartition("t", 0): third}
