"""Plans of a migration: never rewind, refuse with every reason, roll back to what was meant."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.migration.members import Member
from kafka08.migration.plan import (
    Action,
    GroupFacts,
    Offset,
    PartitionFacts,
    make_plan,
    rollback_to_newest,
    rollback_to_snapshot,
    snapshot_of,
    verification_problems,
    without_old,
)
from kafka08.structs import TopicPartition
from kafka08.zk.orders import Order, Storage

TP = TopicPartition("t", 0)

offsets = st.none() | st.integers(0, 30)
ranges = st.tuples(st.integers(0, 15), st.integers(0, 15)).map(lambda r: (r[0], r[0] + r[1]))


@st.composite
def partition_facts(draw: st.DrawFn, number: int = 0) -> PartitionFacts:
    start, end = draw(ranges)
    return PartitionFacts(TopicPartition("t", number), draw(offsets), draw(offsets), start, end)


groups = st.integers(0, 5).flatmap(
    lambda count: st.tuples(*(partition_facts(number) for number in range(count)))
)


def facts(zookeeper: Offset, kafka: Offset, start: Offset = 0, end: Offset = 100) -> PartitionFacts:
    return PartitionFacts(TP, zookeeper, kafka, start, end)


def group(*partitions: PartitionFacts) -> GroupFacts:
    return GroupFacts("g", (), partitions)


@pytest.mark.parametrize(
    ("zookeeper", "kafka", "action", "offset"),
    [
        (50, None, Action.COPY, 50),
        (50, 40, Action.COPY, 50),
        (50, 50, Action.AGREE, 50),
        (50, 60, Action.AHEAD, 60),
        (None, 60, Action.AHEAD, 60),
        (None, None, Action.AGREE, None),
        (0, None, Action.COPY, 0),
        (100, None, Action.COPY, 100),
        (101, None, Action.REFUSE, None),
        (50, 101, Action.REFUSE, 101),
    ],
)
def test_what_is_done_with_a_partition(
    zookeeper: Offset, kafka: Offset, action: Action, offset: Offset
) -> None:
    """The larger offset wins if the log (0 to 100) has it; the log end itself is in range."""
    [step] = make_plan(group(facts(zookeeper, kafka))).steps
    assert (step.action, step.offset) == (action, offset)
    assert (step.reason is not None) == (action is Action.REFUSE)


def test_an_offset_behind_the_log_is_refused_only_if_it_counts() -> None:
    """Retention has passed ZooKeeper's old offset: no matter when Kafka's newer one is good."""
    assert make_plan(group(facts(5, 50, start=10))).is_allowed
    plan = make_plan(group(facts(5, None, start=10)))
    assert plan.refusals == (
        "[t,0]: the offset 5 in ZooKeeper is out of the range 10 to 100 of the log",
    )


def test_disagreement_is_refused_where_a_limit_is_set() -> None:
    """Both stores have an offset and are further apart than allowed."""
    apart = group(facts(50, 39))
    assert make_plan(apart).is_allowed
    assert make_plan(apart, max_disagreement=11).is_allowed
    [refusal] = make_plan(apart, max_disagreement=10).refusals
    assert "11 messages apart, more than 10" in refusal


def test_every_reason_is_named() -> None:
    """The coordinator and each partition: all of them at once."""
    plan = make_plan(GroupFacts("g", (), (facts(500, None),), unavailable="nobody answered"))
    assert not plan.is_allowed
    text = "\n".join(plan.refusals)
    for part in ("nobody answered", "[t,0]: the offset 500"):
        assert part in text


def test_a_group_without_offsets_is_refused() -> None:
    """A misspelt name would otherwise be migrated with success; a coordinator that is away is the
    better reason while it is."""
    assert ("no store has an offset of it; is that the group's name?",) == make_plan(
        group()
    ).refusals
    [refusal] = make_plan(GroupFacts("g", (), (), unavailable="nobody answered")).refusals
    assert "nobody answered" in refusal


def test_an_owner_without_a_member_is_a_reason() -> None:
    """An owner's znode outlives its member for a session timeout at most; wait for it."""
    [refusal] = make_plan(group(replace(facts(5, None), owner="g_a-0"))).refusals
    assert refusal.startswith("[t,0] still belongs to g_a-0")


def test_an_old_larger_offset_in_kafka_is_a_trap() -> None:
    """A live member that goes by ZooKeeper stands at 50. With both stores it would go on from 80 at
    its next rebalance; that is refused. One that goes by both is at 80 already; of a stopped group
    the larger offset counts."""
    owned = replace(facts(50, 80), owner="g_a-0")
    by_zookeeper = Member("g_a", Storage.ZOOKEEPER)
    [refusal] = make_plan(GroupFacts("g", (by_zookeeper,), (owned,))).refusals
    assert "members would skip" in refusal
    by_both = replace(by_zookeeper, answer=Order(1, Storage.DUAL))
    assert make_plan(GroupFacts("g", (by_both,), (owned,))).is_allowed
    assert make_plan(group(facts(50, 80))).is_allowed


def test_a_member_that_is_not_ours_may_be_in_the_trap() -> None:
    """By which store it goes cannot be seen: refused like one that goes by ZooKeeper, unless what
    Kafka has was seen to be committed just now."""
    owned = replace(facts(50, 80), owner="g_jvm-0")
    found = GroupFacts("g", (Member("g_jvm"),), (owned,))
    [refusal] = make_plan(found).refusals
    assert "g_jvm is not a kafka08 member" in refusal
    assert "stop the group and set both stores" in refusal
    assert make_plan(replace(found, fresh=(TP,))).is_allowed
    assert make_plan(replace(found, partitions=(replace(owned, kafka=50),))).is_allowed


@pytest.mark.parametrize(
    ("owner", "in_snapshot", "to_zookeeper"),
    [
        (Member("g_a"), 80, {}),
        (Member("g_a"), 70, {TP: 80}),
        (Member("g_a", Storage.ZOOKEEPER), 80, {}),
        (Member("g_a", Storage.ZOOKEEPER, answer=Order(1, Storage.DUAL)), 80, {TP: 80}),
        (None, 80, {TP: 80}),
    ],
)
def test_an_old_offset_in_kafka_is_none_to_go_back_to(
    owner: Member | None, in_snapshot: int, to_zookeeper: dict[TopicPartition, int]
) -> None:
    """What Kafka had before the migration and a live owner has not committed since would raise
    ZooKeeper over messages that nobody has read. Of a stopped group the larger offset counts."""
    owned = replace(facts(50, 80), owner="g_a-0" if owner else None)
    found = GroupFacts("g", () if owner is None else (owner,), (owned,))
    rollback = rollback_to_newest(without_old(found, {TP: (40, in_snapshot)}))
    assert rollback.to_zookeeper == to_zookeeper


def test_deleted_partitions_are_left_alone() -> None:
    """A topic that is gone leaves an offset behind, neither copied nor a reason to refuse."""
    plan = make_plan(group(facts(5, None, None, None)))
    assert plan.is_allowed
    assert plan.copies == {}
    assert plan.steps[0].action is Action.SKIP


@given(groups)
def test_a_copy_never_rewinds_and_always_fits(partitions: tuple[PartitionFacts, ...]) -> None:
    """Whatever is committed to Kafka is larger than what it has, and lies in the log; after it a
    second plan has nothing left to copy and verification finds no problem."""
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


@given(groups)
def test_rolling_back_to_the_newest_never_rewinds(partitions: tuple[PartitionFacts, ...]) -> None:
    """What ZooKeeper gets lies in the log and is not below what it had, unless that was out of the
    log, which is said for the write. Where the log has neither offset it begins with the log, or is
    refused; either is told."""
    rollback = rollback_to_newest(group(*partitions))
    assert not rollback.to_kafka
    for p in partitions:
        tp = p.topic_partition
        if tp in rollback.to_zookeeper:
            offset = rollback.to_zookeeper[tp]
            assert p.holds(offset)
            assert p.zookeeper is None or offset > p.zookeeper or not p.holds(p.zookeeper)
            lowered = p.zookeeper is not None and offset < p.zookeeper
            assert rollback.out_of_log.get(tp) == (p.zookeeper if lowered else None)
        if p.newest is not None and p.newest_safe is None:
            told = rollback.problems if tp in rollback.to_zookeeper else rollback.refusals
            assert any(str(tp) in text for text in told)


def test_what_fell_behind_the_log_stops_no_rollback() -> None:
    """Of a group that has left ZooKeeper one old partition would otherwise keep all others there.
    The log's start is where it goes on without a loss; above the log's end nobody knows where."""
    behind = rollback_to_newest(group(facts(5, 7, start=10)))
    assert (behind.to_zookeeper, behind.refusals) == ({TP: 10}, ())
    assert behind.problems == (
        "[t,0]: ZooKeeper has 5, Kafka 7; the log begins at 10 now, which is taken",
    )
    above = rollback_to_newest(group(facts(500, 700)))
    [refusal] = above.refusals
    assert refusal.endswith("set one that does with kafka08 offsets set")


@given(groups, groups)
def test_rolling_back_to_the_snapshot_restores_it(
    before: tuple[PartitionFacts, ...], after: tuple[PartitionFacts, ...]
) -> None:
    """Members of either storage start where the snapshot was: ZooKeeper is as it was, and Kafka as
    well, with ZooKeeper's offset where it had none. What is not in the log any more is replaced by
    an offset that is, and told."""
    snapshot = snapshot_of(before)
    known = {p.topic_partition for p in after}
    lost = [
        replace(p, zookeeper=None, kafka=None) for p in before if p.topic_partition not in known
    ]
    found = group(*after, *lost)
    rollback = rollback_to_snapshot(found, snapshot)
    for p in found.partitions:
        tp = p.topic_partition
        if tp not in snapshot:
            continue
        zookeeper, kafka = snapshot[tp]
        now = None
        if tp not in rollback.remove_from_zookeeper:
            now = rollback.to_zookeeper.get(tp, p.zookeeper)
        in_kafka = rollback.to_kafka.get(tp, p.kafka)
        wanted = zookeeper if kafka is None and p.kafka is not None else kafka
        for was, became in ((zookeeper, now), (wanted, in_kafka)):
            if was is None or p.holds(was):
                assert was == became or (was is None and became == p.kafka)
            else:
                assert became is not None
                assert p.holds(became)
                assert any(f"{tp}: the snapshot's {was} " in text for text in rollback.problems)


@pytest.mark.parametrize(
    ("offset", "zookeeper", "taken"), [(5, 50, 10), (200, 50, 50), (200, 200, 10), (60, 50, 60)]
)
def test_the_nearest_to_the_snapshot(offset: int, zookeeper: int, taken: int) -> None:
    """An offset that retention has passed becomes the log's start; one above the end of a topic
    that was made anew the place where the group stands, or else the start."""
    rollback = rollback_to_snapshot(group(facts(zookeeper, None, start=10)), {TP: (offset, None)})
    assert rollback.to_zookeeper.get(TP, zookeeper) == taken
    assert bool(rollback.problems) == (offset != taken)


def test_a_snapshot_of_what_is_gone_or_away() -> None:
    """A partition that does not exist any more is left alone, and told; of one whose log nobody can
    read the rollback is refused."""
    gone = rollback_to_snapshot(group(facts(3, 3, None, None)), {TP: (5, 5)})
    assert (gone.to_zookeeper, gone.to_kafka) == ({}, {})
    assert "does not exist any more" in gone.problems[0]
    away = replace(facts(3, 3, None, None), unreadable="no leader")
    assert "no leader" in rollback_to_snapshot(group(away), {TP: (5, 5)}).refusals[0]


def test_verification_names_what_members_would_skip_or_repeat() -> None:
    """Kafka behind ZooKeeper, nothing in Kafka, out of range: each is a problem."""
    assert verification_problems(group(facts(5, 4))) == ["[t,0]: ZooKeeper has 5, Kafka 4"]
    assert verification_problems(group(facts(5, None))) == ["[t,0]: ZooKeeper has 5, Kafka nothing"]
    assert "out of the range" in verification_problems(group(facts(None, 101)))[0]
    assert verification_problems(group(facts(5, 6), facts(5, None, None, None))) == []
