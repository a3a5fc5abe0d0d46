"""How a group of either kind is shown: its rows, its JSON, and its findings. Pure.

The JSON has one shape for both kinds. Fields that only a coordinator knows are null for a group of
ZooKeeper; the offset of a group that has a coordinator is under `kafka`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from kafka08.groups.coordinated_findings import explain_coordinated
from kafka08.groups.findings import Finding, explain
from kafka08.listing import counted
from kafka08.observe.commit_times import KafkaCommit
from kafka08.observe.coordinated import CoordinatedMember
from kafka08.observe.group import (
    CoordinatedFacts,
    GroupFacts,
    PartitionFacts,
    facts_of,
)
from kafka08.observe.members import Member
from kafka08.observe.snapshot import COORDINATOR, ZOOKEEPER, ClusterView
from kafka08.structs import TopicPartition

STATE: Final = ("coordinator", "state", "protocol_type", "protocol")
"""The facts of a group that has a coordinator."""


class ShownGroup(ABC):
    """A group that was read."""

    kind: str
    name: str
    partitions: Sequence[PartitionFacts]
    failed_requests: Sequence[str]
    """Unknown values, because a request failed or an offset cannot be read, with the reason."""
    commits: Mapping[TopicPartition, KafkaCommit] = MappingProxyType({})
    """When offsets in Kafka were committed, where it is known."""

    @abstractmethod
    def findings(self) -> list[Finding]: ...

    @property
    @abstractmethod
    def is_kept(self) -> bool:
        """Whether brokers know members of it, for which those from 2.1 on keep its offsets."""

    @abstractmethod
    def owner(self, partition: PartitionFacts) -> str | None: ...

    def expires_ms(self, tp: TopicPartition) -> int | None:
        """When the offset in Kafka expires; None: unknown, or not while the group has members."""
        commit = self.commits.get(tp)
        return None if commit is None else commit.expires(has_members=self.is_kept)

    @abstractmethod
    def members_as_dicts(self) -> list[dict[str, Any]]: ...

    @abstractmethod
    def _state_as_dict(self) -> dict[str, Any]: ...

    def as_dict(self) -> dict[str, Any]:
        return {
            "group": self.name,
            "kind": self.kind,
            **self._state_as_dict(),
            "members": self.members_as_dicts(),
            "partitions": [
                {
                    **self.row(p),
                    "lag": p.lag,
                    "never_committed": p.never_committed,
                    **self._times(p.topic_partition),
                }
                for p in self.partitions
            ],
            "failed_requests": list(self.failed_requests),
        }

    def _times(self, tp: TopicPartition) -> dict[str, Any]:
        """Times of the offset in Kafka, in ms; null: unknown, or there is none."""
        commit = self.commits.get(tp)
        is_known = commit is not None and not commit.is_older
        return {
            "kafka_committed_ms": commit.committed_ms if commit and is_known else None,
            "kafka_expires_ms": self.expires_ms(tp),
        }

    def all_is_well(self) -> str:
        members = len(self.members_as_dicts())
        owned = counted(sum(self.owner(p) is not None for p in self.partitions), "partition")
        own = "owns" if members == 1 else "own"
        says = f"No problems: {counted(members, 'member')} {own} {owned}."
        unread = sum(p.lag or 0 for p in self.partitions)
        if not unread:
            return says
        # One look cannot tell a group that is slow from one that fails at a record for ever.
        are = "is" if unread == 1 else "are"
        return (
            f"{says} {counted(unread, 'message')} {are} unread: kafka08 top shows within a minute "
            "whether they are being read. If not, look in the log of the owner for the record at "
            "the committed offset (kafka08 group describe), which it may be unable to process."
        )

    def row(self, partition: PartitionFacts) -> dict[str, Any]:
        """None where there is nothing."""
        return {
            "topic": partition.topic_partition.topic,
            "partition": partition.topic_partition.partition,
            "owner": self.owner(partition),
            "zookeeper": partition.zookeeper,
            "kafka": partition.kafka,
            "log_start": partition.log_start,
            "log_end": partition.log_end,
        }


class ShownZooKeeperGroup(ShownGroup):
    """A group whose members register in ZooKeeper."""

    kind = ZOOKEEPER

    def __init__(self, facts: GroupFacts) -> None:
        self.facts = facts
        self.name = facts.group
        self.partitions = facts.partitions
        faults = [p.zookeeper_fault for p in facts.partitions if p.zookeeper_fault is not None]
        self.failed_requests = [*facts.failed_requests, *faults, *_without_leader(facts)]

    @property
    def is_kept(self) -> bool:
        return False

    def findings(self) -> list[Finding]:
        return explain(self.facts)

    def owner(self, partition: PartitionFacts) -> str | None:
        return None if partition.owner is None else partition.owner.thread_id

    def members_as_dicts(self) -> list[dict[str, Any]]:
        return [self._member(member) for member in self.facts.members]

    def _state_as_dict(self) -> dict[str, Any]:
        return dict.fromkeys(STATE)

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


class ShownCoordinatedGroup(ShownGroup):
    """A group that a broker coordinates."""

    kind = COORDINATOR

    def __init__(self, facts: CoordinatedFacts) -> None:
        self.facts = facts
        self.name = facts.group.name
        self.partitions = facts.partitions
        self.failed_requests = [*facts.failed_requests, *_without_leader(facts)]

    @property
    def is_kept(self) -> bool:
        return bool(self.facts.group.members)

    def findings(self) -> list[Finding]:
        return explain_coordinated(self.facts)

    def owner(self, partition: PartitionFacts) -> str | None:
        owner = self.facts.group.owner_of(partition.topic_partition)
        return None if owner is None else owner.member_id

    def members_as_dicts(self) -> list[dict[str, Any]]:
        return [_coordinated_member(member) for member in self.facts.group.members]

    def _state_as_dict(self) -> dict[str, Any]:
        group = self.facts.group
        values = (group.coordinator._asdict(), group.state, group.protocol_type, group.protocol)
        return dict(zip(STATE, values, strict=True))


def _without_leader(facts: GroupFacts | CoordinatedFacts) -> list[str]:
    """Why lags are unknown although no request failed."""
    return [
        f"offsets of {p.topic_partition}: {p.unreadable}"
        for p in facts.partitions
        if p.exists and p.leader is None and p.unreadable is not None
    ]


def shown(snapshot: ClusterView, name: str, kind: str) -> ShownGroup:
    """The group `name` of one of its kinds in the snapshot (`GroupState.kinds`)."""
    facts = facts_of(snapshot, name, kind)
    if isinstance(facts, GroupFacts):
        return ShownZooKeeperGroup(facts)
    return ShownCoordinatedGroup(facts)


def _coordinated_member(member: CoordinatedMember) -> dict[str, Any]:
    return {
        "member": member.member_id,
        "client": member.client_id,
        "host": member.host,
        "subscribes": list(member.topics),
        "owns": [tp._asdict() for tp in member.owns],
        "fault": member.fault,
    }
