"""Plans of a migration: never rewind, refuse with every reason."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from kafka08.admin.group_facts import GroupFacts, Offset
from kafka08.migration.journal import Entry, State
from kafka08.migration.plan import (
    Action,
    Plan,
    Terms,
    differences,
    make_plan,
    verification_problems,
)
from kafka08.migration.proof import StoreThatCounts as Counts
from kafka08.migration.proof import proven
from kafka08.observe.coordinated import STABLE, CoordinatedGroup, CoordinatedMember
from kafka08.observe.group import PartitionFacts
from kafka08.observe.snapshot import Owner
from kafka08.structs import Broker
from kafka08.zk.migration_protocol import OffsetStorage, Order
from kafka08.zk.nodes import ConsumerRegistration
from tests.migration.group_facts import TP, facts, foreign, group, groups, ours


@pytest.mark.parametrize(
    ("zookeeper", "kafka", "action", "offset"),
    [
        (50, None, Action.COPY, 50),
        (50, 40, Action.ASK, 40),
        (50, 50, Action.AGREE, 50),
        (50, 60, Action.ASK, 60),
        (None, 60, Action.AHEAD, 60),
        (None, None, Action.NOTHING, None),
        (0, None, Action.COPY, 0),
        (100, None, Action.COPY, 100),
        (101, None, Action.REFUSE, None),
        (50, 101, Action.ASK, 101),
    ],
)
def test_action_for_a_partition(
    zookeeper: Offset, kafka: Offset, action: Action, offset: Offset
) -> None:
    """The only offset counts if the log (0 to 100) has it; the log end itself is in range. Of two,
    the operator says which."""
    [step] = make_plan(group(facts(zookeeper, kafka))).steps
    assert (step.action, step.offset) == (action, offset)
    assert (step.reason is not None) == (action is Action.REFUSE)


def test_an_offset_behind_the_log_is_refused_only_if_it_counts() -> None:
    """Retention has passed ZooKeeper's old offset, which does not matter if Kafka's newer one is
    valid."""
    assert make_plan(group(facts(5, 50, start=10)), terms=Terms(Counts.NEWEST)).is_allowed
    plan = make_plan(group(facts(5, None, start=10)))
    assert plan.refusals == (
        "[t,0]: the offset 5 in ZooKeeper is out of the range 10 to 100 of the log",
    )


def test_disagreement_is_refused_where_a_limit_is_set() -> None:
    """Two offsets that differ by more than the limit are refused."""
    apart = group(facts(50, 39))
    newest = Counts.NEWEST
    assert make_plan(apart, terms=Terms(newest)).is_allowed
    assert make_plan(apart, terms=Terms(newest, 11)).is_allowed
    [refusal] = make_plan(apart, terms=Terms(newest, 10)).refusals
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
    assert (
        "no store has an offset of it; kafka08 group list shows the names of all groups",
    ) == make_plan(group()).refusals
    [refusal] = make_plan(GroupFacts("g", (), (), unavailable="nobody answered")).refusals
    assert "nobody answered" in refusal


def test_an_owner_without_a_member_is_a_reason() -> None:
    """An owner's znode outlives its member for a session timeout at most; the advice is to wait."""
    [refusal] = make_plan(group(replace(facts(5, None), owner=Owner("g_a-0", 1)))).refusals
    assert refusal.startswith("[t,0] still belongs to g_a-0")


def test_an_old_larger_offset_in_kafka_is_refused() -> None:
    """A live member that uses ZooKeeper is at 50. With both stores it would continue from 80 at its
    next rebalance. A member that uses both is at 80 already."""
    owned = replace(facts(50, 80), owner=Owner("g_a-0", 1))
    by_zookeeper = ours("g_a", OffsetStorage.ZOOKEEPER)
    [refusal] = make_plan(GroupFacts("g", (by_zookeeper,), (owned,))).refusals
    assert "members would skip" in refusal
    by_both = replace(by_zookeeper, confirmed=Order(1, OffsetStorage.DUAL))
    assert make_plan(GroupFacts("g", (by_both,), (owned,))).is_allowed
    not_committed_yet = GroupFacts("g", (by_zookeeper,), (replace(owned, zookeeper=None),))
    assert "members would skip" in make_plan(not_committed_yet).refusals[0]


def test_a_foreign_member_may_use_zookeeper() -> None:
    """Its store is unknown: the operator must say which one counts, unless a commit was just seen.
    The larger offset cannot be lowered while it lives, since it may commit meanwhile."""
    owned = replace(facts(50, 80), owner=Owner("g_jvm-0", 1))
    found = GroupFacts("g", (foreign("g_jvm"),), (owned,))
    [refusal] = make_plan(found).refusals
    assert "nothing shows which store counts" in refusal
    assert make_plan(found, terms=Terms(Counts.KAFKA)).is_allowed
    [refusal] = make_plan(found, terms=Terms(Counts.ZOOKEEPER)).refusals
    assert "stop the group and set both stores" in refusal
    assert make_plan(replace(found, fresh=(TP,))).is_allowed
    [refusal] = make_plan(replace(found, advancing=(TP,))).refusals
    assert "an old offset 80 in Kafka is larger" in refusal
    assert make_plan(replace(found, partitions=(replace(owned, kafka=50),))).is_allowed


@pytest.mark.parametrize("kafka", [20, None])
def test_an_old_larger_offset_in_zookeeper_is_refused(kafka: Offset) -> None:
    """A live member that commits to Kafka alone is at 20, or has not committed yet. The copy of
    ZooKeeper's 50 would overwrite that, and its next owner would skip messages. A foreign member is
    one of these if Kafka's offset was seen to advance."""
    owned = replace(facts(50, kafka), owner=Owner("g_a-0", 1))
    by_kafka = ours("g_a", OffsetStorage.KAFKA)
    [refusal] = make_plan(GroupFacts("g", (by_kafka,), (owned,))).refusals
    assert "goes by Kafka, but an old offset 50 in ZooKeeper is larger" in refusal
    by_both = replace(by_kafka, confirmed=Order(1, OffsetStorage.DUAL))
    assert make_plan(GroupFacts("g", (by_both,), (owned,))).is_allowed
    unknown = GroupFacts("g", (foreign("g_a"),), (owned,))
    assert make_plan(unknown).is_allowed == (kafka is None)
    assert make_plan(replace(unknown, advancing=(TP,))).is_allowed
    assert make_plan(replace(unknown, fresh=(TP,))).refusals == (refusal,)


def test_deleted_partitions_are_ignored() -> None:
    """The offset of a deleted topic is neither copied nor a reason to refuse."""
    plan = make_plan(group(facts(5, None, None, None)))
    assert plan.is_allowed
    assert plan.copies == {}
    assert plan.steps[0].action is Action.SKIP


@given(groups)
def test_a_copy_never_rewinds_and_always_fits(partitions: tuple[PartitionFacts, ...]) -> None:
    """With the newest offset as the one that counts, a committed offset is larger than Kafka's and
    lies in the log; afterwards a second plan has nothing to copy and verification finds no
    problem."""
    plan = make_plan(group(*partitions), terms=Terms(Counts.NEWEST))
    found = {p.topic_partition: p for p in partitions}
    for tp, offset in plan.copies.items():
        before = found[tp]
        assert before.kafka is None or offset > before.kafka
        assert before.holds(offset)
    if plan.is_allowed:
        after = group(*(written(p, plan) for p in partitions))
        assert make_plan(after).copies == {}
        assert verification_problems(after) == []


def test_verification_names_skipped_and_repeated_messages() -> None:
    """Kafka behind ZooKeeper, no offset in Kafka, and one out of range are problems."""
    assert verification_problems(group(facts(5, 4))) == ["[t,0]: ZooKeeper has 5, Kafka 4"]
    assert verification_problems(group(facts(5, None))) == ["[t,0]: ZooKeeper has 5, Kafka nothing"]
    assert "out of the range" in verification_problems(group(facts(None, 101)))[0]
    assert verification_problems(group(facts(5, 6), facts(5, None, None, None))) == [
        "[t,0]: ZooKeeper has 5, Kafka 6"
    ]
    dual = Entry(State.DUAL, {TP: (5, 5)}, 0)
    assert verification_problems(group(facts(5, 6)), dual) == []
    assert differences(group(facts(5, 6), facts(5, None, None, None))) == [
        "[t,0]: ZooKeeper has 5, Kafka 6"
    ]


def written(p: PartitionFacts, plan: Plan) -> PartitionFacts:
    """The partition after the plan was carried out."""
    back = plan.copies_back.get(p.topic_partition)
    return replace(
        p,
        kafka=plan.copies.get(p.topic_partition, p.kafka),
        zookeeper=p.zookeeper if back is None else back[0],
    )


@pytest.mark.parametrize("kafka", [20, 80])
@pytest.mark.parametrize("word", list(Counts))
def test_the_word_of_the_operator(kafka: int, word: Counts) -> None:
    """Where two offsets differ and nobody commits, both stores get the one that was said, raised or
    lowered: with both, members continue from the larger one."""
    p = facts(50, kafka)
    after = written(p, make_plan(group(p), terms=Terms(word)))
    said = {Counts.ZOOKEEPER: 50, Counts.KAFKA: kafka, Counts.NEWEST: max(50, kafka)}[word]
    assert (after.zookeeper, after.kafka) == (said, said)


@pytest.mark.parametrize(
    ("state", "zookeeper", "kafka", "before", "is_proven"),
    [
        (State.COPYING, 60, 50, (50, None), True),
        (State.COPYING, 60, 40, (50, None), False),
        (State.ROLLED_BACK, 60, 50, (10, 10), True),
        (State.ROLLED_BACK, 50, 60, (10, 10), False),
        (State.DUAL, 50, 60, (10, 10), True),
        (State.VERIFIED, 50, 60, (50, 60), False),
    ],
)
def test_the_journal_proves_which_store_counts(
    state: State, zookeeper: int, kafka: int, before: tuple[int, Offset], is_proven: bool
) -> None:
    """Kafka has the copy of an interrupted start; members used ZooKeeper alone since a rollback;
    members have committed to both since. Offsets that nobody has moved prove nothing."""
    entry = Entry(state, {TP: before}, 0)
    assert (proven(group(facts(zookeeper, kafka)), facts(zookeeper, kafka), entry) is not None) == (
        is_proven
    )


def test_an_abandoned_topic_stops_no_live_group() -> None:
    """Its offset is outside the log, so nobody can continue there; no member reads it. Of a stopped
    group nobody knows which topics it reads."""
    member = ours("g_a", OffsetStorage.ZOOKEEPER)
    found = GroupFacts("g", (member,), (facts(500, None),))
    plan = make_plan(found)
    assert (plan.is_allowed, plan.steps[0].action) == (True, Action.LEAVE)
    assert not make_plan(replace(found, members=())).is_allowed
    reader = replace(member, registration=ConsumerRegistration({"t": 1}, kafka08={}))
    assert not make_plan(replace(found, members=(reader,))).is_allowed


def test_members_with_a_coordinator_are_a_reason() -> None:
    """They commit to Kafka alone, so the copy would overwrite their commits. (The plan said "0 live
    members" beside a live KafkaConsumer.)"""
    member = CoordinatedMember("kc-1", "kc", "/10.0.0.7")
    known = CoordinatedGroup("g", Broker(1, "b1", 9092), STABLE, "consumer", "range", (member,))
    [refusal] = make_plan(replace(group(facts(50, None)), coordinated=known)).refusals
    assert "members with a coordinator" in refusal
    assert "kc-1" in refusal
