"""The last step of a migration: members with a coordinator replace those of ZooKeeper.

Both kinds read and write the same offsets of the group in Kafka, so the new ones continue exactly
where the old ones stopped. They must not run at the same time: neither sees the other, both would
read everything, and the coordinator refuses the commits of the old ones (25) once a new one has
joined. So the old ones leave first. Pure but for `read_handover`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from kafka08.admin.connections import Connections
from kafka08.admin.group_facts import NO_OFFSETS, GroupFacts, read_facts
from kafka08.listing import counted, some_of
from kafka08.migration.journal import Entry, State, unfinished
from kafka08.observe.layout import FIRST_COORDINATING
from kafka08.structs import TopicPartition


@dataclass(frozen=True, slots=True)
class Handover:
    """Whether members with a coordinator may take a group over.

    obstacles   what is to be done before; none: they may start
    offsets     partition → where they will continue
    members     of the group that its coordinator has already
    """

    group: str
    obstacles: tuple[str, ...]
    offsets: dict[TopicPartition, int]
    members: int = 0

    @property
    def is_ready(self) -> bool:
        return not self.obstacles


def handover_of(facts: GroupFacts, entry: Entry | None, old_brokers: Collection[int]) -> Handover:
    """Find the obstacles of a handover.

    entry        the journal of the migration; None if there is none, or it was forgotten
    old_brokers  ids of brokers that coordinate no groups
    """
    offsets = {one.topic_partition: one.kafka for one in facts.partitions if one.kafka is not None}
    members = 0 if facts.coordinated is None else len(facts.coordinated.members)
    return Handover(facts.group, tuple(_obstacles(facts, entry, old_brokers)), offsets, members)


def _obstacles(facts: GroupFacts, entry: Entry | None, old_brokers: Collection[int]) -> list[str]:
    found = []
    if old_brokers:
        found.append(
            f"no groups are coordinated by {counted(len(old_brokers), 'broker')} of 0.8 "
            f"({some_of(sorted(old_brokers))}): replace them by brokers of 0.9 or later (api.level)"
        )
    if facts.unavailable is not None:
        found.append(f"the offsets in Kafka are not known: {facts.unavailable}")
    if entry is not None and entry.state is not State.FINISHED:
        found.append(unfinished(facts.group, entry))
    if entry is None and facts.behind_in_kafka:
        behind = some_of([one.disagreement for one in facts.behind_in_kafka], "; ")
        found.append(
            f"{behind}: first move the offsets to Kafka: kafka08 migrate plan {facts.group}"
        )
    if entry is not None and entry.state is State.FINISHED and facts.missing_in_kafka:
        missing = some_of([one.disagreement for one in facts.missing_in_kafka], "; ")
        found.append(f"{missing}: repeat kafka08 migrate finish {facts.group}")
    if facts.members:
        ids = some_of([member.consumer_id for member in facts.members])
        found.append(
            f"{counted(len(facts.members), 'member')} of ZooKeeper's still in the group: stop {ids}"
        )
    owned = [str(one.topic_partition) for one in facts.partitions if one.owner is not None]
    if owned and not facts.members:
        found.append(
            f"{some_of(owned)} still has an owner in ZooKeeper: wait for its session's end"
        )
    if facts.unavailable is None and not any(one.kafka is not None for one in facts.partitions):
        found.append(
            NO_OFFSETS
            if facts.is_empty and not (facts.coordinated and facts.coordinated.members)
            else "nothing is committed in Kafka: new members would go by auto.offset.reset"
        )
    return found


def read_handover(group: str, connections: Connections, entry: Entry | None) -> Handover:
    """Read the group's present state. Raises ZooKeeperError."""
    registrations = connections.store.registrations()
    old = [
        broker_id for broker_id, one in registrations.items() if one.version < FIRST_COORDINATING
    ]
    facts = read_facts(group, connections)
    return handover_of(facts, entry, sorted(old))
