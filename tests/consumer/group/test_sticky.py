"""The sticky assignor: complete, balanced, and nothing moves that need not."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from hypothesis import given
from hypothesis import strategies as st

from kafka08.consumer.group.assignors import MemberAssignment, Shares
from kafka08.consumer.group.sticky import (
    StickyAssignor,
    decode_previous,
    encode_previous,
    share_stickily,
)
from kafka08.structs import TopicPartition

TOPICS = ("a", "b", "c", "d")
counts_of_topics = st.dictionaries(st.sampled_from(TOPICS), st.integers(1, 12), min_size=1)
wishes = st.dictionaries(
    st.sampled_from([f"m{n}" for n in range(8)]),
    st.sets(st.sampled_from(TOPICS), min_size=1).map(sorted),
    min_size=1,
)


def none_had(topics: Mapping[str, Sequence[str]]) -> dict[str, tuple[int, list[TopicPartition]]]:
    return {member: (-1, []) for member in topics}


def had(shares: Shares, generation: int = 1) -> dict[str, tuple[int, list[TopicPartition]]]:
    return {member: (generation, share) for member, share in shares.items()}


def check(shares: Shares, counts: Mapping[str, int], topics: Mapping[str, Sequence[str]]) -> None:
    """Each partition that somebody wants is given once, to one that wants it; and no member could
    take one from another that has at least two more."""
    given_out = [tp for share in shares.values() for tp in share]
    wanted = {topic for of in topics.values() for topic in of}
    every = {
        TopicPartition(t, n) for t, count in counts.items() if t in wanted for n in range(count)
    }
    assert len(given_out) == len(set(given_out))
    assert set(given_out) == every
    for member, share in shares.items():
        assert {tp.topic for tp in share} <= set(topics[member])
        for other, theirs in shares.items():
            can_take = {tp.topic for tp in share} & set(topics[other])
            assert not (can_take and len(theirs) <= len(share) - 2)


@given(counts_of_topics, wishes)
def test_new_partitions_are_assigned_evenly(
    counts: dict[str, int], topics: dict[str, list[str]]
) -> None:
    """Members with different topics, without previous partitions, get an even share."""
    check(share_stickily(counts, topics, none_had(topics)), counts, topics)


@given(counts_of_topics, wishes)
def test_the_same_members_keep_their_partitions(
    counts: dict[str, int], topics: dict[str, list[str]]
) -> None:
    """A rebalance without a change moves no partition."""
    first = share_stickily(counts, topics, none_had(topics))
    assert share_stickily(counts, topics, had(first)) == first


@given(counts_of_topics, wishes, st.data())
def test_after_any_change_it_is_even_again(
    counts: dict[str, int], topics: dict[str, list[str]], data: st.DataObject
) -> None:
    """Members, wishes and partitions change at once."""
    first = share_stickily(counts, topics, none_had(topics))
    counts2, topics2 = data.draw(counts_of_topics), data.draw(wishes)
    before = {member: (1, first.get(member, [])) for member in topics2}
    check(share_stickily(counts2, topics2, before), counts2, topics2)


@given(st.integers(1, 60), st.integers(2, 8))
def test_a_member_that_leaves_moves_only_its_partitions(count: int, size: int) -> None:
    """The other members keep theirs."""
    topics = {f"m{n}": ["a"] for n in range(size)}
    first = share_stickily({"a": count}, topics, none_had(topics))
    del topics["m0"]
    after = share_stickily({"a": count}, topics, {m: (1, first[m]) for m in topics})
    assert all(set(first[member]) <= set(after[member]) for member in topics)


@given(st.integers(1, 60), st.integers(1, 8))
def test_a_member_that_comes_takes_only_its_share(count: int, size: int) -> None:
    """Among the others nothing moves."""
    topics = {f"m{n}": ["a"] for n in range(size)}
    first = share_stickily({"a": count}, topics, none_had(topics))
    topics["new"] = ["a"]
    after = share_stickily({"a": count}, topics, {**had(first), "new": (-1, [])})
    assert all(set(after[member]) <= set(first[member]) for member in first)
    assert len(after["new"]) == count // (size + 1)


def test_of_two_that_claim_a_partition_the_later_generation_keeps_it() -> None:
    """A member that was away for a generation may claim what others have by now."""
    topics = {"away": ["a"], "here": ["a"]}
    claimed = [TopicPartition("a", 0), TopicPartition("a", 1)]
    shares = share_stickily({"a": 2}, topics, {"away": (4, claimed), "here": (5, claimed[:1])})
    assert shares == {"away": [claimed[1]], "here": [claimed[0]]}


def test_a_member_gives_of_the_topic_of_which_it_has_most() -> None:
    """So no topic is with one member as long as there are others."""
    a, b = ([TopicPartition(t, n) for n in range(4)] for t in "ab")
    topics = {"new": ["a", "b"], "old": ["a", "b"]}
    before = {"new": (-1, []), "old": (1, [*a, *b[:2]])}
    shares = share_stickily({"a": 4, "b": 2}, topics, before)
    assert shares["new"] == a[1:]


def test_the_order_in_a_subscription_does_not_matter() -> None:
    """The assignment is the same whichever member leads, and however the claims are encoded."""
    topics = {"new": ["a"], "old": ["a"]}
    claims = [TopicPartition("a", n) for n in range(5)]
    found = [
        share_stickily({"a": 5}, topics, {"new": (-1, []), "old": (1, listed)})
        for listed in (claims, claims[::-1])
    ]
    assert found[0] == found[1]


def test_a_way_over_a_third_member_evens_out() -> None:
    """`x` has too much of a topic that `z` does not want, but `y` in between wants both."""
    topics = {"x": ["a"], "y": ["a", "b"], "z": ["b"]}
    a, b = ([TopicPartition(t, n) for n in range(4)] for t in "ab")
    before = {"x": (1, a), "y": (1, b[:3]), "z": (1, b[3:])}
    shares = share_stickily({"a": 4, "b": 4}, topics, before)
    assert sorted(map(len, shares.values())) == [2, 3, 3]


def test_a_large_group_is_shared_before_a_session_ends() -> None:
    """The leader sends no heartbeats meanwhile. Half of 1,000 members want one topic more, of which
    a few have had everything until now."""
    names = [f"m{n:03d}" for n in range(1000)]
    topics = {name: ["a", "b"] if n % 2 else ["a"] for n, name in enumerate(names)}
    counts = {"a": 1500, "b": 1500}
    before = none_had(topics)
    for n in range(5):
        numbers = range(300 * n, 300 * n + 300)
        before[names[2 * n + 1]] = (1, [TopicPartition("b", number) for number in numbers])
    began = time.process_time()
    shares = share_stickily(counts, topics, before)
    assert time.process_time() - began < 8
    assert {len(share) for share in shares.values()} == {3}


def test_user_data_is_java_s() -> None:
    """Version 0 of Java's StickyAssignor; of version 1, the generation behind it is read."""
    partitions = [TopicPartition("t", 2), TopicPartition("t", 0)]
    data = bytes.fromhex("00000001000174000000020000000200000000")
    assert encode_previous(partitions) == data
    assert decode_previous(data) == (-1, partitions)
    assert decode_previous(data + bytes.fromhex("00000007")) == (7, partitions)
    assert decode_previous(b"") == decode_previous(b"\xff") == decode_previous(None) == (-1, [])


def test_a_member_sends_its_previous_partitions() -> None:
    """The subscription after an assignment has them."""
    assignor = StickyAssignor()
    assignor.on_assignment(MemberAssignment([TopicPartition("t", 1)]))
    said = assignor.subscription(["t"])
    assert decode_previous(said.user_data) == (-1, [TopicPartition("t", 1)])
    assignor.on_assignment(MemberAssignment([TopicPartition("t", 0)]))
    said = assignor.subscription(["t"])
    assert decode_previous(said.user_data) == (-1, [TopicPartition("t", 0)])
