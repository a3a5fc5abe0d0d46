"""Each check on a snapshot with the fault that it is for, and on a healthy one.

`FAULTS` has a row for each check: what to change in the healthy cluster. A check must find its
fault, and no other check may find a problem there unless the row says so: a fault has one name.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import click
import pytest

from kafka08.cli.root import root
from kafka08.doctor import CHECKS, Snapshot, findings_of
from kafka08.doctor.check import named
from kafka08.doctor.snapshot import (
    HERE,
    BrokerFacts,
    FileFacts,
    LogDirectoryFacts,
    LogOnDisk,
    Request,
    TopicFacts,
)
from kafka08.errors import KafkaError
from kafka08.groups import CoordinatedFacts, GroupFacts, Member, Owner
from kafka08.groups import PartitionFacts as GroupPartition
from kafka08.observe.commit_times import KafkaCommit
from kafka08.observe.coordinated import CoordinatedGroup, CoordinatedMember
from kafka08.observe.place import ClusterPlace
from kafka08.observe.snapshot import ClusterView, GroupState, PartitionState
from kafka08.observe.transactions import FoundTransaction, WaitingPartition
from kafka08.protocol.offset_records import NO_EXPIRY
from kafka08.protocol.transaction_records import TransactionRecord, TransactionState
from kafka08.structs import NO_LEADER, OFFSETS_TOPIC, Broker, LeaderAndIsr, TopicPartition
from kafka08.zk.nodes import BrokerRegistration, ConsumerRegistration

NOW = 1_700_000_000_000
HOUR = 3_600_000
T0 = TopicPartition("t", 0)
COMPACTED = {"cleanup.policy": "compact"}
BROKER_FILE = {"broker.id": "1", "log.dirs": "/data/kafka", "log.cleaner.enable": "true"}


def state(leader: int, *isr: int, controller_epoch: int = 5) -> LeaderAndIsr:
    return LeaderAndIsr(leader, 1, isr, 0, controller_epoch)


def placed(
    replicas: tuple[int, ...], found: LeaderAndIsr | None, fault: str = ""
) -> PartitionState:
    """A partition with this state in ZooKeeper."""
    leader, isr = (NO_LEADER, ()) if found is None else (found.leader, found.isr)
    return PartitionState(leader, replicas, isr, state=found, fault=fault)


def partition(*replicas: int) -> PartitionState:
    return placed(replicas, state(replicas[0], *replicas))


def topic(*assignment: tuple[int, ...], **config: str) -> TopicFacts:
    overrides = {name.replace("_", "."): value for name, value in config.items()}
    return TopicFacts(
        {number: partition(*replicas) for number, replicas in enumerate(assignment)},
        overrides,
        created_ms=NOW - HOUR,
    )


TOPICS: Mapping[str, TopicFacts] = {
    "t": topic((1, 2), (2, 3), (3, 1)),
    "u": topic((2, 1), min_insync_replicas="2", max_message_bytes="500000"),
    OFFSETS_TOPIC: topic((1, 2, 3), cleanup_policy="compact"),
}
LEADERS = {
    TopicPartition(name, number): p.state.leader
    for name, facts in TOPICS.items()
    for number, p in facts.partitions.items()
    if p.state is not None
}


def broker(broker_id: int, **changes: Any) -> BrokerFacts:
    registration = BrokerRegistration(f"kafka{broker_id}", 9092, timestamp_ms=NOW - HOUR)
    facts = BrokerFacts(
        broker_id,
        registration,
        created_ms=NOW - HOUR,
        known_brokers=frozenset({1, 2, 3}),
        leaders=LEADERS,
    )
    return replace(facts, **changes)


def group(*partitions: GroupPartition, members: tuple[Member, ...] = (), **more: Any) -> GroupFacts:
    return GroupFacts("g", (1, 2, 3), {"t": (0, 1, 2)}, members, partitions, **more)


def in_group(number: int = 0, **changes: Any) -> GroupPartition:
    facts = GroupPartition(
        TopicPartition("t", number), 5, None, 0, 5, exists=True, leader=1, owner=None
    )
    return replace(facts, **changes)


def member(**registration: Any) -> Member:
    fields = {"subscription": {"t": 1}, "pattern": "static", **registration}
    return Member("g_host-1-aa", ConsumerRegistration(**fields), 77)


def coordinated(
    *partitions: GroupPartition, owns_all: bool = True, **changes: Any
) -> CoordinatedFacts:
    """A group with a member that owns all partitions, or all but one."""
    owns = tuple(p.topic_partition for p in partitions[0 if owns_all else 1 :])
    joined = (CoordinatedMember("m", "client", "/10.0.0.7", ("t",), owns),)
    facts = {"state": "Stable", "protocol_type": "consumer", "protocol": "range", **changes}
    found = CoordinatedGroup("c", Broker(1, "kafka1", 9092), members=joined, **facts)
    return CoordinatedFacts(found, partitions, {"t": (0, 1, 2)})


IN_KAFKA = tuple(
    GroupPartition(TopicPartition("t", n), None, 5, 0, 5, exists=True, leader=1, owner=None)
    for n in range(3)
)
OWNED = Owner("g_host-1-aa-0", 77)
DIRECTORY = LogDirectoryFacts(
    "/data/kafka",
    device=1,
    total=100,
    free=50,
    logs={T0: LogOnDisk(1000, 1000, 9), TopicPartition(OFFSETS_TOPIC, 0): LogOnDisk(1000, 100, 9)},
)
HEALTHY = Snapshot(
    ClusterView(NOW, controller=1),
    NOW,
    brokers={i: broker(i) for i in (1, 2, 3)},
    controller_epoch=5,
    topics=TOPICS,
    controller_clocks=(NOW - HOUR, NOW - HOUR - 50),
    groups={"g": group(*(in_group(n, owner=OWNED) for n in range(3)), members=(member(),))},
    coordinated={"c": coordinated(*IN_KAFKA)},
    commits={("idle", T0): KafkaCommit(NOW - HOUR)},
    log_directories=(DIRECTORY,),
    files=(
        FileFacts("server.properties", "broker", BROKER_FILE),
        FileFacts("consumer.properties", "consumer", {"group.id": "g"}),
        FileFacts("producer.properties", "producer", {"acks": "1"}),
    ),
)


def cluster(**changes: Any) -> Snapshot:
    return replace(HEALTHY, **changes)


def seen(**changes: Any) -> Snapshot:
    return cluster(view=replace(HEALTHY.view, **changes))


def with_broker(broker_id: int, **changes: Any) -> Snapshot:
    return cluster(brokers={**HEALTHY.brokers, broker_id: broker(broker_id, **changes)})


def with_topic(name: str, facts: TopicFacts) -> Snapshot:
    return cluster(topics={**TOPICS, name: facts})


def with_t0(**changes: Any) -> Snapshot:
    facts = TOPICS["t"]
    changed = {**facts.partitions, 0: replace(facts.partitions[0], **changes)}
    return with_topic("t", replace(facts, partitions=changed))


def with_group(facts: GroupFacts) -> Snapshot:
    return cluster(groups={"g": facts})


def with_directory(**changes: Any) -> Snapshot:
    return cluster(log_directories=(replace(DIRECTORY, **changes),))


def with_file(kind: str, **changes: Any) -> Snapshot:
    files = [replace(f, **changes) if f.kind == kind else f for f in HEALTHY.files]
    return cluster(files=tuple(files))


def with_value(kind: str, key: str, value: str) -> Snapshot:
    [file] = [f for f in HEALTHY.files if f.kind == kind]
    return with_file(kind, values={**file.values, key: value})


def at(host: str, port: int = 9092, **more: Any) -> BrokerRegistration:
    return BrokerRegistration(host, port, timestamp_ms=NOW - HOUR, **more)


MANY = {f"m{n}": topic((1, 2)) for n in range(40)}

RECORD = TransactionRecord(
    4, 0, 60_000, TransactionState.ONGOING, frozenset({T0}), NOW - HOUR, NOW - HOUR
)


def waiting(transaction: FoundTransaction | None, **keys: Any) -> WaitingPartition:
    return replace(WaitingPartition(T0, 3, 9, 4, 0, NOW - HOUR, transaction), **keys)


FAULTS: Mapping[str, Callable[[], Snapshot]] = {
    "no-brokers": lambda: replace(seen(controller=None), brokers={}, topics={}, groups={}),
    "broker-unreadable": lambda: with_broker(4, registration=None, fault="no JSON"),
    "broker-unreachable": lambda: with_broker(2, unreachable="connection refused"),
    "broker-slow": lambda: with_broker(1, seconds=1.5),
    "broker-loopback": lambda: with_broker(1, registration=at("127.0.0.1")),
    "broker-same-address": lambda: with_broker(1, registration=at("kafka2")),
    "broker-left-behind": lambda: with_topic("t", TopicFacts({0: placed((1, 9), state(1, 1, 9))})),
    "broker-clock": lambda: with_broker(1, created_ms=NOW - 2 * HOUR),
    "controller-clock": lambda: cluster(controller_clocks=(NOW, NOW - HOUR)),
    "local-clock": lambda: cluster(now_ms=NOW - 2 * HOUR),
    "broker-misses-brokers": lambda: with_broker(1, known_brokers=frozenset({1, 2})),
    "broker-stale-leaders": lambda: with_broker(1, leaders={**LEADERS, T0: 2}),
    "broker-protocol-ahead": lambda: with_broker(1, registration=at("kafka1", version=4)),
    "broker-versions-mixed": lambda: with_broker(1, registration=at("kafka1", version=2)),
    "transaction-overdue": lambda: cluster(waiting=(waiting(FoundTransaction("x", RECORD, 2)),)),
    "transaction-hanging": lambda: cluster(waiting=(waiting(None),)),
    "controller-none": lambda: seen(controller=None),
    "controller-unreachable": lambda: with_broker(1, unreachable="connection refused"),
    "controller-dead": lambda: seen(controller=8),
    "controller-epoch": lambda: cluster(controller_epoch=4),
    "zookeeper-slow": lambda: cluster(zookeeper_seconds=0.7),
    "isr-notifications": lambda: cluster(isr_notifications=5000),
    "partition-unreadable": lambda: with_t0(state=None, fault="no JSON"),
    "partition-without-state": lambda: with_t0(state=None),
    "partition-offline": lambda: with_t0(state=state(NO_LEADER, 2)),
    "partition-led-by-dead": lambda: with_t0(replicas=(7, 2), state=state(7, 7, 2)),
    "partition-under-replicated": lambda: with_t0(state=state(1, 1)),
    "coordinator-none": lambda: with_topic(
        OFFSETS_TOPIC,
        replace(
            topic((7, 1), cleanup_policy="compact"),
            partitions={0: placed((7, 1), state(NO_LEADER, 7))},
        ),
    ),
    "isr-foreign": lambda: with_t0(state=state(1, 1, 2, 3)),
    "partition-without-replicas": lambda: with_topic("v", TopicFacts({0: placed((), None)})),
    "partition-gap": lambda: with_topic("v", TopicFacts({1: partition(1, 2)})),
    "leaders-skewed": lambda: with_topic(
        "v",
        TopicFacts({n: placed((1, 2), state(2, 1, 2)) for n in range(5)}),
    ),
    "replicas-skewed": lambda: cluster(topics={**TOPICS, **MANY}),
    "topic-unreadable": lambda: with_topic("v", TopicFacts({}, fault="no JSON")),
    "topic-empty": lambda: with_topic("v", TopicFacts({})),
    "topic-name": lambda: with_topic("v/w", topic((1, 2))),
    "topic-names-collide": lambda: cluster(
        topics={**TOPICS, "a.b": topic((1, 2)), "a_b": topic((1, 2))}
    ),
    "topic-config-unreadable": lambda: with_topic(
        "v", replace(topic((1, 2)), config=None, config_fault="no JSON")
    ),
    "topic-config-invalid": lambda: with_topic("v", topic((1, 2), retention_mss="5")),
    "min-insync-above-replicas": lambda: with_topic("v", topic((1, 2), min_insync_replicas="3")),
    "min-insync-not-met": lambda: with_topic(
        "v",
        replace(
            topic((1, 2), min_insync_replicas="2"),
            partitions={0: placed((1, 2), state(1, 1))},
        ),
    ),
    "unclean-election-allowed": lambda: with_topic(
        "v", topic((1, 2), unclean_leader_election_enable="true")
    ),
    "retention-below-segment": lambda: with_topic(
        "v", topic((1, 2), retention_bytes="100", segment_bytes="1000")
    ),
    "replica-counts-differ": lambda: with_topic("v", topic((1, 2), (1, 2, 3))),
    "offsets-topic-one-replica": lambda: with_topic(
        OFFSETS_TOPIC, topic((1,), cleanup_policy="compact")
    ),
    "offsets-topic-not-compacted": lambda: with_topic(OFFSETS_TOPIC, topic((1, 2, 3))),
    "request-unreadable": lambda: cluster(election=Request(NOW, fault="no JSON")),
    "reassignment-stuck": lambda: cluster(reassignment=Request(NOW - 2 * HOUR, {T0: (2, 3)})),
    "reassignment-to-dead-broker": lambda: cluster(reassignment=Request(NOW, {T0: (1, 9)})),
    "reassignment-of-nothing": lambda: cluster(
        reassignment=Request(NOW, {TopicPartition("gone", 0): (1, 2)})
    ),
    "election-stuck": lambda: cluster(election=Request(NOW - HOUR, {T0: ()})),
    "topic-half-deleted": lambda: cluster(deletions={"u": NOW - HOUR}),
    "deletion-of-nothing": lambda: cluster(deletions={"gone": NOW - HOUR}),
    "config-left-behind": lambda: cluster(leftover_configs=("gone",)),
    "config-changes-pile-up": lambda: cluster(config_changes=2000),
    "group-unreadable-member": lambda: with_group(
        group(members=(Member("g_host-1-aa", None, 77, unreadable="no JSON"),))
    ),
    "group-unreadable-offset": lambda: with_group(
        group(
            *(in_group(n, owner=OWNED) for n in (1, 2)),
            in_group(owner=OWNED, zookeeper=None, zookeeper_fault="/offset: no number"),
            members=(member(),),
        )
    ),
    "group-persistent-member": lambda: with_group(
        group(
            *(in_group(n, owner=OWNED) for n in range(3)),
            members=(replace(member(), session=0),),
        )
    ),
    "group-blocking-owner": lambda: with_group(
        group(
            in_group(owner=Owner("g_gone-1-bb-0", 78)),
            *(in_group(n, owner=OWNED) for n in (1, 2)),
            members=(member(),),
        )
    ),
    "group-no-owner": lambda: with_group(
        group(*(in_group(n) for n in range(3)), members=(member(),))
    ),
    "group-misplaced": lambda: with_group(
        group(
            in_group(0, owner=Owner("g_host-1-aa-1", 77)),
            *(in_group(n, owner=Owner("g_host-1-aa-0", 77)) for n in (1, 2)),
            members=(member(subscription={"t": 2}),),
        )
    ),
    "group-absent-topic": lambda: with_group(
        group(
            *(in_group(n, owner=OWNED) for n in range(3)),
            members=(member(subscription={"t": 1, "gone": 1}),),
        )
    ),
    "group-gone-partition": lambda: with_group(
        group(
            *(in_group(n, owner=OWNED) for n in range(3)),
            in_group(9, exists=False, leader=None, owner=OWNED, log_start=None, log_end=None),
            members=(member(),),
        )
    ),
    "group-stray-znode": lambda: with_group(
        group(
            *(in_group(n, owner=OWNED) for n in range(3)),
            members=(member(),),
            strays=("/consumers/g/owners/t/x",),
        )
    ),
    "group-outside-log": lambda: with_group(
        group(
            in_group(owner=OWNED, zookeeper=1, log_start=3),
            *(in_group(n, owner=OWNED) for n in (1, 2)),
            members=(member(),),
        )
    ),
    "group-never-committed": lambda: with_group(
        group(
            in_group(owner=None, zookeeper=None),
            *(in_group(n) for n in (1, 2)),
        )
    ),
    "group-no-members": lambda: with_group(group(*(in_group(n, zookeeper=3) for n in (0, 1, 2)))),
    "group-rebalancing": lambda: cluster(
        coordinated={"c": coordinated(*IN_KAFKA, state="PreparingRebalance")}
    ),
    "offsets-expiring": lambda: cluster(commits={("idle", T0): KafkaCommit(NOW - 20 * HOUR)}),
    "groups-not-read": lambda: seen(unlisted=("groups of broker 1: it is loading",)),
    "group-unreadable": lambda: seen(
        groups={"h": GroupState(unknown_offsets=KafkaError("no such coordinator"))}
    ),
    "group-stores-disagree": lambda: with_group(group(in_group(kafka=4))),
    "groups-left-out": lambda: cluster(groups_left_out=7),
    "log-directory-unusable": lambda: with_directory(fault="No such file or directory"),
    "disk-nearly-full": lambda: with_directory(free=5),
    "log-directories-share-disk": lambda: cluster(
        log_directories=(DIRECTORY, replace(DIRECTORY, path="/data/more", logs={}))
    ),
    "broker-crashed": lambda: with_directory(was_clean=False, in_use=False),
    "logs-left-behind": lambda: with_directory(
        logs={TopicPartition("gone", 0): LogOnDisk(1, 1, 0)}
    ),
    "cleaner-dead": lambda: with_directory(
        logs={TopicPartition(OFFSETS_TOPIC, 0): LogOnDisk(1000, 990, 9)}
    ),
    "properties-invalid": lambda: with_file("broker", fault="port: 'x' is no number"),
    "properties-unknown": lambda: with_file("broker", unknown=("log.retension.hours",)),
    "properties-without-effect": lambda: with_file("broker", without_effect=("num.io.threads",)),
    "logs-in-tmp": lambda: with_value("broker", "log.dirs", "/tmp/kafka-logs"),
    "session-too-short": lambda: with_value("broker", "zookeeper.session.timeout.ms", "1000"),
    "replica-fetch-too-small": lambda: with_value("broker", "replica.fetch.max.bytes", "400000"),
    "offsets-replication-one": lambda: with_value(
        "broker", "offsets.topic.replication.factor", "1"
    ),
    "cleaner-off": lambda: with_value("broker", "log.cleaner.enable", "false"),
    "rebalance-formula": lambda: with_value("consumer", "rebalance.backoff.ms", "100"),
    "fetch-too-small": lambda: with_value("consumer", "fetch.message.max.bytes", "400000"),
    "producer-without-acks": lambda: with_value("producer", "acks", "0"),
}

ALSO: Mapping[str, set[str]] = {
    "coordinator-none": {"broker-left-behind", "broker-stale-leaders", "partition-offline"},
    "group-never-committed": {"group-no-members"},
    "partition-led-by-dead": {"broker-left-behind", "broker-stale-leaders", "logs-left-behind"},
    "partition-offline": {"broker-stale-leaders"},
    "min-insync-not-met": {"partition-under-replicated"},
}
"""Problems that a fault has under other names too."""


def test_a_healthy_cluster_has_no_findings() -> None:
    """A healthy cluster has neither problems nor notes."""
    assert [] == findings_of(HEALTHY)


def test_every_check_has_a_fault_and_a_name_of_its_own() -> None:
    """There are at least 40 checks; each has its own name and a test of it."""
    names = [check.name for check in CHECKS]
    assert len(set(names)) == len(names) >= 40
    assert set(FAULTS) == set(names)


@pytest.mark.parametrize("name", sorted(FAULTS))
def test_a_fault_is_found(name: str) -> None:
    """Its check finds it, with a place, a reason and a command."""
    found = [finding for finding in findings_of(FAULTS[name]()) if finding.check == name]
    assert found, f"{name} found nothing"
    for finding in found:
        assert finding.where
        assert finding.what
        assert finding.why
        assert finding.command
        assert "{zookeeper}" not in finding.command


@pytest.mark.parametrize("name", sorted(FAULTS))
def test_a_fault_is_not_found_under_other_names(name: str) -> None:
    """A fault has one finding, except where ALSO lists another one."""
    problems = {finding.check for finding in findings_of(FAULTS[name]()) if finding.is_problem}
    assert problems <= {name} | ALSO.get(name, set())


@pytest.mark.parametrize(
    ("fault", "facts"),
    [
        ("group-no-owner", coordinated(IN_KAFKA[0], *IN_KAFKA[1:], owns_all=False)),
        ("group-outside-log", coordinated(replace(IN_KAFKA[0], log_start=7), *IN_KAFKA[1:])),
        ("group-absent-topic", replace(coordinated(*IN_KAFKA), topics={})),
    ],
)
def test_groups_of_both_kinds_have_the_same_checks(fault: str, facts: CoordinatedFacts) -> None:
    """Those that brokers coordinate as those of ZooKeeper, also beside one of its name there."""
    for name in ("c", "g"):
        found = findings_of(cluster(coordinated={name: facts}))
        assert {fault} == {finding.check for finding in found if finding.is_problem}


@pytest.mark.parametrize(
    ("hours", "expires_hours", "minutes", "text"),
    [
        (20, None, None, "in 4.0 h"),
        (30, None, None, "at any moment"),
        (1, 2, None, "in 2.0 h"),
        (20, 100, None, None),
        (20, None, 10_000, None),
        (9, None, 600, "in 1.0 h"),
    ],
)
def test_offsets_expire_by_their_record_or_by_the_retention(
    hours: int, expires_hours: int | None, minutes: int | None, text: str | None
) -> None:
    """Of the broker's file if there is one, else of Kafka's default; said in the last quarter."""
    expires = NO_EXPIRY if expires_hours is None else NOW + expires_hours * HOUR
    values = {**BROKER_FILE, **({"offsets.retention.minutes": str(minutes)} if minutes else {})}
    snapshot = replace(
        with_file("broker", values=values),
        commits={("idle", T0): KafkaCommit(NOW - hours * HOUR, expires)},
    )
    found = [f.what for f in findings_of(snapshot)]
    assert ([f"its offset in Kafka expires {text}"] if text else []) == found


def test_an_expiring_offset_has_all_known_facts() -> None:
    """No member protects it, the other store may have it, and a commit older than the records that
    were read has a latest time of expiry."""
    commits = {
        ("c", T0): KafkaCommit(NOW - 20 * HOUR),
        ("g", T0): KafkaCommit(NOW - 20 * HOUR, is_older=True),
        ("idle", T0): KafkaCommit(NOW - 30 * HOUR, is_older=True),
        ("new", T0): KafkaCommit(NOW - 2 * HOUR, is_older=True),
    }
    says = "its offset in Kafka expires"
    members = "its members do not commit it"
    assert {
        "group c, [t,0]": f"{says} in 4.0 h; {members}",
        "group g, [t,0]": f"{says} in 4.0 h at the latest; {members}; ZooKeeper has one too",
        "group idle, [t,0]": f"{says} at any moment",
    } == {f.where: f.what for f in findings_of(cluster(commits=commits))}


@pytest.mark.parametrize(
    ("protocol", "is_found"),
    [("0.11.0-IV2", True), ("3.9-IV0", True), ("0.10.2", False), ("", False), (None, False)],
)
def test_a_protocol_that_a_peer_of_0_10_cannot_read_is_found(
    protocol: str | None, is_found: bool
) -> None:
    """Both register alike. One with the pins of an upgrade is no fault, nor is a protocol that is
    not known."""
    registration = at("kafka1", version=4)
    brokers = {
        n: broker(n, registration=registration, protocol=said)
        for n, said in ((1, protocol), (2, ""), (3, None))
    }
    found = [one.what for one in findings_of(cluster(brokers=brokers)) if "ahead" in one.check]
    says = f"speaks the protocol of 0.11 or later ({protocol}) to broker 2 of 0.10, which cannot"
    assert found == ([f"{says} read it"] if is_found else [])


def test_the_logs_of_a_topic_that_cannot_be_read_are_not_left_behind() -> None:
    """Its replicas are unknown, and who deletes the logs loses its messages."""
    found = findings_of(with_topic("t", TopicFacts({}, fault="no JSON")))
    assert ["topic-unreadable"] == [finding.check for finding in found]


@pytest.mark.parametrize("text", ["--1", "\u00b2", "\u0665", "1" * 5000, "-", "", "1e3"])
def test_a_value_that_is_no_number_ends_no_check(text: str) -> None:
    """A topic may have any text as a value, and a file too: one that is no number counts as not
    set, and brokers do not apply it."""
    keys = ("min.insync.replicas", "retention.bytes", "segment.bytes", "max.message.bytes")
    found = findings_of(with_topic("v", replace(topic((1, 2)), config=dict.fromkeys(keys, text))))
    assert {"topic-config-invalid"} == {finding.check for finding in found}
    snapshot = replace(
        with_value("broker", "offsets.retention.minutes", text),
        commits={("idle", T0): KafkaCommit(NOW - 20 * HOUR)},
    )
    assert ["its offset in Kafka expires in 4.0 h"] == [f.what for f in findings_of(snapshot)]


@pytest.mark.parametrize(
    ("directories", "is_found"),
    [
        ("/tmp/a", True),
        ("/data/a, /tmp/a", True),
        ("/data/a,/var/tmp", True),
        ("/tmp", True),
        ("/data/tmp/a,/tmpfs", False),
    ],
)
def test_each_log_directory_may_be_temporary(directories: str, is_found: bool) -> None:
    """Not the first one alone."""
    found = findings_of(with_value("broker", "log.dirs", directories))
    assert ["logs-in-tmp"] * is_found == [finding.check for finding in found]


def test_the_same_of_many_places_is_one_finding() -> None:
    """A dead broker's thousand partitions are one line."""
    turns = ((1, 2), (2, 3), (3, 1))
    facts = TopicFacts(
        {n: placed(turns[n % 3], state(turns[n % 3][0], turns[n % 3][0])) for n in range(999)}
    )
    found = findings_of(with_topic("v", facts))
    assert {"partition-under-replicated"} == {finding.check for finding in found}
    assert 3 == len(found), "one for each broker that is not in sync"
    assert len(found[0].where) < 200


def test_an_offline_partition_names_the_brokers_that_it_waits_for() -> None:
    """Those of its ISR that are not registered; the act has the topic's name."""
    found = [f for f in findings_of(with_t0(state=state(NO_LEADER, 7, 8))) if "offline" in f.check]
    says = "has no leader: brokers 7, 8 are not registered, and in its ISR"
    assert [says] == [f.what for f in found]
    assert "kafka08 topic alter t --config unclean" in found[0].command


def test_a_replica_out_of_sync_says_whether_it_is_registered() -> None:
    """One that is down is to be started; of one that is not, its log has the cause."""
    for replicas, says in (
        ((1, 2), "broker 2 is not in sync"),
        ((1, 7), "broker 7 is not in sync: broker 7 is not registered"),
        ((1, 2, 7), "brokers 2, 7 are not in sync: broker 7 is not registered"),
    ):
        found = findings_of(with_t0(replicas=replicas, state=state(1, 1)))
        [what] = [f.what for f in found if f.check == "partition-under-replicated"]
        assert says == what


@pytest.mark.parametrize("name", sorted(FAULTS))
def test_an_act_ends_with_its_command(name: str) -> None:
    """The console shows what follows `kafka08` as a command."""
    for finding in findings_of(FAULTS[name]()):
        assert finding.command.count("kafka08 ") <= 1
        words, _, command = finding.command.partition("kafka08 ")
        assert not words or not command or words.endswith(": ")
        assert "(" not in command


@pytest.mark.parametrize("place", [HERE, ClusterPlace(None, "kafka1:9092")], ids=str)
def test_the_commands_of_acts_can_be_run(place: ClusterPlace) -> None:
    """Each parses, with the options by which its command finds the cluster."""
    for name in sorted(FAULTS):
        for finding in findings_of(replace(FAULTS[name](), place=place)):
            _, _, line = finding.command.partition("kafka08 ")
            words = shlex.split(line)
            command: click.Command = root
            while words and isinstance(command, click.Group):
                found = command.get_command(click.Context(command), words.pop(0))
                assert found is not None, finding.command
                command = found
            command.make_parser(click.Context(command)).parse_args(words)


def test_a_transaction_that_may_be_open_is_no_finding() -> None:
    """Its timeout has not passed, with what its coordinator takes to see it."""
    young = {"since_ms": NOW - 100_000}
    record = RECORD._replace(start_ms=NOW - 100_000)
    for found in (None, FoundTransaction("x", record, 2)):
        assert [] == findings_of(cluster(waiting=(waiting(found, **young),)))


def test_an_id_without_the_partition_ends_nothing_there() -> None:
    """A message that came behind the marker: the id's next transaction does not have it."""
    record = RECORD._replace(partitions=frozenset())
    snapshot = cluster(waiting=(waiting(FoundTransaction("x", record, 2)),))
    assert ["transaction-hanging"] == [one.check for one in findings_of(snapshot)]


def test_a_finding_of_one_group_names_it_in_its_command() -> None:
    """So that the command can be pasted; of several groups it has the placeholder."""
    topic = "kafka08 topic alter TOPIC --config k=v"
    assert named(topic, ["[t,0]", "[t,1]"]) == "kafka08 topic alter t --config k=v"
    assert named(topic, ["[t,0]", "[u,1]"]) == topic
    command = "kafka08 group explain GROUP --zookeeper z"
    assert named(command, ["group a b, [t,0]", "group a b, [t,1]"]) == (
        "kafka08 group explain 'a b' --zookeeper z"
    )
    assert named(command, ["group a, [t,0]", "group b"]) == command
    restore = "kafka08 topic alter TOPIC --config KEY=VALUE --zookeeper z"
    assert named(restore, ["/config/topics/t.1"]) == restore.replace("TOPIC", "t.1")
