"""The judge of two stores: each way in which they can fail each other, apart from what is fine."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafka08.admin.group_facts import GroupFacts, Offset
from kafka08.migration.sampling import PartitionVerdict, Rules, Sample, judge
from kafka08.observe.group import PartitionFacts
from kafka08.observe.snapshot import Owner
from kafka08.structs import TopicPartition
from kafka08.zk.migration_protocol import OffsetStorage, Order
from tests.migration.group_facts import foreign, ours

TP = TopicPartition("t", 0)
OURS = ours("g_ours", OffsetStorage.ZOOKEEPER, confirmed=Order(1, OffsetStorage.DUAL))
FOREIGN = foreign("g_jvm")


def verdict(
    *pairs: tuple[Offset, Offset],
    owner: str | None = "g_ours-0",
    storage: OffsetStorage = OffsetStorage.DUAL,
    allow_idle: bool = False,
) -> PartitionVerdict:
    """Of samples a second apart, with a commit interval of two seconds."""
    samples = [
        Sample(n * 1000, {} if z is None else {TP: z}, {} if k is None else {TP: k})
        for n, (z, k) in enumerate(pairs)
    ]
    last = pairs[-1]
    facts = PartitionFacts(
        TP, last[0], last[1], 0, 100, owner=None if owner is None else Owner(owner, 1)
    )
    rules = Rules(2000, storage, allow_idle)
    [found] = judge(GroupFacts("g", (OURS, FOREIGN), (facts,)), samples, rules)
    return found


@pytest.mark.parametrize(
    "pairs",
    [
        [(1, 1), (2, 2), (3, 3), (4, 4)],
        [(1, 2), (2, 3), (3, 4), (4, 4)],  # Kafka first, ZooKeeper soon after
        [(1, 1), (1, 5), (1, 5), (5, 5)],  # within the interval
        [(1, 5), (5, 5), (5, 5), (5, 5)],  # the first sample lies within a commit
        [(5, 5)] * 4,
        [(0, 0)] * 4,
    ],
)
def test_agreement(pairs: list[tuple[Offset, Offset]]) -> None:
    """Stores that reach each other within the interval, or rest at one offset, agree."""
    assert verdict(*pairs).problems == ()


@pytest.mark.parametrize(
    ("pairs", "problem"),
    [
        ([(1, 1), (2, 1), (3, 1), (4, 1)], "Kafka's did not move"),
        ([(1, 1), (1, 2), (1, 3), (1, 4)], "ZooKeeper's did not move"),
        ([(5, None)] * 4, "ZooKeeper had 5, Kafka nothing"),
        ([(5, 3)] * 4, "ZooKeeper had 5, Kafka 3"),
        ([(None, 3)] * 4, "Kafka had 3, ZooKeeper nothing"),
        ([(5, 5), (5, 4), (5, 4), (5, 4)], "Kafka's offset went back from 5 to 4"),
        ([(5, 5), (5, 4), (5, 5), (5, 4), (5, 5)], "Kafka's offset went back from 5 to 4"),
        ([(5, 5), (4, 5), (5, 5), (5, 5)], "ZooKeeper's offset went back from 5 to 4"),
    ],
)
def test_each_fault_is_named(pairs: list[tuple[Offset, Offset]], problem: str) -> None:
    """A store without progress, with lag, without offsets or going back is named with numbers."""
    assert problem in "\n".join(verdict(*pairs).problems)


def test_an_offset_that_vanishes_for_a_moment_is_a_note() -> None:
    """The load race and the -1 commits of 0.8.2.2 are distinguished from a real disagreement."""
    found = verdict((5, 5), (5, None), (5, 5), (5, 5))
    assert found.problems == ()
    assert "vanished for a moment" in found.notes[0]
    assert verdict((5, 5), (5, 5), (5, None), (5, None), (5, None)).problems


def test_an_offset_that_goes_back_for_a_moment_is_a_note() -> None:
    """A coordinator of 0.8.2.2 that loads puts an older offset over a commit, for a while."""
    found = verdict((5, 5), (6, 4), (6, 6), (6, 6))
    assert found.problems == ()
    assert "went back from 5 to 4" in found.notes[0]


def test_a_foreign_member_must_be_seen_committing() -> None:
    """Its properties are unknown: only movement proves that it commits to both stores."""
    idle = [(5, 5)] * 4
    [problem] = verdict(*idle, owner="g_jvm-0").problems
    assert "not proven" in problem
    assert verdict(*idle, owner="g_jvm-0", allow_idle=True).problems == ()
    assert verdict((1, 1), (2, 2), (3, 3), (4, 4), owner="g_jvm-0").problems == ()
    [*_, problem] = verdict((1, 1), (2, 1), (3, 1), (4, 1), owner="g_jvm-0").problems
    assert "owned by g_jvm" in problem


def test_after_the_cutover_zookeeper_must_not_change() -> None:
    """Kafka may advance alone."""
    assert verdict((1, 1), (1, 2), (1, 3), storage=OffsetStorage.KAFKA).problems == ()
    [problem] = verdict((1, 1), (2, 2), (3, 3), storage=OffsetStorage.KAFKA).problems
    assert "ZooKeeper's offset still moves" in problem


def test_after_the_cutover_a_standstill_is_noted() -> None:
    """Kafka alone should advance now, if there are messages (up to 100 here), and within the time
    of a commit. For a foreign member a standstill is a problem, unless it is allowed."""
    still = [(5, 5)] * 3
    found = verdict(*still, storage=OffsetStorage.KAFKA)
    assert found.problems == ()
    assert found.notes[0].startswith("Kafka's offset did not move with 95 messages to read")
    assert verdict((5, 5), (5, 5), storage=OffsetStorage.KAFKA).notes == ()
    assert verdict(*[(5, 100)] * 3, storage=OffsetStorage.KAFKA).notes == ()
    assert verdict((5, 5), (5, 6), (5, 7), storage=OffsetStorage.KAFKA).notes == ()
    assert verdict(*still, storage=OffsetStorage.KAFKA, owner=None).notes == ()
    assert verdict(*still, storage=OffsetStorage.KAFKA, owner="g_jvm-0").problems
    allowed = verdict(*still, storage=OffsetStorage.KAFKA, owner="g_jvm-0", allow_idle=True)
    assert allowed.problems == ()


def test_unowned_offsets_expire() -> None:
    """No member commits them again, so Kafka forgets them, counted from their commit. Nothing is
    reported for partitions with an owner or without a known commit time. Stopped groups, which have
    no samples, are included."""
    facts = PartitionFacts(TP, 5, 5, 0, 100, committed_ms=1_000)

    def notes(now_ms: int, facts: PartitionFacts = facts) -> tuple[str, ...]:
        rules = Rules(2000, OffsetStorage.DUAL, retention_ms=7_260_000, now_ms=now_ms)
        [found] = judge(GroupFacts("g", (OURS,), (facts,)), [], rules)
        return found.notes

    assert "in 2 h 0 min at the earliest" in notes(61_000)[0]
    assert "any moment" in notes(7_261_000)[0]
    assert notes(7_261_000, replace(facts, owner=Owner("g_ours-0", 1))) == ()
    assert notes(7_261_000, replace(facts, committed_ms=None)) == ()
