"""Reads the groups of a snapshot: those of ZooKeeper, and those that brokers coordinate."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, TypeVar

from kafka08.errors import KafkaError
from kafka08.groups import (
    CoordinatedFacts,
    Finding,
    GroupFacts,
    GroupReader,
    explain,
    explain_coordinated,
)
from kafka08.groups.commit_times import KafkaCommit
from kafka08.groups.reader import RECENT_RECORDS
from kafka08.runtime import ClientRuntime
from kafka08.structs import TopicPartition

T = TypeVar("T")

GROUPS_MAX: Final = 20
"""Limit of examined groups of each kind: each costs requests to brokers."""
SECOND_LOOK_SECONDS: Final = 1.5
"""Pause before a group is read again: during a rebalance problems last only a moment."""


@dataclass(slots=True)
class GroupsRead:
    """The fields of the Snapshot about groups."""

    of_zookeeper: dict[str, GroupFacts] = field(default_factory=dict)
    coordinated: dict[str, CoordinatedFacts] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)
    failed_requests: tuple[str, ...] = ()
    commits: dict[tuple[str, TopicPartition], KafkaCommit] = field(default_factory=dict)
    left_out: int = 0


def read_groups(zookeeper: str, runtime: ClientRuntime) -> GroupsRead:
    """Read all groups; one with problems is read again a moment later. Raises ZooKeeperError."""
    found = GroupsRead()
    with GroupReader(zookeeper, runtime=runtime) as reader:
        names = [group.name for group in reader.groups()]
        listed = reader.coordinated_groups()
        found.failed_requests = listed.failed_requests
        # A simple group may be one of ZooKeeper that commits to Kafka, or has lost its members.
        coordinated = sorted(
            (g.is_simple, g.name) for g in listed.groups if not g.is_simple or g.name not in names
        )
        wanted = [name for _, name in coordinated[:GROUPS_MAX]]
        found.left_out = max(0, len(names) - GROUPS_MAX) + max(0, len(coordinated) - GROUPS_MAX)
        look(names[:GROUPS_MAX], reader.facts, found.of_zookeeper, found.faults)
        look(wanted, reader.coordinated_facts, found.coordinated, found.faults)
        troubled = [n for n, facts in found.of_zookeeper.items() if has_problem(explain(facts))]
        troubled_coordinated = [
            n for n, facts in found.coordinated.items() if has_problem(explain_coordinated(facts))
        ]
        if troubled or troubled_coordinated:
            runtime.sleep(SECOND_LOOK_SECONDS)
        look(troubled, reader.facts, found.of_zookeeper, found.faults)
        look(troubled_coordinated, reader.coordinated_facts, found.coordinated, found.faults)
        found.commits = read_commits(reader, found)
    return found


def look(
    names: Iterable[str],
    read: Callable[[str], T | None],
    found: dict[str, T],
    faults: dict[str, str],
) -> None:
    """Read each group into `found`, or put the reason why not into `faults`; skips groups that no
    longer exist."""
    for name in names:
        found.pop(name, None)
        try:
            facts = read(name)
        except KafkaError as error:
            faults[name] = str(error)
        else:
            if facts is not None:
                found[name] = facts


def has_problem(findings: Iterable[Finding]) -> bool:
    return any(finding.problem for finding in findings)


def read_commits(
    reader: GroupReader, groups: GroupsRead
) -> dict[tuple[str, TopicPartition], KafkaCommit]:
    """The commits to Kafka of all groups."""
    in_kafka: dict[str, set[TopicPartition]] = {}
    for of_kind in (groups.of_zookeeper, groups.coordinated):
        for name, facts in of_kind.items():
            committed = {p.topic_partition for p in facts.partitions if p.kafka is not None}
            in_kafka.setdefault(name, set()).update(committed)
    if not any(in_kafka.values()):
        return {}
    try:
        times = reader.commit_times(RECENT_RECORDS)
    except KafkaError:
        return {}  # no broker responds, which is a finding of its own
    return {
        (name, tp): commit
        for name, partitions in in_kafka.items()
        for tp, commit in times.commits(name, partitions).items()
    }
