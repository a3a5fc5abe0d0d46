"""Consumer groups: what `kafka08 group explain` finds, one check for each kind of finding."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from kafka08.doctor.check import Found, Z, note, problem
from kafka08.doctor.snapshot import Snapshot

KINDS: Final = {
    "unreadable-member": "every member fails to rebalance",
    "unreadable-offset": "members do not know where to begin",
    "persistent-member": "partitions are assigned to a member that is not there",
    "blocking-owner": "no member can claim those partitions",
    "no-owner": "no member reads those partitions",
    "misplaced": "members do not agree who reads what",
    "absent-topic": "members wait for a topic that is not there",
    "outside-log": "members begin at auto.offset.reset: messages are read again or skipped",
    "never-committed": "auto.offset.reset decides where members begin",
}
NOTED_KINDS: Final = {
    "gone-partition": "its znodes are of a topic that was deleted",
    "stray-znode": "a rebalance of the JVM's members may fail on it",
}
"""Kind of what `explain` finds → why it matters. Left out are kinds that the whole cluster's checks
say, and that a group is stopped."""


def _of_kind(kind: str, is_problem: bool, snapshot: Snapshot) -> Iterator[Found]:
    for group, findings in snapshot.group_findings.items():
        for finding in findings:
            if finding.kind == kind and finding.problem is is_problem:
                yield Found(f"group {group}, {finding.subject}", finding.says)


def _unread(snapshot: Snapshot) -> Iterator[Found]:
    for group, fault in snapshot.group_faults.items():
        yield Found(f"group {group}", f"cannot be looked at: {fault}")


def _stores_disagree(snapshot: Snapshot) -> Iterator[Found]:
    """Only without members: while some are there, the store that they commit to runs ahead."""
    for group, facts in snapshot.groups.items():
        if facts.members:
            continue
        for p in facts.partitions:
            if p.zookeeper is not None and p.kafka is not None and p.zookeeper != p.kafka:
                yield Found(
                    f"group {group}, {p.topic_partition}",
                    f"ZooKeeper has offset {p.zookeeper}, Kafka {p.kafka}",
                )


def _left_out(snapshot: Snapshot) -> Iterator[Found]:
    if snapshot.groups_left_out:
        yield Found("groups", f"{snapshot.groups_left_out} were not looked at")


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
         f"kafka08 migrate plan GROUP {Z}", _stores_disagree),
    note("groups-left-out", "there are more than are looked at in the time that this may take",
         f"kafka08 group explain GROUP {Z}", _left_out),
)  # fmt: skip
