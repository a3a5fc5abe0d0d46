"""Subscriptions: the filter rules of 0.8.2.2, and the meaning of a member's znode."""

from __future__ import annotations

import pytest

from kafka08.consumer.subscription import (
    Blacklist,
    FilterSubscription,
    StaticSubscription,
    Whitelist,
    subscription_of,
    thread_ids,
)
from kafka08.errors import ConfigError
from kafka08.zk.nodes import ConsumerRegistration, decode_consumer, encode_consumer

EXISTING = ["tt", "uu", "t.x", "__consumer_offsets"]


def test_filters_normalize_their_pattern() -> None:
    """Commas mean alternatives, blanks are removed, and quotes around the pattern are dropped
    (TopicFilter)."""
    assert Whitelist(' "tt, uu" ').regex == "tt|uu"
    assert Whitelist("'tt'") == Whitelist("tt")
    assert Whitelist("tt") != Blacklist("tt")


def test_whitelist_and_blacklist_match_whole_names() -> None:
    """A pattern must match the whole name. A blacklist is the opposite of a whitelist."""
    assert list(FilterSubscription(Whitelist("t"), 1).topics(EXISTING)) == []
    assert FilterSubscription(Whitelist("t.*"), 2).topics(EXISTING) == {"t.x": 2, "tt": 2}
    assert FilterSubscription(Blacklist("t.*"), 1).topics(EXISTING) == {"uu": 1}


def test_internal_topics_only_when_asked_for() -> None:
    """Both filters leave out __consumer_offsets unless exclude.internal.topics is false."""
    everything = FilterSubscription(Whitelist(".*"), 1, exclude_internal_topics=False)
    assert set(everything.topics(EXISTING)) == set(EXISTING)
    assert "__consumer_offsets" not in FilterSubscription(Blacklist("x"), 1).topics(EXISTING)


def test_static_topics_count_before_they_exist() -> None:
    """A named topic belongs to the subscription before it exists."""
    assert StaticSubscription({"new": 3}).topics(EXISTING) == {"new": 3}


@pytest.mark.parametrize(
    ("text", "pattern", "expected"),
    [
        ('{"tt":1,"uu":2}', "static", StaticSubscription({"tt": 1, "uu": 2})),
        ('{"t.*":2}', "white_list", FilterSubscription(Whitelist("t.*"), 2)),
        ('{"t\\/x":1}', "black_list", FilterSubscription(Blacklist("t/x"), 1)),
        ("{}", "white_list", StaticSubscription({})),
    ],
)
def test_reads_a_znodes_pattern(text: str, pattern: str, expected: object) -> None:
    """Each pattern in a znode is its subscription; an empty pattern means static (TopicCount)."""
    znode = f'{{"version":1,"subscription":{text},"pattern":"{pattern}","timestamp":"1"}}'
    assert expected == subscription_of(decode_consumer(znode), exclude_internal_topics=True)


def test_writes_and_reads_the_same() -> None:
    """A znode that we write is read as the same subscription."""
    for subscription in (
        StaticSubscription({"a": 1}),
        FilterSubscription(Whitelist(r"a\.b/c|d"), 3),
        FilterSubscription(Blacklist("x.*"), 1),
    ):
        znode = encode_consumer(subscription.registration(17))
        read = subscription_of(decode_consumer(znode), exclude_internal_topics=True)
        assert subscription == read


def test_refuses_an_impossible_subscription() -> None:
    """A pattern that is not supported, or a member without streams, is an error, as in 0.8.2.2."""
    with pytest.raises(ConfigError):
        subscription_of(ConsumerRegistration({"(": 1}, "white_list"), exclude_internal_topics=True)
    with pytest.raises(ConfigError):
        subscription_of(ConsumerRegistration({"t": 0}), exclude_internal_topics=True)


def test_thread_ids_are_numbered_from_zero() -> None:
    """Thread ids are `<consumer id>-<n>`, from 0 on."""
    assert thread_ids("g_a", 2) == ["g_a-0", "g_a-1"]
