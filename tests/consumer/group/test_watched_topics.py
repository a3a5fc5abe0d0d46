"""WatchedTopics: which metadata calls for another assignment."""

from __future__ import annotations

import pytest

from kafka08.client.metadata import ClusterMetadata, PartitionInfo, TopicInfo
from kafka08.consumer.group.watched_topics import MISSING_CHECK_S, WatchedTopics


def metadata_of(**counts: int) -> ClusterMetadata:
    """Metadata with these numbers of partitions."""
    topics = {
        topic: TopicInfo(topic, None, tuple(PartitionInfo(number, 1) for number in range(count)))
        for topic, count in counts.items()
    }
    return ClusterMetadata(topics=topics)


def leading(**counts: int) -> WatchedTopics:
    """A leader that has computed an assignment from these counts."""
    watched = WatchedTopics()
    watched.begin(sorted(counts))
    watched.count(counts)
    return watched


def test_another_topic_calls_for_a_rebalance() -> None:
    """A member that does not lead looks at the topics alone, as a pattern finds them."""
    watched = WatchedTopics()
    watched.begin(["t"])
    assert not watched.have_changed(["t"], metadata_of(t=3), 0.0)
    assert watched.have_changed(["t", "u"], metadata_of(t=3, u=1), 0.0)


@pytest.mark.parametrize(("count", "has_changed"), [(2, False), (3, True)])
def test_a_topic_that_grows_calls_for_a_rebalance(count: int, has_changed: bool) -> None:
    """The leader computes the assignment again, at once."""
    assert has_changed == leading(t=2).have_changed(["t"], metadata_of(t=count), 0.0)


def test_a_topic_that_shrinks_is_given_up_after_a_while() -> None:
    """A broker that has just started knows no topic. The time counts from the first metadata
    without it, whoever got that, and ends with the next in which it is whole."""
    watched = leading(t=2)
    gone, whole = metadata_of(t=0), metadata_of(t=2)
    assert watched.note_shrinking(gone, 10.0)
    assert watched.misses_some()
    assert not watched.have_changed(["t"], gone, 10.0 + MISSING_CHECK_S / 2)
    assert not watched.have_changed(["t"], whole, 10.0 + MISSING_CHECK_S)
    assert not watched.misses_some()
    assert not watched.have_changed(["t"], gone, 20.0)
    assert watched.have_changed(["t"], gone, 20.0 + MISSING_CHECK_S)


def test_a_topic_without_partitions_is_missing_until_it_is_created() -> None:
    """The leader looks for it more often, and assigns its partitions as soon as it has some."""
    watched = leading(t=0)
    assert watched.misses_some()
    assert not watched.have_changed(["t"], metadata_of(), 0.0)
    assert watched.have_changed(["t"], metadata_of(t=1), 0.0)
