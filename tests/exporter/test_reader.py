"""Which groups a look does not ask about."""

from __future__ import annotations

from kafka08.exporter.reader import without_coordinator
from kafka08.hashing import group_partition
from kafka08.structs import OFFSETS_TOPIC, TopicPartition

GROUPS = [f"group-{n}" for n in range(20)]


def test_groups_whose_coordinator_is_down_are_not_asked_about() -> None:
    """By the leaders of the offsets topic; the others are. Without that topic none is silent."""
    led = [TopicPartition(OFFSETS_TOPIC, n) for n in range(4) if n != 2]
    led.append(TopicPartition("t", 2))
    silent = without_coordinator(GROUPS, 4, led)
    assert {2} == {group_partition(group, 4) for group in silent}
    assert {0, 1, 3} == {group_partition(group, 4) for group in set(GROUPS) - set(silent)}
    assert [] == without_coordinator(GROUPS, 0, led)
