"""Problems of a group that has a coordinator; `findings` has those of ZooKeeper groups. Pure.

Only the group's leader knows the intended assignment. So the checks do not compute one: they look
for partitions that the actual assignment leaves out.
"""

from __future__ import annotations

from collections.abc import Iterator

from kafka08.groups.findings import (
    Finding,
    failed_requests,
    gone_partitions,
    leaderless,
    no_members,
    ordered,
    outside_the_log,
    unread_topics,
)
from kafka08.listing import some_of
from kafka08.observe.coordinated import REBALANCING
from kafka08.observe.group import CoordinatedFacts
from kafka08.protocol.consumer_protocol import PROTOCOL_TYPE


def explain_coordinated(facts: CoordinatedFacts) -> list[Finding]:
    """All findings, problems first; empty for a healthy group."""
    group = facts.group
    found = [*_rebalancing(facts), *_unreadable(facts), *_unassigned(facts)]
    if not group.members:
        found.append(no_members(group.name, facts.partitions))
    found += [
        *_absent_topics(facts),
        *leaderless(facts.partitions),
        *outside_the_log(facts.partitions),
        *_never_committed(facts),
        *failed_requests(group.name, facts.failed_requests),
        *_idle(facts),
        *(unread_topics(facts.partitions, _subscribed(facts)) if _is_known(facts) else ()),
        *gone_partitions(facts.partitions),
    ]
    return ordered(found)


def _is_known(facts: CoordinatedFacts) -> bool:
    """Whether it is known what its members subscribe to: they have some, and do not rebalance."""
    return bool(facts.group.members) and facts.group.state not in REBALANCING


def _rebalancing(facts: CoordinatedFacts) -> Iterator[Finding]:
    group = facts.group
    if group.state in REBALANCING:
        missing = (
            "members that have not joined again"
            if group.state == "PreparingRebalance"
            else "the assignment of the group's leader"
        )
        yield Finding(
            "rebalancing",
            group.name,
            f"the group is in state {group.state}: its coordinator waits for {missing}, and no "
            "member reads until then",
            "check again in a few seconds; if it remains, find the member that processes messages "
            "for longer than max.poll.interval.ms (before 0.10.1: session.timeout.ms)",
        )


def _unreadable(facts: CoordinatedFacts) -> Iterator[Finding]:
    for member in facts.group.members:
        if member.fault is not None:
            yield Finding(
                "unreadable-member",
                member.member_id,
                f"its subscription or assignment cannot be decoded: {member.fault}",
                f"check which client library {member.client_id} at {member.host} uses",
            )


def _unassigned(facts: CoordinatedFacts) -> Iterator[Finding]:
    """Partitions of subscribed topics that no member owns, as after partitions were added."""
    group = facts.group
    if group.state in REBALANCING or any(m.fault is not None for m in group.members):
        return
    owned = {tp for member in group.members for tp in member.owns}
    for topic in _subscribed(facts):
        tps = [p.topic_partition for p in facts.partitions if p.exists]
        left = [tp for tp in tps if tp.topic == topic and tp not in owned]
        if left:
            yield Finding(
                "no-owner",
                some_of(left),
                f"no owner, although members subscribe to {topic}: the partitions were added "
                "after the last rebalance, or the group's leader left them out",
                "wait until the members refresh their metadata (metadata.max.age.ms, 5 minutes); "
                "if it remains, restart one of them",
            )


def _absent_topics(facts: CoordinatedFacts) -> Iterator[Finding]:
    for topic in _subscribed(facts):
        if topic not in facts.topics:
            yield Finding(
                "absent-topic",
                topic,
                "members subscribe to it, but it does not exist",
                "create it, or correct its name in the members' configuration",
            )


def _idle(facts: CoordinatedFacts) -> Iterator[Finding]:
    group = facts.group
    if group.protocol_type != PROTOCOL_TYPE or group.state in REBALANCING:
        return
    idle = [m.member_id for m in group.members if not m.owns and m.fault is None]
    if idle:
        yield Finding(
            "idle-members",
            some_of(idle),
            f"{len(idle)} of {len(group.members)} members own no partition",
            "add partitions, or run fewer members",
            problem=False,
        )


def _never_committed(facts: CoordinatedFacts) -> Iterator[Finding]:
    """Partitions with messages and without an offset. There the next owner starts as its
    auto.offset.reset says."""
    found = [p for p in facts.partitions if p.never_committed and p.exists and p.lag]
    if found:
        owned = all(facts.group.owner_of(p.topic_partition) is not None for p in found)
        messages = sum(p.lag or 0 for p in found)
        yield Finding(
            "never-committed",
            some_of([p.topic_partition for p in found]),
            f"no offset is committed, and the log has {messages} messages; auto.offset.reset "
            "decides where the next owner starts: latest (the default) skips them",
            "check again after auto.commit.interval.ms (5 s); if it remains, the members do not "
            "commit"
            if owned
            else "to read them, start members with auto.offset.reset=earliest, or stop the group "
            f"and commit their log's start: kafka08 group reset {facts.group.name} --to +0 "
            "--execute (committed offsets stay)",
            problem=not owned,
        )


def _subscribed(facts: CoordinatedFacts) -> list[str]:
    return sorted({topic for member in facts.group.members for topic in member.topics})
