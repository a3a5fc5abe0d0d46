"""Plans that change a stopped group's offsets: in the log or refused, shifts stop at its ends."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.admin.group_facts import GroupFacts, OfBoth, Offset
from kafka08.admin.offset_changes import ChangePlan, Target, plan_reset, plan_set
from kafka08.observe.group import PartitionFacts
from kafka08.observe.members import Member
from kafka08.structs import TopicPartition
from tests.migration.group_facts import foreign

TP = TopicPartition("t", 0)


def group(*partitions: PartitionFacts, members: tuple[Member, ...] = ()) -> GroupFacts:
    return GroupFacts("g", members, partitions)


def facts(zookeeper: Offset, kafka: Offset) -> PartitionFacts:
    return PartitionFacts(TP, zookeeper, kafka, 10, 90)


@pytest.mark.parametrize(
    ("target", "number", "responses", "offset"),
    [
        (Target.EARLIEST, 0, {}, 10),
        (Target.LATEST, 0, {}, 90),
        (Target.OFFSET, 33, {}, 33),
        (Target.SHIFT, 5, {}, 55),
        (Target.SHIFT, -5, {}, 45),
        (Target.SHIFT, -500, {}, 10),
        (Target.SHIFT, 500, {}, 90),
        (Target.TIMESTAMP, 0, {TP: 42}, 42),
        (Target.TIMESTAMP, 0, {TP: None}, 10),
    ],
)
def test_each_target(
    target: Target, number: int, responses: dict[TopicPartition, Offset], offset: int
) -> None:
    """Shifts count from the newer store; a log that began after the time is read from its start."""
    plan = plan_reset(group(facts(40, 50)), target, number, responses)
    assert (plan.offsets, plan.refusals) == ({TP: offset}, ())
    assert plan.changes[0].messages == offset - 50


def test_refusals_name_their_reason() -> None:
    """An offset outside the log, live members, deleted partitions and an unknown group are
    refused."""
    gone = PartitionFacts(TopicPartition("gone", 0), 5, None, None, None, exists=False)
    cases: list[tuple[ChangePlan, str]] = [
        (plan_reset(group(facts(1, 2)), Target.OFFSET, 91), "range 10 to 90"),
        (plan_set(group(facts(1, 2)), {TP: (9, None)}), "range 10 to 90"),
        (plan_set(group(gone), {gone.topic_partition: (9, 9)}), "does not exist"),
        (plan_reset(group(facts(1, 2), members=(foreign("g_a"),)), Target.LATEST), "g_a"),
        (plan_reset(group(), Target.LATEST), "names of all groups"),
        (plan_reset(GroupFacts("g", (), (), "away"), Target.LATEST), "away"),
    ]
    for plan, reason in cases:
        assert reason in "\n".join(plan.refusals)
    assert plan_reset(group(gone, facts(1, 2)), Target.LATEST).offsets == {TP: 90}


@pytest.mark.parametrize(
    ("wanted", "moved", "kept"),
    [
        ((40, 50), 0, None),
        ((30, 30), -20, None),
        ((None, 60), 10, "[t,0]: ZooKeeper keeps 40"),
        ((30, None), 0, "[t,0]: Kafka keeps 50"),
    ],
)
def test_each_store_gets_its_own(wanted: OfBoth, moved: int, kept: str | None) -> None:
    """A file may have different ones, or none for a store, which then keeps its offset: that is
    named, since members of both stores continue from the larger one."""
    plan = plan_set(group(facts(40, 50)), {TP: wanted})
    assert (plan.in_zookeeper.get(TP), plan.in_kafka.get(TP)) == wanted
    assert (plan.changes[0].messages, plan.changes[0].kept) == (moved, kept)


@given(
    st.sampled_from(Target),
    st.integers(-200, 200),
    st.none() | st.integers(0, 200),
    st.none() | st.integers(0, 200),
)
def test_every_target_lies_in_the_log(
    target: Target, number: int, zookeeper: Offset, kafka: Offset
) -> None:
    """This holds for any offsets in the stores."""
    plan = plan_reset(group(facts(zookeeper, kafka)), target, number)
    if not plan.refusals:
        assert 10 <= plan.offsets[TP] <= 90
