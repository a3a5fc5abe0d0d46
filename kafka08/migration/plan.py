"""Plans a migration of a group's offsets from its current state. Pure.

Kafka's offset is never lowered: the larger of the two stores wins, which is also what members with
`dual.commit.enabled` start from. An offset is the next one to read; None where a store has none.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from kafka08.groups.members import Member
from kafka08.migration.facts import NO_OFFSETS, GroupFacts, Offset, PartitionFacts
from kafka08.structs import OFFSETS_TOPIC, TopicPartition
from kafka08.zk.migration_protocol import OffsetStorage


class Action(enum.Enum):
    """The action for one partition."""

    COPY = "commit ZooKeeper's offset to Kafka"
    AGREE = "nothing: both stores have the same offset"
    AHEAD = "nothing: Kafka is ahead already"
    NOTHING = "nothing: it was never committed"
    SKIP = "nothing: the partition does not exist any more"
    REFUSE = "nothing can be done safely"


@dataclass(frozen=True, slots=True)
class Step:
    """One partition of a plan. `offset` is the future one in Kafka; `reason` belongs to REFUSE."""

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
        f"{tp} has no owner, but its offset in ZooKeeper moves: a client that is not registered "
        "as a member commits it, and would not follow the migration"
        for tp in facts.moving
    ]
    refusals += [problem for p in facts.partitions if (problem := _trap(facts, p)) is not None]
    if facts.is_empty:
        refusals.append(NO_OFFSETS)
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
        refusals.append(no_coordinator(facts.unavailable))
    return refusals


def no_coordinator(cause: object) -> str:
    """The refusal without the offsets in Kafka, and what shows the reason."""
    return (
        f"the group's coordinator is not available: {cause}; kafka08 topic describe "
        f"{OFFSETS_TOPIC} shows which partition of it has no leader"
    )


def live_refusals(facts: GroupFacts) -> list[str]:
    """Why a step that rewinds cannot be done: live members would overwrite it."""
    names = [m.consumer_id for m in facts.members]
    if facts.coordinated is not None:
        names += [m.member_id for m in facts.coordinated.members]
    if not names:
        return []
    return [f"the group has live members, stop them first: {', '.join(names)}"]


def coordinated_refusals(facts: GroupFacts) -> list[str]:
    """Why a step that reads the last offsets in Kafka would come too early."""
    if facts.coordinated is None or not facts.coordinated.members:
        return []
    names = ", ".join(m.member_id for m in facts.coordinated.members)
    return [f"members with a coordinator go on committing to Kafka alone, stop them first: {names}"]


def _trap(facts: GroupFacts, partition: PartitionFacts) -> str | None:
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
    if not partition.is_ahead_in_kafka:
        return None
    if owner.storage is OffsetStorage.ZOOKEEPER:
        return (
            f"{text}goes by ZooKeeper's {partition.zookeeper}, but an old offset {partition.kafka} "
            "in Kafka is larger, and with both stores the larger one wins: members would skip; "
            "lower it with kafka08 offsets set --store kafka"
        )
    if owner.is_ours or is_fresh:
        return None
    return (
        f"{text}is not a kafka08 member, so it may go by ZooKeeper's {partition.zookeeper}, but "
        f"Kafka's {partition.kafka} is larger and does not move, and with both stores the larger "
        "one wins: members would skip; stop the group and set both stores to its true offset, with "
        "kafka08 offsets set"
    )


def plan_partition(facts: PartitionFacts, max_disagreement: int | None) -> Step:
    if not facts.exists:
        return Step(facts, Action.SKIP, facts.kafka)
    reason = _refusal(facts, max_disagreement)
    if reason is not None:
        return Step(facts, Action.REFUSE, facts.kafka, reason)
    if facts.newest is None:
        return Step(facts, Action.NOTHING, None)
    if facts.zookeeper == facts.kafka:
        return Step(facts, Action.AGREE, facts.kafka)
    if facts.zookeeper is None or (facts.kafka is not None and facts.kafka > facts.zookeeper):
        return Step(facts, Action.AHEAD, facts.kafka)
    return Step(facts, Action.COPY, facts.zookeeper)


def _refusal(facts: PartitionFacts, max_disagreement: int | None) -> str | None:
    if facts.newest is None:
        return None
    # The larger offset counts from now on; the smaller one may be below the log's start.
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
    """Problems that would make members skip or repeat messages if they read their offsets from
    Kafka alone now."""
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
