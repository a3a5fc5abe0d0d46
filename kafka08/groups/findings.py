"""What is wrong with a group, why, and one sentence of advice for each finding. Pure.

A *problem* keeps messages from being read, or will lose or repeat some; a *note* is worth knowing.
A group that is just rebalancing shows problems that are gone a moment later, so what is found is
worth a second look before anything is done about it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from kafka08.consumer.assignors import Assignment, range_assign, round_robin_assign
from kafka08.consumer.subscription import thread_ids
from kafka08.errors import ConsumerRebalanceFailed
from kafka08.groups.facts import GroupFacts, Owner, PartitionFacts
from kafka08.groups.lag import lag_by_topic
from kafka08.listing import some_of
from kafka08.structs import TopicPartition
from kafka08.zk import paths


@dataclass(frozen=True, slots=True)
class Finding:
    """kind      one word for programs
    subject   the znode, partition, topic or member it is about, or several of them
    says      what is the case, and why
    advice    one sentence: what to do about it
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
    """Who should own what.

    strategies   the assignments that the group may be after. It does not say which strategy its
                 members are configured with: those that agree with all live owners, or if none
                 does, every one that is possible
    agreed       whether one agrees
    threads      topic → the thread ids that read it
    """

    strategies: tuple[Assignment, ...]
    agreed: bool
    threads: dict[str, list[str]]

    def owners_of(self, tp: TopicPartition) -> list[str]:
        """The threads that may be meant to own a partition, without repetition."""
        return sorted({strategy[tp] for strategy in self.strategies if tp in strategy})


def explain(facts: GroupFacts) -> list[Finding]:
    """Everything that is found, problems first; empty if all is well. What is the same of several
    partitions is said once."""
    expected = expectation(facts)
    return ordered(finding for check in CHECKS for finding in check(facts, expected))


def ordered(findings: Iterable[Finding]) -> list[Finding]:
    """Problems first, and what is the same of several subjects once."""
    return sorted(_merged(findings), key=lambda finding: not finding.problem)


def _merged(findings: Iterable[Finding]) -> list[Finding]:
    """One finding for all that differ in their subject only, in the order of the first of each."""
    subjects: dict[Finding, list[str]] = {}
    for finding in findings:
        subjects.setdefault(replace(finding, subject=""), []).append(finding.subject)
    return [replace(finding, subject=some_of(names)) for finding, names in subjects.items()]


def expectation(facts: GroupFacts) -> Expected:
    """What the members, as registered, compute for themselves by either strategy."""
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
    """partition → thread, of the owner znodes of members that are there."""
    sessions = {member.consumer_id: member.session for member in facts.members}
    return {
        p.topic_partition: p.owner.thread_id
        for p in facts.partitions
        if p.owner is not None and p.exists and _fault_of_owner(p.owner, sessions) is None
    }


def _nobody(facts: GroupFacts, _: Expected) -> Iterator[Finding]:
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
        f"the group has no member; {number} messages wait for it",
        "start a member, or leave it if the group is meant to be stopped",
        problem=behind > 0,
    )


def _no_brokers(facts: GroupFacts, _: Expected) -> Iterator[Finding]:
    if not facts.brokers:
        yield Finding(
            "no-brokers",
            paths.BROKER_IDS,
            "no broker is registered, so members own nothing and wait",
            "start a broker, or compare its zookeeper.connect with the members' (the chroot too)",
        )


def _unreadable(facts: GroupFacts, _: Expected) -> Iterator[Finding]:
    for member in facts.members:
        if member.fault is not None:
            path = paths.consumer_id(facts.group, member.consumer_id)
            yield Finding(
                "unreadable-member",
                path,
                f"its registration is not understood ({member.fault}), which fails the rebalance "
                "of every member",
                "stop that member and correct what it subscribes to",
            )


def _persistent(facts: GroupFacts, _: Expected) -> Iterator[Finding]:
    for member in facts.members:
        if member.session == 0:
            yield Finding(
                "persistent-member",
                paths.consumer_id(facts.group, member.consumer_id),
                "the znode belongs to no session, so partitions are dealt to a member that is not "
                "there",
                "delete that znode",
            )


def _blocking_owners(facts: GroupFacts, expected: Expected) -> Iterator[Finding]:
    """Owner znodes that keep the partition from whoever should have it."""
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
        blocked = f"; it blocks {waiting}, and all else that member claims" if waiting else ""
        yield Finding("blocking-owner", facts.owner_path(tp), says + blocked, advice)


def _fault_of_owner(owner: Owner, sessions: dict[str, int]) -> tuple[str, str] | None:
    """(what is wrong with an owner znode, advice); None for that of a live member."""
    consumer_id = owner.thread_id.rpartition("-")[0]
    if owner.session == 0:
        return (
            f"{owner.thread_id} owns it by a znode that belongs to no session and never goes",
            "delete that znode; no client of 0.8 makes such ones",
        )
    if consumer_id not in sessions:
        return (
            f"{owner.thread_id} owns it, but no such member is registered",
            f"wait one session timeout; if it stays, end the process of session {owner.session:#x}",
        )
    if sessions[consumer_id] not in {0, owner.session}:
        return (
            f"an earlier session ({owner.session:#x}) of {consumer_id} still owns it",
            "wait until it ends; if it stays, two processes use one consumer.id: give each its own",
        )
    return None


def _unreadable_offsets(facts: GroupFacts, _: Expected) -> Iterator[Finding]:
    """Source: fetchOffsets of kafka.consumer.ZookeeperConsumerConnector 0.8.2.2, whose toLong ends
    the rebalance."""
    for partition in facts.partitions:
        if partition.zookeeper_fault is not None:
            topic, number = partition.topic_partition
            yield Finding(
                "unreadable-offset",
                str(partition.topic_partition),
                f"{partition.zookeeper_fault}; this fails the rebalance of a member that should "
                "own the partition",
                "stop the group and overwrite it: kafka08 offsets set "
                f"{facts.group} {topic}:{number}=OFFSET",
            )


def _strays(facts: GroupFacts, _: Expected) -> Iterator[Finding]:
    for path in facts.strays:
        yield Finding(
            "stray-znode",
            path,
            "its name is no partition's number; no client of 0.8 makes or reads such a znode",
            "find out who makes it, or delete it",
            problem=False,
        )


def _unowned(facts: GroupFacts, expected: Expected) -> Iterator[Finding]:
    """Partitions that somebody subscribes to and nobody owns."""
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
                f"no owner: {thread} waits for {path}, and claims all its share or none",
                f"see what is said of {path}; when that is released, this is claimed too",
            )
    if any(member.fault for member in facts.members):
        return (
            f"no owner: {names} should have it, but no member can rebalance",
            "see what is said of the registration that is not understood",
        )
    return (
        f"no owner, although {names} should have it and nothing blocks that",
        "look again in a few seconds; if it stays, that member has given up: restart it",
    )


def _blocked_members(facts: GroupFacts, expected: Expected) -> dict[str, str]:
    """consumer id → owner znode of another member that stands where it should own."""
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
    """Live owners that fit neither strategy: one finding for all, since one cause moves many."""
    if expected.agreed:
        return
    owned = _live_owners(facts)
    wrong = [tp for tp, thread in owned.items() if thread not in expected.owners_of(tp)]
    yield Finding(
        "misplaced",
        some_of(wrong or list(owned)),
        "the owners are neither those of range nor those of round robin: a rebalance is under way, "
        "or the members disagree on partition.assignment.strategy",
        "look again in a few seconds; if it stays, give all members the same strategy",
    )


def _idle(facts: GroupFacts, expected: Expected) -> Iterator[Finding]:
    for topic, threads in sorted(expected.threads.items()):
        spare = len(threads) - len(facts.topics.get(topic, ()))
        if spare > 0 and topic in facts.topics:
            yield Finding(
                "idle-threads",
                topic,
                f"{len(threads)} threads share {len(facts.topics[topic])} partitions, so {spare} "
                "have nothing to read",
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
                "create it, or correct its name in the members",
            )


def gone_partitions(partitions: Iterable[PartitionFacts]) -> Iterator[Finding]:
    """Partitions that the group has to do with and that do not exist."""
    for partition in partitions:
        if not partition.exists:
            yield Finding(
                "gone-partition",
                str(partition.topic_partition),
                "the group has an owner or an offset of it, but the topic has no such partition",
                "nothing needs it; if the topic is made again, the old offset would count",
                problem=False,
            )


def _unread_topics(facts: GroupFacts, expected: Expected) -> Iterator[Finding]:
    if not facts.members:
        return
    topics = {
        p.topic_partition.topic for p in facts.partitions if p.exists and p.newest is not None
    }
    for topic in sorted(topics - set(expected.threads)):
        yield Finding(
            "unread-topic",
            topic,
            "the group has offsets of it, but no member subscribes to it",
            "leave it if that is meant; else see what the members subscribe to",
            problem=False,
        )


def leaderless(partitions: Iterable[PartitionFacts]) -> Iterator[Finding]:
    """Partitions that have no leader."""
    for partition in partitions:
        if partition.exists and partition.leader is None:
            yield Finding(
                "no-leader",
                str(partition.topic_partition),
                "no live leader, so the owner waits",
                "see which broker is down: kafka08 topic describe",
            )


def outside_the_log(partitions: Iterable[PartitionFacts]) -> Iterator[Finding]:
    """Partitions whose committed offset is not in the log."""
    for partition in partitions:
        at, start, end = partition.newest, partition.log_start, partition.log_end
        if at is None or start is None or end is None or start <= at <= end:
            continue
        where = f"offset {at} is committed, but the log has {start} to {end}"
        gone = f"{start - at} messages were deleted before they were read"
        yield Finding(
            "outside-log",
            str(partition.topic_partition),
            f"{where}: {gone}" if at < start else f"{where}: the topic was made anew, or cut",
            "set auto.offset.reset to where the group shall go on; it decides at the next start",
        )


def _never_committed(facts: GroupFacts, expected: Expected) -> Iterator[Finding]:
    """Partitions with messages and without an offset in either store. Their next owner begins by
    auto.offset.reset; 0.8's default, largest, skips what is there.
    Source: kafka.consumer.ConsumerFetcherThread.handleOffsetOutOfRange 0.8.2.2."""
    found = [p for p in facts.partitions if p.never_committed and p.exists and p.lag]
    if facts.members:
        # Members that own a partition have begun to read it, and commit it in time.
        read = [p for p in found if p.topic_partition.topic in expected.threads]
        owned = [p for p in read if p.owner is not None]
        yield from _uncommitted(owned, _OWNED, _LOOK_AGAIN, problem=False)
        found = [p for p in read if p.owner is None]
    commit_start = f"kafka08 offsets reset {facts.group} --to +0 --execute"
    yield from _uncommitted(found, _UNOWNED, _READ_THEM.format(commit_start), problem=True)


_OWNED: Final = (
    "its owner has not committed it yet; should another one take over before that, it begins where "
    "auto.offset.reset says: largest (the default) skips what is in the log"
)
_LOOK_AGAIN: Final = (
    "look again after the members' auto.commit.interval.ms (a minute); if it stays, they do not "
    "commit"
)
_UNOWNED: Final = (
    "the next owner begins where auto.offset.reset says: largest (the default) skips what is in "
    "the log"
)
_READ_THEM: Final = (
    "to read them, start members with auto.offset.reset=smallest, or stop the group and commit "
    "their log's start: {} (committed offsets stay)"
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
    """The two stores, where both have an offset."""
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
            "usual while members commit to one store only; before offsets.storage is changed: "
            f"kafka08 migrate plan {facts.group}",
            problem=False,
        )


def _half_migrated(facts: GroupFacts, _: Expected) -> Iterator[Finding]:
    """Partitions with an offset in Kafka alone beside others in ZooKeeper."""
    alone = [p for p in facts.partitions if p.kafka is not None and p.zookeeper is None]
    if alone and any(p.zookeeper is not None for p in facts.partitions):
        yield Finding(
            "only-in-kafka",
            some_of([p.topic_partition for p in alone]),
            f"{len(alone)} partitions have an offset in Kafka only, others in ZooKeeper too",
            "members with offsets.storage=zookeeper would begin these anew: "
            f"kafka08 migrate plan {facts.group}",
            problem=False,
        )


def unanswered(group: str, reasons: Iterable[str]) -> Iterator[Finding]:
    for what in reasons:
        yield Finding("unanswered", group, what, "see that the brokers answer, then ask again")


Check = Callable[[GroupFacts, Expected], Iterable[Finding]]

CHECKS: Final[tuple[Check, ...]] = (
    _nobody,
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
    lambda facts, _: unanswered(facts.group, facts.unanswered),
    _idle,
    _unread_topics,
    lambda facts, _: gone_partitions(facts.partitions),
    _strays,
    _disagreements,
    _half_migrated,
)
"""In the order in which they are told."""
