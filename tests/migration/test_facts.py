"""What a second look at a group shows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafka08.migration.facts import GroupFacts, Offset, seen_again
from tests.migration.group_facts import TP, facts, foreign, group


@pytest.mark.parametrize(
    ("before", "after", "moves"),
    [(50, 50, False), (50, 51, True), (None, 5, True), (50, None, False)],
)
def test_what_nobody_owns_and_moves_in_zookeeper(
    before: Offset, after: Offset, moves: bool
) -> None:
    """Another offset than before, or a first one; one that is gone moves no more."""
    in_zookeeper = {} if after is None else {TP: after}
    found = seen_again(group(facts(before, None)), in_zookeeper, {})
    assert found.moving == ((TP,) if moves else ())


@pytest.mark.parametrize(
    ("zookeeper", "kafka", "fresh"),
    [(50, 80, False), (79, 80, False), (80, 80, True), (50, 81, True), (50, None, False)],
)
def test_an_offset_of_kafka_that_is_no_old_one(zookeeper: int, kafka: Offset, fresh: bool) -> None:
    """Its owner is not ours; Kafka had 80. It goes on there, or ZooKeeper has come after it."""
    owned = replace(facts(50, 80), owner="g_jvm-0")
    before = GroupFacts("g", (foreign("g_jvm"),), (owned,))
    found = seen_again(before, {TP: zookeeper}, {} if kafka is None else {TP: kafka})
    assert found.fresh == ((TP,) if fresh else ())
    assert found.moving == ()
