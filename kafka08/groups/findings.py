"""The checks of a group: each finding says what is wrong, why, and what to do. Pure.

A *problem* keeps messages from being read, or will lose or repeat some; a *note* is worth knowing.
During a rebalance a group shows problems that disappear a moment later, so check again before you
act on a finding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from kafka08.consumer.subscription import thread_ids
from kafka08.consumer.zookeeper.assignors import Assignment, range_assign, round_robin_assign
from kafka08.errors import ConsumerRebalanceFailed
from kafka08.listing import counted, some_of
from kafka08.observe.group import GroupFacts, PartitionFacts
from kafka08.observe.lag import lag_by_topic
from kafka08.observe.snapshot import Owner
from kafka08.structs import TopicPartition
from kafka08.zk import paths


@dataclass(frozen=True, slots=True)
class Finding:
    """kind      one word for programs
    subject   the znode, partition, topic or member, or several of them
    says      what is wrong, and why
    advice    what to do, in one sentence
    problem   False for a note
    """

    kind: str
    subject: str
    says: str
    advice: str
    problem: bool = True

    def __str__(self) -> str:
        level = "Problem" if self.problem else "Note"
        return f"{level}: {self.subject}: {self.says}\n  Advice: {self.advice}"


@dataclass(frozen=True, slots=True)
class Expected:
    """The assignments that the members should arrive at.

    strategies   the possible assignments. A group's znodes do not show which strategy its members
                 are configured with: these are the assignments that agree with all live owners, or
                 if none does, the result of every strategy
    agreed       whether one of them agrees with all live owners
    threads      topic → the thread ids that read it
    """

    strategies: tuple[Assignment, ...]
    agreed: bool
    threads: dict[str, list[str]]

    def owners_of(self, tp: TopicPartition) -> list[str]:
        """The threads that should own a partition, by any of the strategies, without duplicates."""
        return sorted({strategy[tp] for strategy in self.strategies if tp in strategy})


def explain(facts: GroupFacts) -> list[Finding]:
    """All findings, problems first; empty for a healthy group. Partitions with the same finding
    share one."""
    expected = expectation(facts)
    return ordered(finding for check in CHECKS for finding in check(facts, expected))


def ordered(findings: Iterable[Finding]) -> list[Finding]:
    """Problems first; findings that differ only in their subject are merged."""
    return sorted(_merged(findings), key=lambda finding: not finding.problem)


def _merged(findings: Iterable[Finding]) -> list[Finding]:
    """One finding for all that differ only in their subject, in the order of first occurrence."""
    subjects: dict[Finding, list[str]] = {}
    for finding in findings:
        subjects.setdefault(replace(finding, subject=""), []).append(finding.subject)
    return [replace(finding, subject=some_of(names)) for finding, names in subjects.items()]


def expectation(facts: GroupFacts) -> Expected:
    """The assignment that the registered members compute, with either strategy."""
    threads: dict[str, list[str]] = {}
    for member, topic, streams in facts.subscriptions():
        threads.setdefault(topic, []).extend(thread_ids(member.consumer_id, streams))
    partitions = {topic: facts.topics.get(topic, ()) for topic in threads}
    possible = [range_assign(partitions, threads)]
    with suppress(ConsumerRebalanceFailed):
        possible.append(round_robin_assign(partitions, threads))
    owned = _live_owners(facts).items()
    agreeing = [s for s in possible if all(s.get(tp) == thread for tp, thread in owned)]
    return Expected(tuple(agreeing or possible), bool(agreeing), threads)


def _live_owners(facts: GroupFacts) -> Assignment:
    """partition → thread, from the owner znodes of live members."""
    sessions = {member.consumer_id: member.session for member in facts.members}
    return {
        p.topic_partition: p.owner.thread_id
        for p in facts.partitions
        if p.owner is not None and p.exists and _fault_of_owner(p.owner, sessions) is None
    }


def _without_members(facts: GroupFacts, _: Expected) -> Iterator[Finding]:
    if not facts.members:
        yield no_members(paths.consumer_ids(facts.group), facts.partitions)


def no_members(subject: str, partitions: Iterable[PartitionFacts]) -> Finding:
    found = list(partitions)
    lags = lag_by_topic(found)
    behind = sum(row.lag for row in lags)
    exact = all(row.is_exact for row in lags) and not any(p.zookeeper_fault for p in found)
    number = behind if exact else f"at least {behind}"
    return Finding(
        "no-members",
        subject,
        f"the group has no members; {number} messages are unread",
        "start a member; nothing to do if the group is stopped on purpose",
        problem=behind > 0,
    )


def _no_brokers(facts: GroupFacts, _: Expected) -> Iterator[Finding]:
    if not facts.brokers:
        yield Finding(
            "no-brokers",
            paths.BROKER_IDS,
            "no broker is registered in ZooKeeper, so members own no partition and wait",
            "start a broker, or check that brokers and members have the same zookeeper.connect "
            "(with its chroot)",
        )


def _unreadable(facts: GroupFacts, _: Expected) -> Iterator[Finding]:
    for member in facts.members:
        if member.fault is not None:
            path = paths.consumer_id(facts.group, member.consumer_id)
            yield Finding(
                "unreadable-member",
                path,
                f"its registration cannot be understood ({member.fault}), so every member of the "
                "group fails to rebalance",
                "stop that member and correct its subscription",
            )


def _persistent(facts: GroupFacts, _: Expected) -> Iterator[Finding]:
    for member in facts.members:
        if member.session == 0:
            yield Finding(
                "persistent-member",
                paths.consumer_id(facts.group, member.consumer_id),
                "the znode is persistent, so partitions are assigned to a member that does not run",
                "delete that znode",
            )


def _blocking_owners(facts: GroupFacts, expected: Expected) -> Iterator[Finding]:
    """Owner znodes that keep a partition from the member that should own it."""
    sessions = {member.consumer_id: member.session for member in facts.members}
    for partition in facts.partitions:
        owner = partition.owner
        if owner is None:
            continue
        fault = _fault_of_owner(owner, sessions)
        if fault is None:
            continue
        says, advice = fault
        tp = partition.topic_partition
        waiting = " or ".join(expected.owners_of(tp))
        blocked = f"; it blocks {waiting} and that member's other claims" if waiting else ""
        yield Finding("blocking-owner", facts.owner_path(tp), says + blocked, advice)


def _fault_of_owner(owner: Owner, sessions: dict[str, int]) -> tuple[str, str] | None:
    """(the fault of an owner znode, advice); None if a live member owns it."""
    consumer_id = owner.thread_id.rpartition("-")[0]
    if owner.session == 0:
        return (
            f"{owner.thread_id} owns it through a persistent znode, which never expires",
            "delete that znode; no client of 0.8 creates persistent ones",
        )
    if consumer_id not in sessions:
        return (
            f"{owner.thread_id} owns it, but no such member is registered",
            f"wait one session timeout; if it remains, end process of session {owner.session:#x}",
        )
    if sessions[consumer_id] not in {0, owner.session}:
        return (
            f"an earlier session ({owner.session:#x}) of {consumer_id} still owns it",
            "wait until it expires; if it remains, two processes use one consumer.id: change one",
        )
    return None


def _unreadable_offsets(facts: GroupFacts, _: Expected) -> Iterator[Finding]:
    """Source: fetchOffsets of kafka.consumer.ZookeeperConsumerConnector 0.8.2.2, whose toLong fails
    the rebalance."""
    for partition in facts.partitions:
        if partition.zookeeper_fault is not None:
            topic, number = partition.topic_partition
            yield Finding(
                "unreadable-offset",
                str(partition.topic_partition),
                f"{partition.zookeeper_fault}; the member that should own the partition fails to "
                "rebalance",
                "stop the group and overwrite the offset: kafka08 offsets set "
                f"{facts.group} {topic}:{number}=OFFSET",
            )


def _strays(facts: GroupFacts, _: Expected) -> Iterator[Finding]:
    for path in facts.strays:
        yield Finding(
            "stray-znode",
            path,
            "its name is not a partition number; no client of 0.8 creates or reads such a znode",
            "find the program that creates it, or delete it",
            problem=False,
        )


def _unowned(facts: GroupFacts, expected: Expected) -> Iterator[Finding]:
    """Subscribed partitions without an owner."""
    if not expected.threads:
        return
    blocked = _blocked_members(facts, expected)
    for partition in facts.partitions:
        tp = partition.topic_partition
        if partition.owner is not None or not partition.exists or not expected.owners_of(tp):
            continue
        yield Finding("no-owner", str(tp), *_why_unowned(facts, expected, tp, blocked))


def _why_unowned(
    facts: GroupFacts, expected: Expected, tp: TopicPartition, blocked: dict[str, str]
) -> tuple[str, str]:
    candidates = expected.owners_of(tp)
    names = " or ".join(candidates)
    for thread in candidates:
        path = blocked.get(thread.rpartition("-")[0])
        if path is not None:
            return (
                f"no owner: {thread} waits for {path}, since it claims all its partitions or none",
                f"see the finding for {path}; the member claims both when that znode is gone",
            )
    if any(member.fault for member in facts.members):
        return (
            f"no owner: {names} should own it, but no member can rebalance",
            "see the finding for the registration that cannot be understood",
        )
    return (
        f"no owner, although {names} should own it and nothing blocks the claim",
        "check again in a few seconds; if it remains, that member has given up: restart it",
    )


def _blocked_members(facts: GroupFacts, expected: Expected) -> dict[str, str]:
    """consumer id → an owner znode of another member, in the way of its claim."""
    blocked: dict[str, str] = {}
    for partition in facts.partitions:
        if partition.owner is None:
            continue
        consumer_id = partition.owner.thread_id.rpartition("-")[0]
        for thread in expected.owners_of(partition.topic_partition):
            wanted_by = thread.rpartition("-")[0]
            if wanted_by != consumer_id:
                path = facts.owner_path(partition.topic_partition)
                blocked.setdefault(wanted_by, path)
    return blocked


def _misplaced(facts: GroupFacts, expected: Expected) -> Iterator[Finding]:
    """Live owners that fit neither strategy. One finding for all, since one cause moves many."""
    if expected.agreed:
        return
    owned = _live_owners(facts)
    wrong = [tp for tp, thread in owned.items() if thread not in expected.owners_of(tp)]
    yield Finding(
        "misplaced",
        some_of(wrong or list(owned)),
        "the owners match neither the range nor the roundrobin strategy: a rebalance is in "
        "progress, or the members disagree on partition.assignment.strategy",
        "check again in a few seconds; if it remains, configure the same strategy in all members",
    )


def _idle(facts: GroupFacts, expected: Expected) -> Iterator[Finding]:
    for topic, threads in sorted(expected.threads.items()):
        spare = len(threads) - len(facts.topics.get(topic, ()))
        if spare > 0 and topic in facts.topics:
            yield Finding(
                "idle-threads",
                topic,
                f"{len(threads)} threads share {len(facts.topics[topic])} partitions, so {spare} "
                "are idle",
                "add partitions, or run fewer threads",
                problem=False,
            )


def _absent_topics(facts: GroupFacts, expected: Expected) -> Iterator[Finding]:
    for topic in sorted(expected.threads):
        if topic not in facts.topics:
            yield Finding(
                "absent-topic",
                topic,
                "members subscribe to it, but it does not exist; they wait for it",
                "create it, or correct its name in the members' configuration",
            )


def gone_partitions(partitions: Iterable[PartitionFacts]) -> Iterator[Finding]:
    """Partitions that do not exist, but of which the group has an owner or an offset."""
    for partition in partitions:
        if not partition.exists:
            yield Finding(
                "gone-partition",
                str(partition.topic_partition),
                "the group has an owner or an offset of it, but the topic has no such partition",
                "delete the leftover znode before the topic is created again: members would start "
                "at the old offset",
                problem=False,
            )


def unread_topics(
    partitions: Iterable[PartitionFacts], subscribed: Iterable[str]
) -> Iterator[Finding]:
    """Topics of which the group has offsets, and to which none of its members subscribes."""
    committed = {p.topic_partition.topic for p in partitions if p.exists and p.newest is not None}
    for topic in sorted(committed.difference(subscribed)):
        yield Finding(
            "unread-topic",
            topic,
            "the group has offsets of it, but no member subscribes to it",
            "nothing to do if that is intended; otherwise check what the members subscribe to",
            problem=False,
        )


def leaderless(partitions: Iterable[PartitionFacts]) -> Iterator[Finding]:
    """Partitions without a leader."""
    for partition in partitions:
        if partition.exists and partition.leader is None:
            yield Finding(
                "no-leader",
                str(partition.topic_partition),
                "it has no live leader, so its owner waits",
                "find the broker that is down: kafka08 topic describe",
            )


def outside_the_log(partitions: Iterable[PartitionFacts]) -> Iterator[Finding]:
    """Partitions whose committed offset lies outside the log."""
    for partition in partitions:
        at, start, end = partition.newest, partition.log_start, partition.log_end
        if at is None or start is None or end is None or start <= at <= end:
            continue
        where = f"offset {at} is committed, but the log has offsets {start} to {end}"
        gone = f"{counted(start - at, 'message')} deleted before anybody read them"
        yield Finding(
            "outside-log",
            str(partition.topic_partition),
            f"{where}: {gone}"
            if at < start
            else f"{where}: the topic was created again, or its log was truncated",
            "set auto.offset.reset: it decides where the members continue after their next start",
        )


def _never_committed(facts: GroupFacts, expected: Expected) -> Iterator[Finding]:
    """Partitions with messages and without an offset in either store. There auto.offset.reset
    decides where the next owner starts; 0.8's default, largest, skips all earlier messages.
    Source: kafka.consumer.ConsumerFetcherThread.handleOffsetOutOfRange 0.8.2.2."""
    found = [p for p in facts.partitions if p.never_committed and p.exists and p.lag]
    if facts.members:
        # A member reads the partitions that it owns, and commits them in time.
        read = [p for p in found if p.topic_partition.topic in expected.threads]
        owned = [p for p in read if p.owner is not None]
        yield from _uncommitted(owned, _OWNED, _LOOK_AGAIN, problem=False)
        found = [p for p in read if p.owner is None]
    commit_start = f"kafka08 offsets reset {facts.group} --to +0 --execute"
    yield from _uncommitted(found, _UNOWNED, _READ_THEM.format(commit_start), problem=True)


_OWNED: Final = (
    "its owner has not committed it yet; if another member takes it over before that, "
    "auto.offset.reset decides where it starts: largest (the default) skips these messages"
)
_LOOK_AGAIN: Final = (
    "check again after the members' auto.commit.interval.ms (a minute); if it remains, they do not "
    "commit"
)
_UNOWNED: Final = (
    "auto.offset.reset decides where the next owner starts: largest (the default) skips them"
)
_READ_THEM: Final = (
    "to read them, start members with auto.offset.reset=smallest, or stop the group and commit "
    "the start of their logs: {} (committed offsets stay)"
)


def _uncommitted(
    partitions: Sequence[PartitionFacts], why: str, advice: str, *, problem: bool
) -> Iterator[Finding]:
    if partitions:
        messages = sum(p.lag or 0 for p in partitions)
        yield Finding(
            "never-committed",
            some_of([p.topic_partition for p in partitions]),
            f"no offset is committed in either store, and the log has {messages} messages; {why}",
            advice,
            problem,
        )


def _disagreements(facts: GroupFacts, _: Expected) -> Iterator[Finding]:
    """Partitions whose offsets in the two stores differ."""
    for partition in facts.partitions:
        zookeeper, kafka = partition.zookeeper, partition.kafka
        if zookeeper is None or kafka is None or zookeeper == kafka:
            continue
        newer = "ZooKeeper" if zookeeper > kafka else "Kafka"
        yield Finding(
            "stores-disagree",
            str(partition.topic_partition),
            f"ZooKeeper has offset {zookeeper}, Kafka {kafka}: {newer} is "
            f"{abs(zookeeper - kafka)} messages ahead",
            "expected while members commit to one store only; before you change offsets.storage, "
            f"compare: kafka08 migrate plan {facts.group}",
            problem=False,
        )


def _half_migrated(facts: GroupFacts, _: Expected) -> Iterator[Finding]:
    """Partitions with an offset in Kafka only, while others have one in ZooKeeper."""
    alone = [p for p in facts.partitions if p.kafka is not None and p.zookeeper is None]
    if alone and any(p.zookeeper is not None for p in facts.partitions):
        yield Finding(
            "only-in-kafka",
            some_of([p.topic_partition for p in alone]),
            f"{len(alone)} partitions have an offset in Kafka only, others in ZooKeeper too",
            "members with offsets.storage=zookeeper would ignore it; compare: "
            f"kafka08 migrate plan {facts.group}",
            problem=False,
        )


def failed_requests(group: str, reasons: Iterable[str]) -> Iterator[Finding]:
    for what in reasons:
        yield Finding(
            "request-failed", group, what, "check that the brokers are running, then try again"
        )


Check = Callable[[GroupFacts, Expected], Iterable[Finding]]

CHECKS: Final[tuple[Check, ...]] = (
    _without_members,
    _no_brokers,
    _unreadable,
    _unreadable_offsets,
    _persistent,
    _blocking_owners,
    _unowned,
    _misplaced,
    _absent_topics,
    lambda facts, _: leaderless(facts.partitions) if facts.brokers else (),
    lambda facts, _: outside_the_log(facts.partitions),
    _never_committed,
    lambda facts, _: failed_requests(facts.group, facts.failed_requests),
    _idle,
    lambda facts, expected: (
        unread_topics(facts.partitions, expected.threads) if facts.members else ()
    ),
    lambda facts, _: gone_partitions(facts.partitions),
    _strays,
    _disagreements,
    _half_migrated,
)
"""In the order of the report."""
