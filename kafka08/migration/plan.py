"""What a migration of a group's offsets would do, worked out from what is there. Pure.

Kafka's offset is never lowered: the larger of the two stores wins, which is also what members with
`dual.commit.enabled` start from. An offset is the next one to read; None where a store has none.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from kafka08.migration.members import Member
from kafka08.structs import TopicPartition
from kafka08.zk.orders import Storage

Offset = int | None

RETENTION_MS: Final = 24 * 60 * 60 * 1000
"""offsets.retention.minutes of a broker that does not say."""


class Action(enum.Enum):
    """What is done with one partition."""

    COPY = "commit ZooKeeper's offset to Kafka"
    AGREE = "nothing: both stores have the same offset"
    AHEAD = "nothing: Kafka is ahead already"
    SKIP = "nothing: the partition does not exist any more"
    REFUSE = "nothing can be done safely"


@dataclass(frozen=True, slots=True)
class PartitionFacts:
    """One partition as it was found.

    log_start, log_end   the offsets that can be read are log_start <= offset < log_end, and log_end
                         itself is where a member waits; None: the partition does not exist, or
                         its log is unreadable
    owner                thread id of the member that owns it
    committed_ms         when Kafka's offset was committed; None: not asked, or not known
    unreadable           why nobody tells where its log starts and ends
    """

    topic_partition: TopicPartition
    zookeeper: Offset
    kafka: Offset
    log_start: Offset
    log_end: Offset
    owner: str | None = None
    committed_ms: int | None = None
    unreadable: str | None = None

    @property
    def is_idle(self) -> bool:
        """Nobody owns it, so nobody commits again what Kafka has: that will be forgotten."""
        return self.owner is None and self.kafka is not None

    def seconds_left(self, now_ms: int, retention_ms: int) -> int | None:
        """Until Kafka may forget an idle partition's offset, not below 0; None if it is not idle or
        the time of its commit is not known."""
        if not self.is_idle or self.committed_ms is None:
            return None
        return max(0, (self.committed_ms + retention_ms - now_ms) // 1000)

    @property
    def exists(self) -> bool:
        return self.log_start is not None or self.unreadable is not None

    @property
    def log_problem(self) -> str | None:
        """Why no offset can be compared with the log; None if one can."""
        if self.unreadable is None:
            return None
        return (
            f"{self.topic_partition}: where its log starts and ends is not known: "
            f"{self.unreadable}; see kafka08 topic describe"
        )

    @property
    def is_ahead_in_kafka(self) -> bool:
        """Both stores have an offset, and Kafka's is the larger one."""
        return self.zookeeper is not None and self.kafka is not None and self.kafka > self.zookeeper

    @property
    def is_behind_in_kafka(self) -> bool:
        """ZooKeeper has an offset, and Kafka a smaller one or none."""
        return self.zookeeper is not None and (self.kafka is None or self.kafka < self.zookeeper)

    @property
    def disagreement(self) -> str:
        """What both stores have."""
        have = ("nothing" if o is None else str(o) for o in (self.zookeeper, self.kafka))
        return "{}: ZooKeeper has {}, Kafka {}".format(self.topic_partition, *have)

    @property
    def newest(self) -> Offset:
        """The larger of the two stores."""
        return max((o for o in (self.zookeeper, self.kafka) if o is not None), default=None)

    @property
    def newest_safe(self) -> Offset:
        """The largest offset of the two stores that lies in the log; None if neither does."""
        safe = [o for o in (self.zookeeper, self.kafka) if o is not None and self.holds(o)]
        return max(safe, default=None)

    @property
    def lag(self) -> int | None:
        """Messages between the newest offset and the log end."""
        if self.newest is None or self.log_end is None:
            return None
        return self.log_end - self.newest

    def holds(self, offset: int) -> bool:
        """Whether a member that starts at `offset` starts exactly there."""
        if self.log_start is None or self.log_end is None:
            return False
        return self.log_start <= offset <= self.log_end

    def range_problem(self, offset: int, store: str) -> str | None:
        """Why `offset` cannot be used; None if it can."""
        if self.holds(offset):
            return None
        if self.log_problem is not None:
            return self.log_problem
        return (
            f"{self.topic_partition}: the offset {offset} in {store} is out of the range "
            f"{self.log_start} to {self.log_end} of the log"
        )


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """A group as it was found.

    members       registered now
    unavailable   why the coordinator did not answer
    moving        partitions whose offset moves although nobody owns them
    fresh         those of `doubtful` whose offset in Kafka was seen to be no old one
    faults        znodes of the group that cannot be read: why, and what to do
    """

    group: str
    members: tuple[Member, ...]
    partitions: tuple[PartitionFacts, ...]
    unavailable: str | None = None
    moving: tuple[TopicPartition, ...] = ()
    fresh: tuple[TopicPartition, ...] = ()
    faults: tuple[str, ...] = ()

    @property
    def doubtful(self) -> tuple[PartitionFacts, ...]:
        """Where Kafka is ahead and the owner is not ours: nothing says by which store it goes."""
        return tuple(
            p
            for p in self.partitions
            if p.is_ahead_in_kafka and (owner := self.owner(p)) is not None and not owner.is_ours
        )

    @property
    def behind_in_kafka(self) -> tuple[PartitionFacts, ...]:
        """Where members that read Kafka alone would repeat, or begin anew."""
        return tuple(p for p in self.partitions if p.exists and p.is_behind_in_kafka)

    @property
    def is_live(self) -> bool:
        return bool(self.members)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to migrate: no store has an offset, and nobody will commit."""
        return not (self.partitions or self.members or self.unknown)

    @property
    def unknown(self) -> tuple[str, ...]:
        """What could not be found out, and why."""
        logs = (p.log_problem for p in self.partitions if p.log_problem is not None)
        return (*self.unknown_offsets, *logs)

    @property
    def unknown_offsets(self) -> tuple[str, ...]:
        """Of that, what concerns offsets; their logs are another matter."""
        kafka = () if self.unavailable is None else (f"offsets in Kafka: {self.unavailable}",)
        return (*self.faults, *kafka)

    def owner(self, partition: PartitionFacts) -> Member | None:
        """The live member that owns a partition."""
        return next((m for m in self.members if m.owns(partition.owner)), None)


@dataclass(frozen=True, slots=True)
class Step:
    """One partition of a plan. `offset` is what Kafka will have; `reason` belongs to REFUSE."""

    facts: PartitionFacts
    action: Action
    offset: Offset
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """All partitions of a group, and every reason not to begin."""

    group: str
    steps: tuple[Step, ...]
    refusals: tuple[str, ...]
    members: tuple[Member, ...] = ()

    @property
    def is_allowed(self) -> bool:
        return not self.refusals

    @property
    def copies(self) -> dict[TopicPartition, int]:
        """partition → the offset to commit to Kafka."""
        return {
            step.facts.topic_partition: step.offset
            for step in self.steps
            if step.action is Action.COPY and step.offset is not None
        }


def make_plan(facts: GroupFacts, *, max_disagreement: int | None = None) -> Plan:
    """The plan for a group, live or stopped.

    max_disagreement   refuse where both stores have an offset and they are more messages apart;
                       None: any distance will do, the larger one wins
    """
    steps = tuple(plan_partition(p, max_disagreement) for p in facts.partitions)
    refusals = [*group_refusals(facts), *(step.reason for step in steps if step.reason)]
    refusals += [
        f"{tp} belongs to nobody, but its offset in ZooKeeper moves: something that is no "
        "registered member commits it, and would not follow"
        for tp in facts.moving
    ]
    refusals += [problem for p in facts.partitions if (problem := _trap(facts, p)) is not None]
    if facts.is_empty:
        refusals.append("no store has an offset of it; is that the group's name?")
    return Plan(facts.group, steps, tuple(refusals), facts.members)


def group_refusals(facts: GroupFacts) -> list[str]:
    """Reasons that concern the group as a whole."""
    refusals = [
        f"{p.topic_partition} still belongs to {p.owner}, but the group has no live member: wait "
        "until its session is over, or remove the znode"
        for p in facts.partitions
        if p.owner is not None and not facts.members
    ]
    refusals += facts.faults
    if facts.unavailable is not None:
        refusals.append(f"the group's coordinator is not available: {facts.unavailable}")
    return refusals


def live_refusals(facts: GroupFacts) -> list[str]:
    """Why a step that rewinds cannot be done: live members would commit over it."""
    if not facts.members:
        return []
    names = ", ".join(m.consumer_id for m in facts.members)
    return [f"the group has live members, stop them first: {names}"]


def _trap(facts: GroupFacts, partition: PartitionFacts) -> str | None:
    """A member that reads ZooKeeper stands where ZooKeeper says. With both stores it would go on
    from the larger one at its next rebalance, and silently skip what lies between. A member that is
    not ours may be one of these unless something was seen to commit what Kafka has."""
    owner = facts.owner(partition)
    if owner is None or not partition.is_ahead_in_kafka:
        return None
    text = f"{partition.topic_partition}: its live owner {owner.consumer_id} "
    if owner.storage is Storage.ZOOKEEPER:
        return (
            f"{text}goes by ZooKeeper's {partition.zookeeper}, but an old offset {partition.kafka} "
            "in Kafka is larger, and with both stores the larger one wins: members would skip; "
            "lower it with kafka08 offsets set --store kafka"
        )
    if owner.is_ours or partition.topic_partition in facts.fresh:
        return None
    return (
        f"{text}is not a kafka08 member, so it may go by ZooKeeper's {partition.zookeeper}, but "
        f"Kafka's {partition.kafka} is larger and stands still, and with both stores the larger "
        "one wins: members would skip; stop the group and set both stores to where it stood, with "
        "kafka08 offsets set"
    )


def plan_partition(facts: PartitionFacts, max_disagreement: int | None) -> Step:
    if not facts.exists:
        return Step(facts, Action.SKIP, facts.kafka)
    reason = _refusal(facts, max_disagreement)
    if reason is not None:
        return Step(facts, Action.REFUSE, facts.kafka, reason)
    if facts.zookeeper == facts.kafka:
        return Step(facts, Action.AGREE, facts.kafka)
    if facts.zookeeper is None or (facts.kafka is not None and facts.kafka > facts.zookeeper):
        return Step(facts, Action.AHEAD, facts.kafka)
    return Step(facts, Action.COPY, facts.zookeeper)


def _refusal(facts: PartitionFacts, max_disagreement: int | None) -> str | None:
    if facts.newest is None:
        return None
    # The larger offset is the one that counts from now on; an older one may well be behind the log.
    store = "ZooKeeper" if facts.newest == facts.zookeeper else "Kafka"
    problem = facts.range_problem(facts.newest, store)
    if problem is not None:
        return problem
    if facts.zookeeper is None or facts.kafka is None or max_disagreement is None:
        return None
    distance = abs(facts.zookeeper - facts.kafka)
    if distance > max_disagreement:
        return f"{facts.disagreement}: {distance} messages apart, more than {max_disagreement}"
    return None


def verification_problems(facts: GroupFacts) -> list[str]:
    """What would make members skip or repeat if they read their offsets from Kafka alone now."""
    problems = group_refusals(facts)
    for p in facts.partitions:
        if not p.exists:
            continue
        if p.is_behind_in_kafka:
            problems.append(p.disagreement)
        elif p.kafka is not None:
            problem = p.range_problem(p.kafka, "Kafka")
            problems += [problem] if problem else []
    return problems


@dataclass(frozen=True, slots=True)
class Rollback:
    """What a rollback writes: offsets to each store, and znodes that did not exist before.

    out_of_log   offsets that ZooKeeper has outside of the log: they may be lowered
    problems     what could not be had as it was wanted
    refusals     partitions without an offset to go back to, and what to do
    """

    to_zookeeper: Mapping[TopicPartition, int]
    to_kafka: Mapping[TopicPartition, int]
    remove_from_zookeeper: tuple[TopicPartition, ...] = ()
    problems: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()
    out_of_log: Mapping[TopicPartition, int] = field(default_factory=dict)


Snapshot = Mapping[TopicPartition, tuple[Offset, Offset]]
"""partition → (ZooKeeper's offset, Kafka's) as they were before the migration."""


def without_old(facts: GroupFacts, snapshot: Snapshot) -> GroupFacts:
    """The same without the offsets of Kafka that no live owner has committed: ZooKeeper has led its
    partition all along, and what Kafka had before the migration began is there unchanged."""

    def is_old(p: PartitionFacts) -> bool:
        owner = facts.owner(p)
        by_zookeeper = owner is not None and owner.storage in {None, Storage.ZOOKEEPER}
        return by_zookeeper and snapshot.get(p.topic_partition, (None, None))[1] == p.kafka

    partitions = tuple(replace(p, kafka=None) if is_old(p) else p for p in facts.partitions)
    return replace(facts, partitions=partitions)


def rollback_to_newest(facts: GroupFacts) -> Rollback:
    """ZooKeeper is brought up to the newest offset of both stores that lies in the log, or to the
    log's start where both have fallen behind it. Never rewinds ZooKeeper, unless it is out of the
    log."""
    writes: dict[TopicPartition, int] = {}
    out_of_log: dict[TopicPartition, int] = {}
    problems, refusals = [], []
    for p in facts.partitions:
        if p.log_problem is not None and (p.is_ahead_in_kafka or p.zookeeper is None):
            refusals.append(p.log_problem)
        if p.log_start is None or p.newest is None:
            continue
        offset = p.newest_safe
        if offset is None and p.newest < p.log_start:
            offset = p.log_start
            problems.append(f"{p.disagreement}; the log begins at {offset} now, which is taken")
        if offset is None:
            refusals.append(
                f"{p.disagreement}; neither lies in the log, which has {p.log_start} to "
                f"{p.log_end}: set one that does with kafka08 offsets set"
            )
        elif p.zookeeper is None or offset > p.zookeeper:
            writes[p.topic_partition] = offset
        elif not p.holds(p.zookeeper):
            writes[p.topic_partition] = offset
            out_of_log[p.topic_partition] = p.zookeeper
    return Rollback(
        writes, {}, problems=tuple(problems), refusals=tuple(refusals), out_of_log=out_of_log
    )


def rollback_to_snapshot(facts: GroupFacts, snapshot: Snapshot) -> Rollback:
    """Both stores as they were when the migration began, which repeats what was read since. What
    has left the log meanwhile becomes the nearest offset that is there. `facts` must have all
    partitions of the snapshot.

    Both, because members with dual commit start from the larger one. Kafka cannot forget an offset,
    so where it had none it gets ZooKeeper's.
    """
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
            f"{found.log_end} now; {_nearest(found, offset)} is taken"
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
    return Rollback(to_zookeeper, to_kafka, tuple(remove), tuple(problems), tuple(refusals))


def _nearest(facts: PartitionFacts, offset: int) -> int:
    """`offset` if the log has it, the log's start for one that fell behind it, and for one above
    its end (the topic was made anew) where the group stands now, or the start."""
    assert facts.log_start is not None, "the log can be read"
    if facts.holds(offset):
        return offset
    safe = facts.newest_safe
    return facts.log_start if safe is None or offset < facts.log_start else safe


def snapshot_of(facts: Iterable[PartitionFacts]) -> dict[TopicPartition, tuple[Offset, Offset]]:
    return {p.topic_partition: (p.zookeeper, p.kafka) for p in facts}
