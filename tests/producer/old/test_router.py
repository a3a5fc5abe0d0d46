"""Router: the partitioner chooses by key; messages without key go to one partition until metadata
is refreshed."""

from __future__ import annotations

import random

import pytest

from kafka08.client.metadata import PartitionInfo
from kafka08.config import INT_MAX, INT_MIN
from kafka08.errors import LeaderNotAvailable, UnknownTopicOrPartition
from kafka08.producer import DefaultPartitioner
from kafka08.producer.old.router import Router
from kafka08.structs import NO_LEADER

LED = [PartitionInfo(0, 1), PartitionInfo(1, NO_LEADER), PartitionInfo(2, 2)]


@pytest.fixture
def router() -> Router:
    return Router(DefaultPartitioner(), random.Random(7))


def test_all_partitions_count_for_a_key(router: Router) -> None:
    """For a key all partitions count, also those without leader, so a key does not move while a
    broker is down."""
    assert [router.partition_of("t", n, LED) for n in range(4)] == [0, 1, 2, 0]


def test_whole_numbers_are_routed_together(router: Router) -> None:
    """Whole numbers are routed in one step to the partitions that they get one by one. Types that
    need more than a division are routed one by one."""
    keys = [0, 5, -5, INT_MAX, -INT_MAX]
    alone = [router.partition_of("t", key, LED) for key in keys]
    assert alone == router.partitions_of(keys, LED)
    for other in (True, None, "7", b"7", INT_MAX + 1, INT_MIN):
        assert router.partitions_of([1, other], LED) is None
    assert router.partitions_of(keys, []) is None
    one_s_own = Router(lambda key, partitions: 0, random.Random(7))
    assert one_s_own.partitions_of(keys, LED) is None


def test_a_message_without_a_key_keeps_to_one_partition(router: Router) -> None:
    """Messages without key go to one partition with a leader. After `forget` it may be another
    one."""
    drawn = set()
    for _ in range(20):
        first = router.partition_of("t", None, LED)
        assert {router.partition_of("t", None, LED) for _ in range(5)} == {first}
        drawn.add(first)
        router.forget()
    assert drawn == {0, 2}


def test_topics_are_drawn_for_separately(router: Router) -> None:
    """Each topic keeps its own random partition."""
    many = [PartitionInfo(p, 1) for p in range(1000)]
    drawn = {router.partition_of(f"t{n}", None, many) for n in range(5)}
    assert len(drawn) == 5


def test_nothing_to_choose_from(router: Router) -> None:
    """An unknown topic and a topic without leaders are both retriable errors."""
    with pytest.raises(UnknownTopicOrPartition, match="topic t has no partitions"):
        router.partition_of("t", 1, [])
    with pytest.raises(LeaderNotAvailable, match="no partition of topic t"):
        router.partition_of("t", None, LED[1:2])


@pytest.mark.parametrize("chosen", [-1, 3])
def test_a_partition_that_is_not_there(chosen: int) -> None:
    """The error lists the existing partitions."""
    router = Router(lambda key, partitions: chosen, random.Random(7))
    with pytest.raises(UnknownTopicOrPartition, match=f"partition {chosen} of .* 0 to 2"):
        router.partition_of("t", "k", LED)
