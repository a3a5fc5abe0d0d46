"""Plans a migration of a group's offsets from its current state. Pure.

Where both stores have an offset and one of them is proven to count (proof.py), or an operator says
so, the plan brings both to that one: members with `dual.commit.enabled` start from the larger one.
An offset is the next one to read; None where a store has none.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import NamedTuple

from kafka08.admin.group_facts import NO_OFFSETS, GroupFacts, Offset, no_coordinator
from kafka08.listing import some_of
from kafka08.migration.journal import Entry
from kafka08.migration.proof import StoreThatCounts, proven
from kafka08.observe.group import PartitionFacts
from kafka08.observe.members import Member
from kafka08.structs import TopicPartition
from kafka08.zk.migration_protocol import OffsetStorage


class Terms(NamedTuple):
    """Said by the operator, for partitions whose offsets in the two stores differ.

    store_that_counts   where nothing proves which one counts; None: refuse there
    max_disagreement    refuse where they are more messages apart; None: any distance will do
    """

    store_that_counts: StoreThatCounts | None = None
    max_disagreement: int | None = None


class Action(enum.Enum):
    """The action for one partition."""

    COPY = "commit ZooKeeper's offset to Kafka"
    COPY_BACK = "write Kafka's offset to ZooKeeper"
    AGREE = "nothing: both stores have the same offset"
    AHEAD = "nothing: Kafka is ahead already"
    NOTHING = "nothing: it was never committed"
    SKIP = "nothing: the partition does not exist any more"
    LEAVE = "nothing: no member reads the topic, and its log has no such offset"
    ASK = "say which store counts: --store-that-counts"
    REFUSE = "nothing can be done safely"


@dataclass(frozen=True, slots=True)
class Step:
    """One partition of a plan. `offset` is the future one in Kafka, and with COPY_BACK in
    ZooKeeper; `reason` belongs to REFUSE. `by_word`: the operator said which store counts."""

    facts: PartitionFacts
    action: Action
    offset: Offset
    reason: str | None = None
    by_word: bool = False


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

    @property
    def lowered(self) -> dict[TopicPartition, int]:
        """Those of `copies` that replace a larger offset in Kafka."""
        kafka = {step.facts.topic_partition: step.facts.kafka for step in self.steps}
        return {
            tp: o for tp, o in self.copies.items() if (now := kafka[tp]) is not None and now > o
        }

    @property
    def copies_back(self) -> dict[TopicPartition, tuple[int, int]]:
        """partition → (the offset to write to ZooKeeper, the one that it replaces)."""
        return {
            step.facts.topic_partition: (step.offset, step.facts.zookeeper)
            for step in self.steps
            if step.action is Action.COPY_BACK
            and step.offset is not None
            and step.facts.zookeeper is not None
        }


def make_plan(facts: GroupFacts, entry: Entry | None = None, terms: Terms = Terms()) -> Plan:
    """The plan for a group, live or stopped. entry: its journal; None: there is none."""
    steps = tuple(
        _step(facts, p, proven(facts, p, entry) if p.is_apart else None, terms)
        for p in facts.partitions
    )
    refusals = [*group_refusals(facts), *(step.reason for step in steps if step.reason)]
    refusals += coordinated_refusals(facts)
    if unproven := [s.facts.disagreement for s in steps if s.action is Action.ASK]:
        refusals.append(
            f"{some_of(unproven, '; ')}: nothing shows which store counts, and members of both "
            "stores continue from the larger offset: find out which one the group has reached, and "
            "say so with --store-that-counts zookeeper, kafka or newest"
        )
    refusals += [
        f"{tp} has no owner, but its offset in ZooKeeper moves: a client that is not registered "
        "as a member commits it, and would not follow the migration"
        for tp in facts.moving
    ]
    refusals += [trap for p in facts.partitions if (trap := _trap(facts, p, terms))]
    if facts.is_empty:
        refusals.append(NO_OFFSETS)
    return Plan(facts.group, steps, tuple(refusals), facts.members)


def group_refusals(facts: GroupFacts) -> list[str]:
    """Reasons that concern the group as a whole."""
    refusals = [
        f"{p.topic_partition} still belongs to {p.thread_id}, but the group has no live member: "
        "wait until its session is over, or remove the znode"
        for p in facts.partitions
        if p.owner is not None and not facts.members
    ]
    refusals += facts.faults
    if facts.unavailable is not None:
        refusals.append(no_coordinator(facts.unavailable))
    return refusals


def coordinated_refusals(facts: GroupFacts) -> list[str]:
    """Why a step that reads the last offsets in Kafka would come too early."""
    if facts.coordinated is None or not facts.coordinated.members:
        return []
    names = ", ".join(m.member_id for m in facts.coordinated.members)
    return [f"members with a coordinator go on committing to Kafka alone, stop them first: {names}"]


def _trap(facts: GroupFacts, partition: PartitionFacts, terms: Terms) -> str | None:
    """A member that reads one store is at that store's offset. With both stores it would continue
    from the larger one at its next rebalance and silently skip the messages between. A member of
    another client may read ZooKeeper, unless Kafka's offset was seen to advance."""
    owner = facts.owner(partition)
    if owner is None or not partition.exists:
        return None
    text = f"{partition.topic_partition}: its live owner {owner.consumer_id} "
    is_fresh = partition.topic_partition in facts.fresh
    if partition.is_behind_in_kafka and (owner.storage is OffsetStorage.KAFKA or is_fresh):
        return (
            f"{text}goes by Kafka, but an old offset {partition.zookeeper} in ZooKeeper is larger, "
            "and with both stores the larger one wins: members would skip; lower it with kafka08 "
            "offsets set --store zookeeper"
        )
    by_zookeeper = (
        owner.storage is OffsetStorage.ZOOKEEPER or partition.topic_partition in facts.advancing
    )
    if by_zookeeper and (partition.kafka or 0) > (partition.zookeeper or 0):
        has = "nothing" if partition.zookeeper is None else partition.zookeeper
        return (
            f"{text}goes by ZooKeeper, which has {has}, but an old offset {partition.kafka} "
            "in Kafka is larger, and with both stores the larger one wins: members would skip; "
            "lower it with kafka08 offsets set --store kafka"
        )
    if owner.is_ours or is_fresh or not partition.is_apart:
        return None
    larger = StoreThatCounts.KAFKA if partition.is_ahead_in_kafka else StoreThatCounts.ZOOKEEPER
    if terms.store_that_counts not in {None, larger, StoreThatCounts.NEWEST}:
        return (
            f"{text}is not a kafka08 member and may commit meanwhile, so {partition.disagreement} "
            "cannot be lowered: stop the group and set both stores to its true offset, with "
            "kafka08 offsets set"
        )
    return None


def _step(
    facts: GroupFacts,
    p: PartitionFacts,
    proof: StoreThatCounts | None,
    terms: Terms,
) -> Step:
    """The step of one partition. Proof goes before the operator's word."""
    if not p.exists:
        return Step(p, Action.SKIP, p.kafka)
    if p.newest is None:
        return Step(p, Action.NOTHING, None)
    if facts.is_abandoned(p):
        return Step(p, Action.LEAVE, p.kafka)
    counts = proof or terms.store_that_counts
    if p.is_apart and counts is None:
        return Step(p, Action.ASK, p.kafka)
    offset: Offset = p.newest
    if p.is_apart and counts is not StoreThatCounts.NEWEST:
        offset = p.zookeeper if counts is StoreThatCounts.ZOOKEEPER else p.kafka
    assert offset is not None, "one of the stores has an offset"
    if reason := _refusal(p, offset, terms.max_disagreement):
        return Step(p, Action.REFUSE, p.kafka, reason)
    if p.zookeeper == p.kafka:
        return Step(p, Action.AGREE, p.kafka)
    by_word = p.is_apart and proof is None
    if offset == p.zookeeper:
        # Under a live owner a copy only raises (`_trap`): it may commit meanwhile.
        may_lower = by_word and facts.owner(p) is None
        if p.is_behind_in_kafka or may_lower:
            return Step(p, Action.COPY, offset, by_word=by_word)
    elif by_word and facts.owner(p) is None:
        return Step(p, Action.COPY_BACK, offset, by_word=True)
    return Step(p, Action.AHEAD, p.kafka)


def _refusal(facts: PartitionFacts, offset: int, max_disagreement: int | None) -> str | None:
    # The offset that counts must be in the log; the other one may be outside.
    store = "ZooKeeper" if offset == facts.zookeeper else "Kafka"
    problem = facts.range_problem(offset, store)
    if problem is not None:
        return problem
    if not facts.is_apart or max_disagreement is None:
        return None
    distance = abs((facts.zookeeper or 0) - (facts.kafka or 0))
    if distance > max_disagreement:
        return f"{facts.disagreement}: {distance} messages apart, more than {max_disagreement}"
    return None


def verification_problems(facts: GroupFacts, entry: Entry | None = None) -> list[str]:
    """Why members of a stopped group would skip or repeat messages if they read their offsets from
    Kafka alone now: Kafka is behind, is ahead without proof that its offset counts, or its offset
    is not in the log."""
    problems = group_refusals(facts)
    for p in facts.partitions:
        if not p.exists:
            continue
        if p.is_behind_in_kafka or (p.is_apart and proven(facts, p, entry) is None):
            problems.append(p.disagreement)
        elif p.kafka is not None:
            problem = p.range_problem(p.kafka, "Kafka")
            problems += [problem] if problem else []
    return problems


def differences(facts: GroupFacts) -> list[str]:
    """Every existing partition with different offsets, or with one in Kafka alone."""
    return [p.disagreement for p in facts.partitions if p.exists and p.zookeeper != p.kafka]
