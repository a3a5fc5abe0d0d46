"""Which times of messages are asked for, and how often."""

from __future__ import annotations

from collections.abc import Mapping

from kafka08.observe.message_times import ROUNDS_MAX, UNTIMED_LOOKS, MessageTimes
from kafka08.structs import TopicPartition

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


class Brokers:
    """Every message has its offset as its time, but those of `untimed` partitions."""

    def __init__(self, *untimed: TopicPartition) -> None:
        self.untimed = set(untimed)
        self.asked: list[dict[TopicPartition, int]] = []

    def __call__(self, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        self.asked.append(dict(offsets))
        return {tp: None if tp in self.untimed else offset for tp, offset in offsets.items()}


def test_partitions_are_asked_for_together_and_the_latest_groups_first() -> None:
    """A request has one offset of each partition, that of the group that is furthest behind
    first."""
    brokers = Brokers()
    found = MessageTimes().look_up({T0: {7, 3}, T1: {5}}, brokers)
    assert {(T0, 3): 3, (T0, 7): 7, (T1, 5): 5} == found
    assert [{T0: 3, T1: 5}, {T0: 7}] == brokers.asked


def test_unchanged_positions_are_not_requested_again() -> None:
    """Deleted ones are forgotten."""
    brokers, times = Brokers(), MessageTimes()
    times.look_up({T0: {3, 7}}, brokers)
    assert {(T0, 7): 7, (T0, 9): 9} == times.look_up({T0: {7, 9}}, brokers)
    assert [{T0: 3}, {T0: 7}, {T0: 9}] == brokers.asked
    times.look_up({T0: {3}}, brokers)
    assert {T0: 3} == brokers.asked[-1]


def test_a_partition_without_timestamps_is_left_alone_for_a_while() -> None:
    """Its topic may be given timestamps later."""
    brokers, times = Brokers(T0), MessageTimes()
    for look in range(UNTIMED_LOOKS):
        assert {(T1, look): look} == times.look_up({T0: {1, 2}, T1: {look}}, brokers)
    assert 1 == sum(T0 in asked for asked in brokers.asked)
    brokers.untimed.clear()
    assert {(T0, 1): 1} == times.look_up({T0: {1}}, brokers)


def test_requests_for_a_thousand_groups_are_limited() -> None:
    """Groups beyond the limit are left to the history; a request without a response is repeated."""
    brokers = Brokers()
    found = MessageTimes().look_up({T0: set(range(1000))}, brokers)
    assert {(T0, n) for n in range(ROUNDS_MAX)} == set(found)
    assert ROUNDS_MAX == len(brokers.asked)


def test_a_question_that_had_no_response_is_asked_again() -> None:
    """Its leader was moving."""
    brokers, times = Brokers(), MessageTimes()
    assert {} == times.look_up({T0: {1}}, lambda _: {})
    assert {(T0, 1): 1} == times.look_up({T0: {1}}, brokers)
