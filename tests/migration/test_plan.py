"""Plans of a migration: never rewind, refuse with every reason."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from kafka08.migration.facts import GroupFacts, Offset, PartitionFacts
from kafka08.migration.plan import Action, make_plan, verification_problems
from kafka08.zk.migration_protocol import OffsetStorage, Order
from tests.migration.group_facts import TP, facts, foreign, group, groups, ours


@pytest.mark.parametrize(
    ("zookeeper", "kafka", "action", "offset"),
    [
        (50, None, Action.COPY, 50),
        (50, 40, Action.COPY, 50),
        (50, 50, Action.AGREE, 50),
        (50, 60, Action.AHEAD, 60),
        (None, 60, Action.AHEAD, 60),
        (None, None, Action.NOTHING, None),
        (0, None, Action.COPY, 0),
        (100, None, Action.COPY, 100),
        (101, None, Action.REFUSE, None),
        (50, 101, Action.REFUSE, 101),
    ],
)
def test_action_for_a_partition(
    zookeeper: Offset, kafka: Offset, action: Action, offset: Offset
) -> None:
    """The larger offset wins if the log (0 to 100) has it; the log end itself is in range."""
    [step] = make_plan(group(facts(zookeeper, kafka))).steps
    assert (step.action, step.offset) == (action, offset)
    assert (step.reason is not None) == (action is Action.REFUSE)


def test_an_offset_behind_the_log_is_refused_only_if_it_counts() -> None:
    """Retention has passed ZooKeeper's old offset, which does not matter if Kafka's newer one is
    valid."""
    assert make_plan(group(facts(5, 50, start=10))).is_allowed
    plan = make_plan(group(facts(5, None, start=10)))
    assert plan.refusals == (
        "[t,0]: the offset 5 in ZooKeeper is out of the range 10 to 100 of the log",
    )


def test_disagreement_is_refused_where_a_limit_is_set() -> None:
    """Two offsets that differ by more than the limit are refused."""
    apart = group(facts(50, 39))
    assert make_plan(apart).is_allowed
    assert make_plan(apart, max_disagreement=11).is_allowed
    [refusal] = make_plan(apart, max_disagreement=10).refusals
    assert "11 messages apart, more than 10" in refusal


def test_every_reason_is_named() -> None:
    """The result has the reasons of the coordinator and of each partition at once."""
    plan = make_plan(GroupFacts("g", (), (facts(500, None),), unavailable="nobody answered"))
    assert not plan.is_allowed
    text = "\n".join(plan.refusals)
    for part in ("nobody answered", "[t,0]: the offset 500"):
        assert part in text


def test_a_group_without_offsets_is_refused() -> None:
    """A misspelt name would otherwise migrate successfully; an unreachable coordinator takes
    precedence as the reason."""
    assert ("no store has an offset of it; is that the group's name?",) == make_plan(
        group()
    ).refusals
    [refusal] = make_plan(GroupFacts("g", (), (), unavailable="nobody answered")).refusals
    assert "nobody answered" in refusal


def test_an_owner_without_a_member_is_a_reason() -> None:
    """An owner's znode outlives its member for a session timeout at most; the advice is to wait."""
    [refusal] = make_plan(group(replace(facts(5, None), owner="g_a-0"))).refusals
    assert refusal.startswith("[t,0] still belongs to g_a-0")


def test_an_old_larger_offset_in_kafka_is_refused() -> None:
    """A live member that uses ZooKeeper is at 50. With both stores it would continue from 80 at its
    next rebalance. A member that uses both is at 80 already; for a stopped group the larger offset
    counts."""
    owned = replace(facts(50, 80), owner="g_a-0")
    by_zookeeper = ours("g_a", OffsetStorage.ZOOKEEPER)
    [refusal] = make_plan(GroupFacts("g", (by_zookeeper,), (owned,))).refusals
    assert "members would skip" in refusal
    by_both = replace(by_zookeeper, confirmed=Order(1, OffsetStorage.DUAL))
    assert make_plan(GroupFacts("g", (by_both,), (owned,))).is_allowed
    assert make_plan(group(facts(50, 80))).is_allowed


def test_a_foreign_member_may_use_zookeeper() -> None:
    """Its store is unknown: it is refused like a member that uses ZooKeeper, unless a commit to
    Kafka was just seen."""
    owned = replace(facts(50, 80), owner="g_jvm-0")
    found = GroupFacts("g", (foreign("g_jvm"),), (owned,))
    [refusal] = make_plan(found).refusals
    assert "g_jvm is not a kafka08 member" in refusal
    assert "stop the group and set both stores" in refusal
    assert make_plan(replace(found, fresh=(TP,))).is_allowed
    assert make_plan(replace(found, partitions=(replace(owned, kafka=50),))).is_allowed


@pytest.mark.parametrize("kafka", [20, None])
def test_an_old_larger_offset_in_zookeeper_is_refused(kafka: Offset) -> None:
    """A live member that commits to Kafka alone is at 20, or has not committed yet. The copy of
    ZooKeeper's 50 would overwrite that, and its next owner would skip messages. A foreign member is
    one of these if Kafka's offset was seen to advance."""
    owned = replace(facts(50, kafka), owner="g_a-0")
    by_kafka = ours("g_a", OffsetStorage.KAFKA)
    [refusal] = make_plan(GroupFacts("g", (by_kafka,), (owned,))).refusals
    assert "goes by Kafka, but an old offset 50 in ZooKeeper is larger" in refusal
    by_both = replace(by_kafka, confirmed=Order(1, OffsetStorage.DUAL))
    assert make_plan(GroupFacts("g", (by_both,), (owned,))).is_allowed
    unknown = GroupFacts("g", (foreign("g_a"),), (owned,))
    assert make_plan(unknown).is_allowed
    assert make_plan(replace(unknown, fresh=(TP,))).refusals == (refusal,)


def test_deleted_partitions_are_ignored() -> None:
    """The offset of a deleted topic is neither copied nor a reason to refuse."""
    plan = make_plan(group(facts(5, None, None, None)))
    assert plan.is_allowed
    assert plan.copies == {}
    assert plan.steps[0].action is Action.SKIP


@given(groups)
def test_a_copy_never_rewinds_and_always_fits(partitions: tuple[PartitionFacts, ...]) -> None:
    """A committed offset is larger than Kafka's and lies in the log; afterwards a second plan has
    nothing to copy and verification finds no problem."""
    plan = make_plan(group(*partitions))
    found = {p.topic_partition: p for p in partitions}
    for tp, offset in plan.copies.items():
        before = found[tp]
        assert before.kafka is None or offset > before.kafka
        assert before.holds(offset)
    if plan.is_allowed:
        after = group(
            *(replace(p, kafka=plan.copies.get(p.topic_partition, p.kafka)) for p in partitions)
        )
        assert make_plan(after).copies == {}
        assert verification_problems(after) == []


def test_verification_names_skipped_and_repeated_messages() -> None:
    """Kafka behind ZooKeeper, no offset in Kafka, and one out of range are problems."""
    assert verification_problems(group(facts(5, 4))) == ["[t,0]: ZooKeeper has 5, Kafka 4"]
    assert verification_problems(group(facts(5, None))) == ["[t,0]: ZooKeeper has 5, Kafka nothing"]
    assert "out of the range" in verification_problems(group(facts(None, 101)))[0]
    assert verification_problems(group(facts(5, 6), facts(5, None, None, None))) == []
