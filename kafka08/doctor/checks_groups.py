"""Checks of consumer groups: one for each kind of finding of `kafka08 group explain`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from kafka08.doctor.check import ZOOKEEPER, Found, Z, note, problem
from kafka08.doctor.checks_topics import number
from kafka08.doctor.snapshot import Snapshot

KINDS: Final = {
    "unreadable-member": "every member fails to rebalance",
    "unreadable-offset": "members do not know where to begin",
    "persistent-member": "partitions are assigned to a member that does not exist",
    "blocking-owner": "no member can claim those partitions",
    "no-members": "nobody reads these messages, which retention will delete",
    "no-owner": "no member reads those partitions",
    "misplaced": "members disagree about the owners of partitions",
    "absent-topic": "members wait for a topic that does not exist",
    "outside-log": "members begin at auto.offset.reset: messages are read again or skipped",
    "never-committed": "auto.offset.reset decides where members begin",
    "rebalancing": "no messages are read until it ends",
}
NOTED_KINDS: Final = {
    "gone-partition": "its znodes are of a topic that was deleted",
    "stray-znode": "a rebalance of the JVM's members may fail on it",
}
"""Kind of finding of `explain` → why it matters. Omits the kinds that checks of the cluster cover,
and stopped groups."""


MINUTE_MS: Final = 60_000
HOUR_MS: Final = 60 * MINUTE_MS
EXPIRING_SHARE: Final = 0.25
"""Fraction of the retention that is left when the check reports."""


def _of_kind(kind: str, is_problem: bool, snapshot: Snapshot) -> Iterator[Found]:
    for group, findings in snapshot.group_findings.items():
        for finding in findings:
            if finding.kind == kind and finding.problem is is_problem:
                yield Found(f"group {group}, {finding.subject}", finding.says)


def _unread(snapshot: Snapshot) -> Iterator[Found]:
    for name, group in snapshot.view.groups.items():
        if fault := group.unknown_offsets or group.unknown_group:
            yield Found(f"group {name}", f"cannot be examined: {fault}")


def _stores_disagree(snapshot: Snapshot) -> Iterator[Found]:
    """Only groups without members: a group's store of commits is ahead while members run."""
    for group, facts in snapshot.groups.items():
        if facts.members:
            continue
        for p in facts.partitions:
            if p.zookeeper is not None and p.kafka is not None and p.zookeeper != p.kafka:
                yield Found(
                    f"group {group}, {p.topic_partition}",
                    f"ZooKeeper has offset {p.zookeeper}, Kafka {p.kafka}",
                )


def _unlisted(snapshot: Snapshot) -> Iterator[Found]:
    for said in snapshot.view.unlisted:
        yield Found("coordinated groups", said)


def _expiring(snapshot: Snapshot) -> Iterator[Found]:
    """Brokers before 2.1 delete offsets of groups with members too."""
    configured_ms = _retention_ms(snapshot)
    coordinated = {name for name, facts in snapshot.coordinated.items() if facts.group.members}
    with_members = {name for name, facts in snapshot.groups.items() if facts.members} | coordinated
    in_zookeeper = {
        (name, p.topic_partition)
        for name, facts in snapshot.groups.items()
        for p in facts.partitions
        if p.zookeeper is not None
    }
    for (group, tp), commit in snapshot.commits.items():
        expires_ms = commit.expires(has_members=group in coordinated, retention_ms=configured_ms)
        if expires_ms is None:
            continue
        if expires_ms - snapshot.now_ms < EXPIRING_SHARE * commit.retention_ms(configured_ms):
            says = f"its offset in Kafka expires {commit.expiry_text(expires_ms, snapshot.now_ms)}"
            if group in with_members:
                says += "; its members do not commit it"
            if (group, tp) in in_zookeeper:
                says += "; ZooKeeper has one too"
            yield Found(f"group {group}, {tp}", says)


def _retention_ms(snapshot: Snapshot) -> int | None:
    """offsets.retention.minutes of the first broker's file that has it; None: Kafka's default."""
    for file in snapshot.files:
        minutes = number(file.values, "offsets.retention.minutes")
        if file.kind == "broker" and minutes is not None and minutes >= 0:
            return minutes * MINUTE_MS
    return None


def _left_out(snapshot: Snapshot) -> Iterator[Found]:
    if snapshot.groups_left_out:
        yield Found("groups", f"{snapshot.groups_left_out} were not examined")


CHECKS: Final = (
    *(
        problem(f"group-{kind}", why, f"kafka08 group explain GROUP {Z}",
                partial(_of_kind, kind, True))
        for kind, why in KINDS.items()
    ),
    *(
        note(f"group-{kind}", why, f"kafka08 group explain GROUP {Z}",
             partial(_of_kind, kind, False))
        for kind, why in NOTED_KINDS.items()
    ),
    problem("group-unreadable", "its offsets and members are not known",
            f"kafka08 group list {Z}", _unread),
    note("group-stores-disagree", "members that read the other store begin elsewhere",
         f"kafka08 migrate plan GROUP {ZOOKEEPER}", _stores_disagree),
    note("offsets-expiring", "the group then begins where auto.offset.reset says",
         f"kafka08 offsets export GROUP {Z}", _expiring),
    note("groups-not-read", "those groups are not examined",
         f"kafka08 group list {Z}", _unlisted),
    note("groups-left-out", "there are more than it can examine in a short time",
         f"kafka08 group explain GROUP {Z}", _left_out),
)  # fmt: skip
