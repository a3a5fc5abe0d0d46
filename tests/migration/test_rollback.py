"""Rollbacks: back to the intended offsets, never past unread messages."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from kafka08.admin.group_facts import GroupFacts
from kafka08.migration.facts import snapshot_of
from kafka08.migration.rollback import rollback_to_newest, rollback_to_snapshot, without_old
from kafka08.observe.group import PartitionFacts
from kafka08.observe.members import Member
from kafka08.observe.snapshot import Owner
from kafka08.structs import TopicPartition
from kafka08.zk.migration_protocol import OffsetStorage, Order
from tests.migration.group_facts import TP, facts, foreign, group, groups, ours


@pytest.mark.parametrize(
    ("owner", "in_snapshot", "to_zookeeper"),
    [
        (foreign("g_a"), 80, {}),
        (foreign("g_a"), 70, {TP: 80}),
        (ours("g_a", OffsetStorage.ZOOKEEPER), 80, {}),
        (
            ours("g_a", OffsetStorage.ZOOKEEPER, confirmed=Order(1, OffsetStorage.DUAL)),
            80,
            {TP: 80},
        ),
        (None, 80, {}),
        (None, 70, {TP: 80}),
    ],
)
def test_an_old_offset_in_kafka_is_not_rolled_back_to(
    owner: Member | None, in_snapshot: int, to_zookeeper: dict[TopicPartition, int]
) -> None:
    """An offset in Kafka from before the migration, which a live owner has not committed since,
    would raise ZooKeeper past unread messages. In a stopped group too: what was committed there
    since the migration began counts, and nothing else."""
    owned = replace(facts(50, 80), owner=Owner("g_a-0", 1) if owner else None)
    found = GroupFacts("g", () if owner is None else (owner,), (owned,))
    rollback = rollback_to_newest(without_old(found, {TP: (40, in_snapshot)}))
    assert rollback.to_zookeeper == to_zookeeper


@given(groups)
def test_rolling_back_to_the_newest_never_rewinds(partitions: tuple[PartitionFacts, ...]) -> None:
    """ZooKeeper's new offset lies in the log and is not below its old one, unless that was out of
    the log, which is reported. If the log has neither offset, it is the log's start, or the
    rollback is refused; both are reported."""
    rollback = rollback_to_newest(group(*partitions))
    assert not rollback.to_kafka
    for p in partitions:
        tp = p.topic_partition
        if tp in rollback.to_zookeeper:
            offset = rollback.to_zookeeper[tp]
            assert p.holds(offset)
            assert p.zookeeper is None or offset > p.zookeeper or not p.holds(p.zookeeper)
            lowered = p.zookeeper is not None and offset < p.zookeeper
            assert rollback.lowered.get(tp) == (p.zookeeper if lowered else None)
        if p.newest is not None and p.newest_safe is None:
            told = rollback.problems if tp in rollback.to_zookeeper else rollback.refusals
            assert any(str(tp) in text for text in told)


def test_an_offset_behind_the_log_does_not_stop_a_rollback() -> None:
    """One old partition of a group that has left ZooKeeper would otherwise prevent the rollback of
    all. Continuing at the log's start loses nothing; above the log's end no start is safe."""
    behind = rollback_to_newest(group(facts(5, 7, start=10)))
    assert (behind.to_zookeeper, behind.refusals) == ({TP: 10}, ())
    assert behind.problems == (
        "[t,0]: ZooKeeper has 5, Kafka 7; the log begins at 10 now, which is used",
    )
    above = rollback_to_newest(group(facts(500, 700)))
    [refusal] = above.refusals
    assert refusal.endswith("set one that does with kafka08 offsets set")


@given(groups, groups)
def test_rolling_back_to_the_snapshot_restores_it(
    before: tuple[PartitionFacts, ...], after: tuple[PartitionFacts, ...]
) -> None:
    """Members of either store start at the snapshot: ZooKeeper has its offsets, and Kafka too, with
    ZooKeeper's where it had none. An offset that left the log is replaced by one inside, and
    reported."""
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
    """An offset that retention passed becomes the log's start; one above the end of a recreated
    topic becomes the group's current offset, or else the start."""
    rollback = rollback_to_snapshot(group(facts(zookeeper, None, start=10)), {TP: (offset, None)})
    assert rollback.to_zookeeper.get(TP, zookeeper) == taken
    assert bool(rollback.problems) == (offset != taken)


def test_partitions_missing_in_the_snapshot_stay() -> None:
    """They were committed since the migration began; without an offset members might skip messages.
    They are reported, since their messages are not read again."""
    rollback = rollback_to_snapshot(group(facts(50, 50)), {})
    assert (rollback.to_zookeeper, rollback.to_kafka, rollback.remove_from_zookeeper) == (
        {},
        {},
        (),
    )
    [problem] = rollback.problems
    assert problem.startswith("[t,0]: ZooKeeper has 50, Kafka 50; the snapshot has no offset of it")
    assert rollback_to_snapshot(group(facts(None, None)), {}).problems == ()


@pytest.mark.parametrize(
    ("zookeeper", "kafka", "taken", "problems"),
    [(50, 20, 20, 0), (20, 50, 50, 0), (50, 5, 10, 1), (50, 500, 50, 0), (50, None, 50, 1)],
)
def test_kafka_decides_once_zookeeper_is_not_used(
    zookeeper: int, kafka: int | None, taken: int, problems: int
) -> None:
    """ZooKeeper's offset is old by then, so a smaller one in Kafka counts, or the log's start if
    retention passed it. One above the log's end is of another topic, and does not count. One that
    Kafka has lost is reported: ZooKeeper's is used, and messages come again."""
    rollback = rollback_to_newest(group(facts(zookeeper, kafka, start=10)), by_kafka=True)
    assert rollback.to_zookeeper.get(TP, zookeeper) == taken
    assert rollback.lowered == ({TP: zookeeper} if taken < zookeeper else {})
    assert len(rollback.problems) == problems
    away = replace(facts(zookeeper, kafka, None, None), exists=True, unreadable="no leader")
    refusals = rollback_to_newest(group(away), by_kafka=True).refusals
    assert bool(refusals) == (kafka is not None)


def test_a_partition_that_was_never_committed_stops_no_rollback() -> None:
    """There is no offset to bring to ZooKeeper, whether its log can be read or not."""
    away = replace(facts(None, None, None, None), exists=True, unreadable="no leader")
    assert rollback_to_newest(group(away)).refusals == ()


def test_a_snapshot_with_missing_or_unreadable_partitions() -> None:
    """A deleted partition is ignored and reported; a rollback of an unreadable one is refused."""
    gone = rollback_to_snapshot(group(facts(3, 3, None, None)), {TP: (5, 5)})
    assert (gone.to_zookeeper, gone.to_kafka) == ({}, {})
    assert "does not exist any more" in gone.problems[0]
    away = replace(facts(3, 3, None, None), exists=True, unreadable="no leader")
    assert "no leader" in rollback_to_snapshot(group(away), {TP: (5, 5)}).refusals[0]
