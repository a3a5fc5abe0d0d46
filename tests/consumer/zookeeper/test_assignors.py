"""Assignors choose what real consumers of 0.8.2.2 chose, and are fair for any input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.consumer.subscription import subscription_of, thread_ids
from kafka08.consumer.zookeeper.assignors import Assignment, range_assign, round_robin_assign
from kafka08.errors import ConsumerRebalanceFailed
from kafka08.structs import TopicPartition
from kafka08.zk.nodes import decode_consumer

CAPTURED = json.loads((Path(__file__).parents[2] / "data" / "assignment-0.8.2.2.json").read_text())
PARTITIONS = {"tt": list(range(7)), "uu": list(range(5))}

topics = st.dictionaries(
    st.text("abcdxyz._-", min_size=1, max_size=6), st.integers(0, 12).map(range), max_size=5
)
members = st.sets(st.text("abc123", min_size=1, max_size=4), min_size=1, max_size=6)


def captured_owners(strategy: str) -> Assignment:
    owners = {}
    for path, owner in CAPTURED[strategy].items():
        parts = path.split("/")
        if parts[3] == "owners":
            owners[TopicPartition(parts[4], int(parts[5]))] = owner
    return owners


def captured_threads(strategy: str) -> dict[str, list[str]]:
    """topic → thread ids, from the captured registrations as our own code reads them."""
    threads: dict[str, list[str]] = {}
    for path, text in CAPTURED[strategy].items():
        parts = path.split("/")
        if parts[3] == "ids":
            found = subscription_of(decode_consumer(text), exclude_internal_topics=True)
            for topic, count in found.topics(["tt", "uu", "other"]).items():
                threads.setdefault(topic, []).extend(thread_ids(parts[4], count))
    return threads


def test_range_equals_the_choice_of_real_consumers() -> None:
    """Each partition has the owner that it had with three JVM consumers and topics of 7 and 5
    partitions."""
    assignment = range_assign(PARTITIONS, captured_threads("range"))
    assert captured_owners("range") == assignment


def test_round_robin_equals_the_choice_of_real_consumers() -> None:
    """Each partition has the owner that it had with three JVM consumers and topics of 7 and 5
    partitions."""
    assignment = round_robin_assign(PARTITIONS, captured_threads("roundrobin"))
    assert captured_owners("roundrobin") == assignment


def test_threads_sort_as_strings() -> None:
    """`m-10` sorts before `m-2`, so it gets the lower partitions."""
    assignment = range_assign({"t": range(11)}, {"t": thread_ids("m", 11)})
    order = ["m-0", "m-1", "m-10", "m-2", "m-3", "m-4", "m-5", "m-6", "m-7", "m-8", "m-9"]
    assert order == [assignment[TopicPartition("t", p)] for p in range(11)]


def test_range_gives_the_first_threads_one_more() -> None:
    """C1 and C2 with two streams each share five partitions, as in the example of RangeAssignor's
    own comment."""
    threads = {"t": thread_ids("C2", 2) + thread_ids("C1", 2)}
    assignment = range_assign({"t": [4, 2, 0, 3, 1]}, threads)
    expected = ["C1-0", "C1-0", "C1-1", "C2-0", "C2-1"]
    assert expected == [assignment[TopicPartition("t", p)] for p in range(5)]


@given(topics, st.data())
def test_range_gives_each_partition_to_one_subscriber(
    partitions: dict[str, range], data: st.DataObject
) -> None:
    """Each partition of a subscribed topic has one owner. A thread's partitions are contiguous,
    numbers differ by at most one, and topics do not influence each other."""
    threads = {t: [f"{m}-0" for m in data.draw(members)] for t in partitions}
    assignment = range_assign(partitions, threads)
    assert {TopicPartition(t, p) for t in partitions for p in partitions[t]} == set(assignment)
    for topic, numbers in partitions.items():
        owners = [assignment[TopicPartition(topic, p)] for p in numbers]
        assert sorted(owners) == owners
        assert set(owners) <= set(threads[topic])
        counts = [owners.count(thread) for thread in threads[topic]]
        assert max(counts) - min(counts) <= 1
        alone = range_assign({topic: numbers}, {topic: threads[topic]})
        assert alone == {tp: o for tp, o in assignment.items() if tp.topic == topic}


@given(topics, members, st.integers(1, 3))
def test_round_robin_spreads_evenly(
    partitions: dict[str, range], names: set[str], streams: int
) -> None:
    """Each partition has one owner, and the threads differ by at most one partition."""
    readers = [thread for name in sorted(names) for thread in thread_ids(name, streams)]
    assignment = round_robin_assign(partitions, dict.fromkeys(partitions, readers))
    assert {TopicPartition(t, p) for t in partitions for p in partitions[t]} == set(assignment)
    counts = [list(assignment.values()).count(thread) for thread in readers]
    assert max(counts) - min(counts) <= 1


@given(topics, members)
def test_order_of_input_does_not_matter(partitions: dict[str, range], names: set[str]) -> None:
    """Members that read the znodes in different orders compute the same assignment."""
    forward = {t: sorted(f"{n}-0" for n in names) for t in partitions}
    backward = {t: threads[::-1] for t, threads in reversed(forward.items())}
    turned = {t: list(p)[::-1] for t, p in reversed(partitions.items())}
    assert range_assign(partitions, forward) == range_assign(turned, backward)
    assert round_robin_assign(partitions, forward) == round_robin_assign(turned, backward)


def test_round_robin_refuses_unequal_subscriptions() -> None:
    """One topic with other streams than the rest fails the whole rebalance, as in 0.8.2.2."""
    with pytest.raises(ConsumerRebalanceFailed, match="uu"):
        round_robin_assign(PARTITIONS, {"tt": ["a-0", "b-0"], "uu": ["a-0"]})


def test_no_members_and_no_partitions() -> None:
    """Without members or without partitions the assignment is empty."""
    assert range_assign({"t": [0]}, {}) == {}
    assert round_robin_assign({"t": [0]}, {}) == {}
    assert round_robin_assign({}, {"t": ["a-0"]}) == {}
