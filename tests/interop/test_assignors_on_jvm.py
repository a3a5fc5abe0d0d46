"""Guarantee 5: the assignment is the one that 0.8.2.2's own assignors compute, whatever the group.

The same znodes go to both: registrations and topics as our code writes them. Round robin sorts by
a hash; of partitions with equal hashes 0.8.2.2 leaves the order to a hash map, so groups with such
topics are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from kafka08.consumer.subscription import (
    Blacklist,
    FilterSubscription,
    StaticSubscription,
    Subscription,
    Whitelist,
)
from kafka08.consumer.zookeeper.assignment import GroupView, assign
from kafka08.consumer.zookeeper.assignors import Assignment
from kafka08.errors import ConsumerRebalanceFailed
from kafka08.hashing import java_string_hash
from kafka08.structs import TopicPartition
from kafka08.zk import nodes, paths
from tests.interop.assignor_oracle import AssignorOracle, Refused

TOPICS = ("a", "b", "tt", "logs.web", "logs.db", "A-1", "x_y", "__consumer_offsets")
PATTERNS = ("a|b", "logs\\..*", "[a-t]+", ".*", "x_y,tt", "nothing")

names = st.text("abcXYZ019-_.", min_size=1, max_size=6)
topic_sizes = st.dictionaries(st.sampled_from(TOPICS), st.integers(1, 24), min_size=1)
statics = st.dictionaries(st.sampled_from(TOPICS), st.integers(1, 12), min_size=1, max_size=4).map(
    StaticSubscription
)
filters = st.builds(
    lambda kind, pattern, streams: FilterSubscription(kind(pattern), streams),
    st.sampled_from([Whitelist, Blacklist]),
    st.sampled_from(PATTERNS),
    st.integers(1, 12),
)
any_members = st.dictionaries(names, statics | filters, min_size=1, max_size=6)
equal_members = st.builds(
    lambda members, topics: {
        name: StaticSubscription(dict.fromkeys(topics, streams))
        for name, streams in members.items()
    },
    st.dictionaries(names, st.integers(1, 12), min_size=1, max_size=6),
    st.sets(st.sampled_from(TOPICS), min_size=1),
)
jvm_property = settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


@pytest.fixture(scope="module")
def oracle() -> Iterator[AssignorOracle]:
    with AssignorOracle() as running:
        yield running


def znodes(members: Mapping[str, Subscription], sizes: Mapping[str, int]) -> dict[str, str]:
    """The group `g` as ZooKeeper has it."""
    ids = {
        paths.consumer_id("g", name): nodes.encode_consumer(subscription.registration(1))
        for name, subscription in members.items()
    }
    topics = {
        paths.topic(name): nodes.encode_assignment(dict.fromkeys(range(size), (1,)))
        for name, size in sizes.items()
    }
    return ids | topics


def our_assignment(
    members: Mapping[str, Subscription], sizes: Mapping[str, int], strategy: str
) -> Assignment:
    """The assignment of all members together, by our code."""
    partitions = {topic: tuple(range(size)) for topic, size in sizes.items()}
    view = GroupView(dict(members), tuple(sorted(sizes)), partitions)
    chosen: Assignment = {}
    for name in members:
        chosen |= assign(view, name, strategy)
    return chosen


@jvm_property
@given(members=any_members, sizes=topic_sizes)
def test_guarantee_5_range_is_the_jvms(
    oracle: AssignorOracle, members: dict[str, Subscription], sizes: dict[str, int]
) -> None:
    """The range assignor returns the JVM's assignment for topics by name, missing topics and
    patterns, with up to 72 threads a topic."""
    theirs = oracle.assignment(znodes(members, sizes), "range", "g", members)
    assert theirs == our_assignment(members, sizes, "range")


@jvm_property
@given(members=equal_members, sizes=topic_sizes)
def test_guarantee_5_round_robin_is_the_jvms(
    oracle: AssignorOracle, members: dict[str, Subscription], sizes: dict[str, int]
) -> None:
    """The round-robin assignor returns the JVM's assignment for members that read the same topics
    with different numbers of threads."""
    every = [TopicPartition(topic, n) for topic, size in sizes.items() for n in range(size)]
    assume(len({java_string_hash(str(tp)) for tp in every}) == len(every))
    theirs = oracle.assignment(znodes(members, sizes), "roundrobin", "g", members)
    assert theirs == our_assignment(members, sizes, "roundrobin")


@jvm_property
@given(members=any_members, sizes=topic_sizes)
def test_guarantee_5_round_robin_refuses_as_the_jvm(
    oracle: AssignorOracle, members: dict[str, Subscription], sizes: dict[str, int]
) -> None:
    """For unequal subscriptions both raise, or both assign alike. A group without topics is no
    error for us, where 0.8.2.2 fails on an empty map."""
    every = [TopicPartition(topic, n) for topic, size in sizes.items() for n in range(size)]
    assume(len({java_string_hash(str(tp)) for tp in every}) == len(every))
    try:
        theirs = oracle.assignment(znodes(members, sizes), "roundrobin", "g", members)
    except Refused as refusal:
        if str(refusal) != "java.lang.IllegalArgumentException":
            assert our_assignment(members, sizes, "roundrobin") == {}
            return
        with pytest.raises(ConsumerRebalanceFailed):
            our_assignment(members, sizes, "roundrobin")
    else:
        assert theirs == our_assignment(members, sizes, "roundrobin")
