"""How a group of either kind is shown: as tables, as JSON, and as findings.

The JSON has one shape for both kinds. What only a coordinator knows is null for a group of
ZooKeeper; the offset of a group that has a coordinator is under `kafka`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Final

import click

from kafka08.cli.table import as_objects, show_table
from kafka08.groups import (
    CoordinatedFacts,
    CoordinatedMember,
    Finding,
    GroupFacts,
    Member,
    PartitionFacts,
    explain,
    explain_coordinated,
)

ZOOKEEPER: Final = "zookeeper"
COORDINATOR: Final = "coordinator"
MEMBER_COLUMNS: Final = ("member", "subscribes", "owns")
COORDINATED_MEMBER_COLUMNS: Final = ("member", "client", "host", "subscribes", "owns")
STATE_COLUMNS: Final = ("coordinator", "state", "protocol_type", "protocol", "members")
PARTITION_COLUMNS: Final = (
    "topic",
    "partition",
    "owner",
    "zookeeper",
    "kafka",
    "log start",
    "log end",
)


class GroupView(ABC):
    """A group that was read."""

    kind: str
    name: str
    partitions: Sequence[PartitionFacts]
    unanswered: Sequence[str]
    """What could not be asked, and offsets that cannot be read, each with the reason."""

    @abstractmethod
    def show(self) -> None:
        """Its tables on stdout."""

    @abstractmethod
    def findings(self) -> list[Finding]: ...

    @abstractmethod
    def owner(self, partition: PartitionFacts) -> str | None: ...

    @abstractmethod
    def _members_as_dicts(self) -> list[dict[str, Any]]: ...

    @abstractmethod
    def _state_as_dict(self) -> dict[str, Any]: ...

    def as_dict(self) -> dict[str, Any]:
        headings = (*PARTITION_COLUMNS, "lag", "never committed")
        rows = [(*self._row(p), p.lag, p.never_committed) for p in self.partitions]
        return {
            "group": self.name,
            "kind": self.kind,
            **self._state_as_dict(),
            "members": self._members_as_dicts(),
            "partitions": as_objects(headings, rows),
            "unanswered": list(self.unanswered),
        }

    def all_is_well(self) -> str:
        owned = sum(self.owner(p) is not None for p in self.partitions)
        return f"All is well: {len(self._members_as_dicts())} members own {owned} partitions."

    def show_partitions(self) -> None:
        rows = [(*self._row(p), p.lag_text) for p in self.partitions]
        show_table((*PARTITION_COLUMNS, "lag"), rows)

    def _row(self, partition: PartitionFacts) -> tuple[object, ...]:
        """One row of PARTITION_COLUMNS; None where there is nothing."""
        return (
            partition.topic_partition.topic,
            partition.topic_partition.partition,
            self.owner(partition),
            partition.zookeeper,
            partition.kafka,
            partition.log_start,
            partition.log_end,
        )


class ZooKeeperGroupView(GroupView):
    """A group whose members register in ZooKeeper."""

    kind = ZOOKEEPER

    def __init__(self, facts: GroupFacts) -> None:
        self._facts = facts
        self.name = facts.group
        self.partitions = facts.partitions
        faults = [p.zookeeper_fault for p in facts.partitions if p.zookeeper_fault is not None]
        self.unanswered = [*facts.unanswered, *faults]

    def show(self) -> None:
        rows = [tuple(row.values())[: len(MEMBER_COLUMNS)] for row in self._members_as_dicts()]
        show_table(MEMBER_COLUMNS, rows)
        if rows and self.partitions:
            click.echo()
        self.show_partitions()

    def findings(self) -> list[Finding]:
        return explain(self._facts)

    def owner(self, partition: PartitionFacts) -> str | None:
        return None if partition.owner is None else partition.owner.thread_id

    def _members_as_dicts(self) -> list[dict[str, Any]]:
        return [self._member(member) for member in self._facts.members]

    def _state_as_dict(self) -> dict[str, Any]:
        return dict.fromkeys(STATE_COLUMNS[:-1])

    def _member(self, member: Member) -> dict[str, Any]:
        threads = [p.owner.thread_id.rpartition("-")[0] for p in self.partitions if p.owner]
        streams = ",".join(f"{name}:{count}" for name, count in member.streams.items())
        return {
            "member": member.consumer_id,
            "subscribes": f"{member.pattern} {streams}" if member.fault is None else member.fault,
            "owns": threads.count(member.consumer_id),
            "pattern": member.pattern,
            "streams": dict(member.streams),
            "session": f"{member.session:#x}",
        }


class CoordinatedGroupView(GroupView):
    """A group that a broker coordinates."""

    kind = COORDINATOR

    def __init__(self, facts: CoordinatedFacts) -> None:
        self._facts = facts
        self.name = facts.group.name
        self.partitions = facts.partitions
        self.unanswered = facts.unanswered

    def show(self) -> None:
        group = self._facts.group
        where = f"{group.coordinator.id} ({group.coordinator.host}:{group.coordinator.port})"
        state = (group.state, group.protocol_type, group.protocol, len(group.members))
        show_table(STATE_COLUMNS, [(where, *state)])
        if group.members:
            click.echo()
            rows = [
                (m.member_id, m.client_id, m.host, m.fault or ",".join(m.topics), len(m.owns))
                for m in group.members
            ]
            show_table(COORDINATED_MEMBER_COLUMNS, rows)
        if self.partitions:
            click.echo()
        self.show_partitions()

    def findings(self) -> list[Finding]:
        return explain_coordinated(self._facts)

    def owner(self, partition: PartitionFacts) -> str | None:
        owner = self._facts.group.owner_of(partition.topic_partition)
        return None if owner is None else owner.member_id

    def _members_as_dicts(self) -> list[dict[str, Any]]:
        return [_coordinated_member(member) for member in self._facts.group.members]

    def _state_as_dict(self) -> dict[str, Any]:
        group = self._facts.group
        values = (group.coordinator._asdict(), group.state, group.protocol_type, group.protocol)
        return dict(zip(STATE_COLUMNS, values, strict=False))


def _coordinated_member(member: CoordinatedMember) -> dict[str, Any]:
    return {
        "member": member.member_id,
        "client": member.client_id,
        "host": member.host,
        "subscribes": list(member.topics),
        "owns": [tp._asdict() for tp in member.owns],
        "fault": member.fault,
    }


def say_unanswered(reasons: Sequence[str]) -> None:
    """What could not be asked, on stderr."""
    for what in reasons:
        click.echo(f"Not known: {what}", err=True)


def say_other_kind(name: str, shown: str) -> None:
    """That a group of the same name exists where the other kind lives."""
    other, where = (
        (COORDINATOR, "a coordinator") if shown == ZOOKEEPER else (ZOOKEEPER, "ZooKeeper")
    )
    click.echo(
        f"This is the group of {shown}; {where} has members of {name} too: --kind {other}", err=True
    )
