"""The progress of a group's migration, and why its next step cannot be taken yet. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from kafka08.admin.group_facts import GroupFacts
from kafka08.migration.journal import DONE, Entry, State, unfinished
from kafka08.migration.plan import coordinated_refusals, group_refusals
from kafka08.observe.group import PartitionFacts
from kafka08.observe.members import Member


@dataclass(frozen=True, slots=True)
class Status:
    """The progress of a migration.

    entry          its journal; None if there is none, or it was forgotten
    waiting_for    kafka08 members that have not confirmed the current order
    to_do          what an operator must change for other members
    is_mirrored    a mirror commits for some of them
    """

    group: str
    entry: Entry | None
    members: tuple[Member, ...]
    waiting_for: tuple[str, ...]
    to_do: tuple[str, ...]
    is_mirrored: bool

    @property
    def state(self) -> State | None:
        """Its state; None if there is no migration, or it was forgotten."""
        return None if self.entry is None else self.entry.state


def not_ready(status: Status) -> list[str]:
    """Why members of a verified migration cannot do without ZooKeeper yet."""
    if status.state is not State.VERIFIED:
        return []
    reasons = [f"{name} has not confirmed" for name in status.waiting_for]
    if status.is_mirrored:
        reasons.append("a mirror commits for members that go by ZooKeeper: stop them first")
    return reasons


def left_behind(facts: GroupFacts, entry: Entry) -> tuple[PartitionFacts, ...]:
    """Partitions where ZooKeeper has more than Kafka: their owners would repeat. Once the migration
    is finished, only where Kafka has nothing: an offset may have been set back there since."""
    is_finished = entry.state is State.FINISHED
    return facts.missing_in_kafka if is_finished else facts.behind_in_kafka


def not_level(facts: GroupFacts, entry: Entry) -> list[str]:
    """Why Kafka's offsets cannot be used alone yet."""
    if facts.unavailable is not None:
        return group_refusals(facts)
    reasons = coordinated_refusals(facts) if entry.state is State.VERIFIED else []
    return [*reasons, *(p.disagreement for p in left_behind(facts, entry))]


def not_done(status: Status) -> list[str]:
    """Why a migration cannot be forgotten yet."""
    entry = status.entry
    if entry is None or entry.state not in DONE:
        return [unfinished(status.group, entry)]
    assert entry.order is not None, "FINISHED and ROLLED_BACK order one store"
    storage = entry.order.storage
    keys = " and ".join(f"{key}={value}" for key, value in storage.properties.items())
    reasons = [
        f"{m.consumer_id} is configured otherwise: set {keys} and restart it"
        for m in status.members
        if m.is_ours and m.configured is not storage
    ]
    if status.is_mirrored:
        reasons.append("a mirror still runs: stop it, or wait until its period is over")
    return reasons
