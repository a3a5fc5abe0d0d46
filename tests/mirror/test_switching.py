"""Which groups may switch to the target of a move, and with which offsets."""

from __future__ import annotations

from typing import Any

import pytest

from kafka08.errors import KafkaError
from kafka08.mirror.offset_map import Copied, OffsetMap, Run
from kafka08.mirror.switching import GroupSwitch, switches
from kafka08.observe.snapshot import ClusterView, Committed, GroupState, PartitionState
from kafka08.structs import TopicPartition
from kafka08.zk.migration_protocol import OffsetStorage

TP = TopicPartition("t", 0)
OTHER = TopicPartition("other", 0)


def switched(storage: OffsetStorage | None = None, **state: Any) -> list[GroupSwitch]:
    """Of one group, where offsets 10 to 19 of the source are 0 to 9 of the target."""
    copied = OffsetMap()
    copied.add(Copied(TP, (Run(10, 10, 0),)))
    partitions = {TP: PartitionState(1, (1,), (1,), 10, 30)}
    view = ClusterView(0, partitions=partitions, groups={"g": GroupState(**state)})
    return switches(view, copied, storage)


def test_offsets_are_translated() -> None:
    """Those of topics that do not move are counted, and left where they are."""
    committed = {TP: Committed(15), OTHER: Committed(3)}
    (found,) = switched(zookeeper=committed, in_zookeeper=True)
    assert found == GroupSwitch("g", {TP: (15, 5)}, (), 1)


def test_a_group_without_offsets_is_left_out() -> None:
    """Also one that has read other topics alone."""
    assert switched() == []
    assert switched(kafka={OTHER: Committed(3)}) == []


@pytest.mark.parametrize(
    ("state", "why"),
    [
        ({"zookeeper": {TP: Committed(15)}, "members": 2}, "it has 2 members"),
        (
            {"kafka": {TP: Committed(15)}, "members": None, "unknown_group": KafkaError("late")},
            "whether it has members is unknown: late",
        ),
        ({"kafka": {TP: Committed(25)}}, "5 messages that it has read are not copied"),
        (
            {"kafka": {TP: Committed(15)}, "zookeeper": {TP: Committed(12)}},
            "ZooKeeper and Kafka have different offsets of 1 partitions, such as",
        ),
        ({"kafka": {TP: Committed(15)}, "unreadable": {OTHER: "/x: no number"}}, "/x: no number"),
    ],
)
def test_it_cannot_switch(state: dict[str, Any], why: str) -> None:
    """The reason is said: nothing would be lost or repeated without a word."""
    (found,) = switched(**state)
    assert any(why in reason for reason in found.refusals), found.refusals


def test_a_named_store_counts() -> None:
    """Where both have offsets."""
    state = {"kafka": {TP: Committed(15)}, "zookeeper": {TP: Committed(12)}}
    (found,) = switched(OffsetStorage.ZOOKEEPER, **state)
    assert (found.offsets, found.refusals) == ({TP: (12, 2)}, ())
    (found,) = switched(OffsetStorage.KAFKA, **state)
    assert (found.offsets, found.refusals) == ({TP: (15, 5)}, ())
