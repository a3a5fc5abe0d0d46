"""A second read of a group shows its changes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafka08.admin.group_facts import GroupFacts, Offset
from kafka08.migration.facts import seen_again
from kafka08.observe.snapshot import Owner
from tests.migration.group_facts import TP, facts, foreign, group


def test_unknown_offsets_in_kafka_come_with_advice() -> None:
    """The reason alone, such as an error's name and code, does not tell an operator what to do."""
    facts_of_group = GroupFacts(
        "g", (), (), unavailable="no coordinator (15)", faults=("/znode: x",)
    )
    assert facts_of_group.unknown == (
        "/znode: x",
        "offsets in Kafka: no coordinator (15); see kafka08 topic describe __consumer_offsets",
    )


@pytest.mark.parametrize(
    ("before", "after", "moves"),
    [(50, 50, False), (50, 51, True), (None, 5, True), (50, None, False)],
)
def test_unowned_partitions_that_move_in_zookeeper(
    before: Offset, after: Offset, moves: bool
) -> None:
    """A partition without an owner moves if it has another offset than before, or a first one; one
    whose offset disappeared does not."""
    in_zookeeper = {} if after is None else {TP: after}
    found = seen_again(group(facts(before, None)), in_zookeeper, {})
    assert found.moving == ((TP,) if moves else ())


@pytest.mark.parametrize(
    ("zookeeper", "kafka", "fresh"),
    [(50, 80, False), (79, 80, False), (80, 80, True), (50, 81, True), (50, None, False)],
)
def test_an_offset_in_kafka_that_is_current(zookeeper: int, kafka: Offset, fresh: bool) -> None:
    """The owner is a foreign member, and Kafka had 80: the offset is current if Kafka advances from
    it, or ZooKeeper reached it."""
    owned = replace(facts(50, 80), owner=Owner("g_jvm-0", 1))
    before = GroupFacts("g", (foreign("g_jvm"),), (owned,))
    found = seen_again(before, {TP: zookeeper}, {} if kafka is None else {TP: kafka})
    assert found.fresh == ((TP,) if fresh else ())
    assert found.moving == ()


@pytest.mark.parametrize(
    ("zookeeper", "kafka", "fresh"),
    [(80, 50, False), (80, 51, True), (90, 50, False), (80, 80, False), (90, 80, False)],
)
def test_a_smaller_offset_in_kafka_that_is_current(zookeeper: int, kafka: int, fresh: bool) -> None:
    """The owner is a foreign member, ZooKeeper had 80 and Kafka 50: Kafka's offset is current if it
    advances below ZooKeeper's. One that reaches ZooKeeper's was copied by a mirror."""
    owned = replace(facts(80, 50), owner=Owner("g_jvm-0", 1))
    before = GroupFacts("g", (foreign("g_jvm"),), (owned,))
    assert seen_again(before, {TP: zookeeper}, {TP: kafka}).fresh == ((TP,) if fresh else ())
