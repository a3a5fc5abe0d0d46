"""Reasons against members with a coordinator, on groups made of values."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafka08.admin.group_facts import GroupFacts
from kafka08.migration.handover import handover_of
from kafka08.migration.journal import Entry, State
from kafka08.observe.group import PartitionFacts
from kafka08.observe.snapshot import Owner
from kafka08.structs import TopicPartition
from tests.migration.group_facts import TP, facts, foreign, group


def entry(state: State) -> Entry:
    return Entry(state, {}, updated_ms=0)


READY = group(facts(None, 7))


def test_a_group_without_members_and_with_offsets_in_kafka_is_ready() -> None:
    """The result has the offsets at which the new members continue."""
    found = handover_of(READY, None, [])
    assert found.is_ready
    assert found.offsets == {TP: 7}


@pytest.mark.parametrize(
    ("changed", "old_brokers", "words"),
    [
        (replace(READY, members=(foreign("c1"), foreign("c2"))), [], "2 members of ZooKeeper's"),
        (group(facts(9, 7)), [], "first move the offsets to Kafka"),
        (group(facts(9, None)), [], "nothing is committed in Kafka"),
        (group(), [], "kafka08 group list shows the names of all groups"),
        (group(facts(None, None)), [], "kafka08 group list shows the names of all groups"),
        (group(replace(facts(None, 7), owner=Owner("c1-0", 1))), [], "still has an owner"),
        (replace(READY, unavailable="no coordinator"), [], "no coordinator"),
        (READY, [3], "1 broker of 0.8 (3)"),
    ],
)
def test_each_obstacle_is_named(changed: GroupFacts, old_brokers: list[int], words: str) -> None:
    """Each obstacle comes with what to do about it."""
    found = handover_of(changed, None, old_brokers)
    assert not found.is_ready
    assert any(words in line for line in found.obstacles), found.obstacles


@pytest.mark.parametrize("state", State)
def test_the_migration_must_be_finished(state: State) -> None:
    """In every other state members may commit to ZooKeeper."""
    found = handover_of(READY, entry(state), [])
    assert found.is_ready == (state is State.FINISHED)


def test_an_offset_that_kafka_has_lost_since_is_an_obstacle() -> None:
    """New members would go by auto.offset.reset in that partition, also if another one has its
    offset. A smaller one is none: the group may have been set back in Kafka."""
    other = replace(facts(None, 7), topic_partition=TopicPartition("t", 1))
    [obstacle] = handover_of(group(facts(9, None), other), entry(State.FINISHED), []).obstacles
    assert obstacle == "[t,0]: ZooKeeper has 9, Kafka nothing: repeat kafka08 migrate finish g"
    assert handover_of(group(facts(9, 3), other), entry(State.FINISHED), []).is_ready
    gone = group(facts(9, None, None, None), other)
    assert handover_of(gone, entry(State.FINISHED), []).is_ready


def test_a_smaller_offset_in_zookeeper_is_no_obstacle() -> None:
    """Members commit to Kafka alone by then."""
    behind: PartitionFacts = facts(3, 7)
    assert handover_of(group(behind), None, []).is_ready
