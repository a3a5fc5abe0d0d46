"""Rows of a live view whose logs are not known."""

from __future__ import annotations

from dataclasses import replace

from kafka08.exporter.histories import Histories
from kafka08.exporter.summary import Summary, group_partitions, summary_of
from kafka08.observe.snapshot import ClusterView, Committed, GroupState, PartitionState
from kafka08.structs import Broker, TopicPartition

LED, LOST = TopicPartition("t", 0), TopicPartition("t", 1)


def view(*partitions: TopicPartition, end: int | None) -> ClusterView:
    """A group that committed 5 in each; `end` of the first, not of others."""
    ends = dict.fromkeys(partitions) | {partitions[0]: end}
    return ClusterView(
        1000,
        {1: Broker(1, "h", 9092)},
        1,
        {tp: PartitionState(1, (1,), (1,), None if e is None else 0, e) for tp, e in ends.items()},
        {"g": GroupState(1, dict.fromkeys(partitions, Committed(5)))},
    )


def summary(now: ClusterView) -> Summary:
    histories = Histories()
    histories.add(now)
    return summary_of(replace(now, now_ms=2000), now, histories)


def test_a_group_with_unknown_logs_has_no_lag() -> None:
    """It has no verdict either: with all brokers down, 0 and OK would claim a healthy group."""
    shown = summary(view(LED, LOST, end=None))
    [group], [topic] = shown.groups, shown.topics
    assert (None, None) == (group.lag, group.verdict)
    assert (None, None) == (topic.messages, topic.per_second)


def test_a_partition_with_an_unknown_log_has_no_verdict() -> None:
    """Of two partitions of a group one has a known lag, and with it a verdict."""
    now = view(LED, LOST, end=12)
    histories = Histories()
    histories.add(now)
    rows = group_partitions(now, histories, "g")
    assert [(7, "WATCHING"), (None, None)] == [(row.lag, row.verdict) for row in rows]


def test_a_clock_that_was_set_back_leaves_rates_unknown() -> None:
    """Divided by next to no time, some messages would be a million per second."""
    before, later = view(LED, end=5), replace(view(LED, end=105), now_ms=400)
    [broker], [topic], [group] = (
        (shown := summary_of(later, before, Histories())).brokers,
        shown.topics,
        shown.groups,
    )
    assert (None, None, None) == (broker.per_second, topic.per_second, group.per_second)


def test_known_partitions_count() -> None:
    """Of two partitions one has a known lag, which counts."""
    shown = summary(view(LED, LOST, end=12))
    [group], [topic] = shown.groups, shown.topics
    assert (7, "WATCHING") == (group.lag, group.verdict)
    assert (12, 0.0) == (topic.messages, topic.per_second)


def test_a_group_is_not_ok_while_a_partition_is_unknown() -> None:
    """It has read everything that is known, and what it cannot know may be any number."""
    shown = summary(view(LED, LOST, end=5))
    assert [(0, "WATCHING")] == [(group.lag, group.verdict) for group in shown.groups]


def test_a_partition_that_is_new_counts_from_its_first_message() -> None:
    """Its topic was created between two views, or two reports: all its messages came since."""
    before, later = view(LED, end=5), replace(view(LED, LOST, end=5), now_ms=3000)
    created = PartitionState(1, (1,), (1,), 3, 9)
    later = replace(later, partitions={**later.partitions, LOST: created})
    shown = summary_of(later, before, Histories())
    assert [4.5] == [topic.per_second for topic in shown.topics]
    assert [4.5] == [broker.per_second for broker in shown.brokers]


def test_a_group_that_never_committed_has_no_lag() -> None:
    """How far its members are is unknown: 0 and OK would claim that they keep up."""
    before = view(LED, end=12)
    [group] = summary(replace(before, groups={"g": GroupState(1)})).groups
    assert (None, None) == (group.lag, group.verdict)
