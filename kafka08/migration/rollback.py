"""Plans the writes of a rollback from the current state and the snapshot. Pure.

`plan_rollback` is what a step carries out and what a preview shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypeAlias

from kafka08.admin.group_facts import GroupFacts, live_refusals
from kafka08.migration.facts import Snapshot
from kafka08.migration.journal import Entry, State, check
from kafka08.migration.plan import coordinated_refusals, group_refusals
from kafka08.observe.group import PartitionFacts
from kafka08.structs import TopicPartition
from kafka08.zk.migration_protocol import OffsetStorage

To: TypeAlias = Literal["newest", "snapshot"]

KEEPS_ZOOKEEPER: Final = frozenset(
    {State.COPYING, State.DUAL, State.VERIFIED, State.RETURNING, State.ROLLED_BACK}
)
"""States in which every member commits to ZooKeeper, so that Kafka is not needed to go back."""
RETURNED: Final = frozenset({State.RETURNING, State.ROLLED_BACK})
"""States in which ZooKeeper has its offsets again; members may have committed since."""


@dataclass(frozen=True, slots=True)
class Rollback:
    """The writes of a rollback: offsets to each store, and znodes that did not exist before.

    lowered    the offsets that ZooKeeper has where a smaller one replaces them
    problems   deviations from the offsets asked for
    refusals   why it cannot be done, and what to do
    """

    to_zookeeper: Mapping[TopicPartition, int]
    to_kafka: Mapping[TopicPartition, int]
    remove_from_zookeeper: tuple[TopicPartition, ...] = ()
    problems: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()
    lowered: Mapping[TopicPartition, int] = field(default_factory=dict)


def check_rollback(group: str, entry: Entry | None, to: To) -> Entry:
    """The journal of a migration that can be rolled back; MigrationError if it cannot."""
    if to == "snapshot":
        check(group, State.ROLLING_TO_SNAPSHOT, entry)
    elif entry is None or entry.state not in KEEPS_ZOOKEEPER:
        check(group, State.ROLLING_TO_NEWEST, entry)
    assert entry is not None, "check refuses a migration that has not begun"
    return entry


def plan_rollback(facts: GroupFacts, entry: Entry, to: To) -> Rollback:
    """The writes of a rollback from the state of `entry`. `facts` must have the members with a
    coordinator, and all partitions of the snapshot."""
    if to == "snapshot":
        rollback = rollback_to_snapshot(facts, entry.snapshot)
        reasons = [*live_refusals(facts), *group_refusals(facts), *rollback.refusals]
        return replace(rollback, refusals=tuple(reasons))
    if entry.state in RETURNED:
        return Rollback({}, {})
    reasons = coordinated_refusals(facts)
    if entry.state in KEEPS_ZOOKEEPER:
        # Kafka may be what is broken; ZooKeeper has all that was committed to both.
        if facts.unavailable is not None:
            return Rollback({}, {}, refusals=tuple(reasons))
        rollback = rollback_to_newest(without_old(facts, entry.snapshot))
        problems = (*rollback.problems, *rollback.refusals)
        return replace(rollback, problems=problems, refusals=tuple(reasons))
    rollback = rollback_to_newest(facts, by_kafka=entry.state is State.FINISHED)
    reasons += [*group_refusals(facts), *rollback.refusals]
    return replace(rollback, refusals=tuple(reasons))


def without_old(facts: GroupFacts, snapshot: Snapshot) -> GroupFacts:
    """The facts without offsets in Kafka that nobody has committed since the migration began, where
    ZooKeeper has one too and no live owner has started from Kafka's. Such a partition was always
    committed to ZooKeeper, and ZooKeeper must not be raised to what nobody has consumed."""

    def is_old(p: PartitionFacts) -> bool:
        owner = facts.owner(p)
        if owner is None:
            by_zookeeper = p.zookeeper is not None
        else:
            by_zookeeper = owner.storage in {None, OffsetStorage.ZOOKEEPER}
        return by_zookeeper and snapshot.get(p.topic_partition, (None, None))[1] == p.kafka

    partitions = tuple(replace(p, kafka=None) if is_old(p) else p for p in facts.partitions)
    return replace(facts, partitions=partitions)


def rollback_to_newest(facts: GroupFacts, *, by_kafka: bool = False) -> Rollback:
    """ZooKeeper is brought up to the newest offset of both stores that lies in the log, or to the
    log's start where both have fallen behind it. Never rewinds ZooKeeper, unless it is out of the
    log.

    by_kafka   members commit to Kafka alone: an offset of ZooKeeper that is larger than Kafka's is
               old, and does not count
    """
    writes: dict[TopicPartition, int] = {}
    lowered: dict[TopicPartition, int] = {}
    problems, refusals = [], []
    for p in facts.partitions:
        is_old = by_kafka and p.is_behind_in_kafka and p.kafka is not None
        counted = replace(p, zookeeper=None) if is_old else p
        if counted.newest is None:
            continue
        if by_kafka and p.exists and p.kafka is None:
            problems.append(
                f"{p.disagreement}: Kafka has lost the group's offset since finish (after "
                "offsets.retention.minutes it expires), and ZooKeeper's is from before: what was "
                "read since comes again, unless you set it: kafka08 offsets set"
            )
        if p.log_problem is not None and (is_old or p.is_ahead_in_kafka or p.zookeeper is None):
            refusals.append(p.log_problem)
        if p.log_start is None:
            continue
        offset = counted.newest_safe
        if offset is None and counted.newest < p.log_start:
            offset = p.log_start
            problems.append(f"{p.disagreement}; the log begins at {offset} now, which is used")
        if offset is None:
            refusals.append(
                f"{p.disagreement}; neither lies in the log, which has {p.log_start} to "
                f"{p.log_end}: set one that does with kafka08 offsets set"
            )
        elif p.zookeeper is None or offset > p.zookeeper:
            writes[p.topic_partition] = offset
        elif offset < p.zookeeper:
            writes[p.topic_partition] = offset
            lowered[p.topic_partition] = p.zookeeper
    return Rollback(writes, {}, problems=tuple(problems), refusals=tuple(refusals), lowered=lowered)


def rollback_to_snapshot(facts: GroupFacts, snapshot: Snapshot) -> Rollback:
    """Both stores get their offsets from when the migration began, so messages read since are
    repeated. An offset that has left the log becomes the nearest one in the log. `facts` must have
    all partitions of the snapshot.

    A partition that had no offset then keeps what it has now: without one, members with
    auto.offset.reset=largest would skip what was read since.

    Both, because members with dual commit start from the larger one. Kafka cannot forget an offset,
    so where it had none it gets ZooKeeper's."""
    now = {p.topic_partition: p for p in facts.partitions}
    to_zookeeper: dict[TopicPartition, int] = {}
    to_kafka: dict[TopicPartition, int] = {}
    remove, problems, refusals = [], [], []
    for tp, before in snapshot.items():
        found = now[tp]
        if not found.exists:
            problems.append(f"{tp} does not exist any more; its offsets stay as they are")
            continue
        if found.log_problem is not None:
            refusals.append(found.log_problem)
            continue
        lost = [o for o in before if o is not None and not found.holds(o)]
        zookeeper, kafka = (None if o is None else _nearest(found, o) for o in before)
        problems += [
            f"{tp}: the snapshot's {offset} is not in the log, which has {found.log_start} to "
            f"{found.log_end} now; {_nearest(found, offset)} is used"
            for offset in sorted(set(lost))
        ]
        if zookeeper is None:
            remove += [tp] if found.zookeeper is not None else []
        elif found.zookeeper != zookeeper:
            to_zookeeper[tp] = zookeeper
        if kafka is None and found.kafka is not None:
            kafka = zookeeper
        if kafka is not None and found.kafka != kafka:
            to_kafka[tp] = kafka
    problems += [
        f"{p.disagreement}; the snapshot has no offset of it, so it stays as it is"
        for tp, p in now.items()
        if tp not in snapshot and p.exists and p.newest is not None
    ]
    return Rollback(to_zookeeper, to_kafka, tuple(remove), tuple(problems), tuple(refusals))


def _nearest(facts: PartitionFacts, offset: int) -> int:
    """`offset` if the log has it, the log's start for one that fell behind it, and for one above
    its end (the topic was recreated) the group's current offset, or the start."""
    assert facts.log_start is not None, "the log can be read"
    if facts.holds(offset):
        return offset
    safe = facts.newest_safe
    return facts.log_start if safe is None or offset < facts.log_start else safe
