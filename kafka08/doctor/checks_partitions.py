"""Checks of partitions: leaders, replicas, in-sync replicas, and their distribution."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from kafka08.doctor.check import ZOOKEEPER, Found, Z, note, problem
from kafka08.doctor.snapshot import Snapshot
from kafka08.listing import brokers_are, counted
from kafka08.observe.transactions import WaitingPartition
from kafka08.structs import NO_LEADER, OFFSETS_TOPIC
from kafka08.topic_config import UNCLEAN_ELECTIONS
from kafka08.zk import paths

SKEW: Final = 0.1
"""leader.imbalance.per.broker.percentage of Kafka."""
SKEWED_LEADERS_MIN: Final = 3
"""A broker counts as skewed if others lead at least this many of its partitions."""
REPLICA_SKEW: Final = 0.5
REPLICAS_PER_BROKER_MIN: Final = 20
CREATING_MS: Final = 60_000


def _unreadable(snapshot: Snapshot) -> Iterator[Found]:
    for tp, partition in snapshot.partitions():
        if partition.fault:
            yield Found(paths.partition_state(*tp), f"cannot be read: {partition.fault}")


def _without_state(snapshot: Snapshot) -> Iterator[Found]:
    for tp, partition in snapshot.partitions():
        age_ms = snapshot.now_ms - snapshot.topics[tp.topic].created_ms
        absent = partition.state is None and not partition.fault
        if absent and partition.replicas and age_ms > CREATING_MS:
            yield Found(str(tp), "has no state: the controller never gave it a leader")


def _offline(snapshot: Snapshot) -> Iterator[Found]:
    for tp, partition in snapshot.partitions():
        if partition.state is not None and partition.state.leader == NO_LEADER:
            down = [broker for broker in partition.state.isr if broker not in snapshot.live]
            why = (
                f": {brokers_are(down)} not registered, and in its ISR"
                if down
                else ", although a replica in its ISR is registered"
            )
            yield Found(str(tp), f"has no leader{why}")


def _led_by_dead(snapshot: Snapshot) -> Iterator[Found]:
    for tp, partition in snapshot.partitions():
        state = partition.state
        if state is not None and state.leader != NO_LEADER and state.leader not in snapshot.live:
            yield Found(str(tp), f"is led by broker {state.leader}, which is not registered")


def _under_replicated(snapshot: Snapshot) -> Iterator[Found]:
    for tp, partition in snapshot.partitions():
        if partition.state is None or partition.state.leader == NO_LEADER:
            continue
        missing = sorted(set(partition.replicas).difference(partition.state.isr))
        if missing:
            down = [broker for broker in missing if broker not in snapshot.live]
            why = f": {brokers_are(down)} not registered" if down else ""
            yield Found(str(tp), f"{brokers_are(missing)} not in sync{why}")


def _without_coordinator(snapshot: Snapshot) -> Iterator[Found]:
    for tp, partition in snapshot.partitions():
        state = partition.state
        if tp.topic == OFFSETS_TOPIC and state is not None and state.leader not in snapshot.live:
            yield Found(str(tp), "has no live leader to coordinate the groups of this partition")


def _foreign_isr(snapshot: Snapshot) -> Iterator[Found]:
    moving = {} if snapshot.reassignment is None else snapshot.reassignment.targets
    for tp, partition in snapshot.partitions():
        if partition.state is None or tp in moving:
            continue
        foreign = [r for r in partition.state.isr if r not in partition.replicas]
        if foreign:
            yield Found(
                str(tp), f"broker {', '.join(map(str, foreign))} is in the ISR and not assigned"
            )


def _no_replicas(snapshot: Snapshot) -> Iterator[Found]:
    for tp, partition in snapshot.partitions():
        if not partition.replicas:
            yield Found(str(tp), "has no replicas assigned")


def _gaps(snapshot: Snapshot) -> Iterator[Found]:
    for topic, facts in snapshot.topics.items():
        missing = set(range(max(facts.partitions, default=-1) + 1)) - set(facts.partitions)
        if missing:
            names = ", ".join(map(str, sorted(missing)[:5]))
            yield Found(f"topic {topic}", f"has no partition {names}, though higher ones")


def _leaders_skewed(snapshot: Snapshot) -> Iterator[Found]:
    preferred: Counter[int] = Counter()
    elsewhere: Counter[int] = Counter()
    for _, partition in snapshot.partitions():
        state = partition.state
        if state is None or not partition.replicas:
            continue
        first = partition.replicas[0]
        preferred[first] += 1
        elsewhere[first] += state.leader != first and first in state.isr
    for broker_id, count in sorted(elsewhere.items()):
        if count >= SKEWED_LEADERS_MIN and count > SKEW * preferred[broker_id]:
            yield Found(
                f"broker {broker_id}",
                f"leads {preferred[broker_id] - count} of the {preferred[broker_id]} partitions "
                "that it is the preferred leader of, and is in sync",
            )


def _replicas_skewed(snapshot: Snapshot) -> Iterator[Found]:
    counts = Counter(dict.fromkeys(snapshot.live, 0))
    for _, partition in snapshot.partitions():
        counts.update(r for r in partition.replicas if r in snapshot.live)
    if not counts:
        return
    mean = sum(counts.values()) / len(counts)
    if mean < REPLICAS_PER_BROKER_MIN:
        return
    for broker_id, count in sorted(counts.items()):
        if abs(count - mean) > REPLICA_SKEW * mean:
            yield Found(f"broker {broker_id}", f"has {count} replicas; the mean is {mean:.0f}")


def _transaction_overdue(snapshot: Snapshot) -> Iterator[Found]:
    for one in snapshot.waiting:
        found = one.transaction
        if found is not None and one.is_known and one.is_overdue(snapshot.now_ms):
            yield Found(
                str(one.partition),
                f"its coordinator, broker {found.coordinator}, does not end the transaction of "
                f"{found.transactional_id!r} ({found.record.state.name}), producer "
                f"{one.producer_id}: {_held_back(snapshot, one)}",
            )


def _transaction_hanging(snapshot: Snapshot) -> Iterator[Found]:
    for one in snapshot.waiting:
        if not one.is_known and one.is_overdue(snapshot.now_ms):
            yield Found(
                str(one.partition),
                f"no coordinator has the open transaction of producer {one.producer_id} epoch "
                f"{one.epoch}, and none will end it: {_held_back(snapshot, one)}",
            )


def _held_back(snapshot: Snapshot, one: WaitingPartition) -> str:
    count = counted(one.end - one.offset, "message")
    minutes = counted((snapshot.now_ms - one.since_ms) // 60_000, "minute")
    return f"{count} from offset {one.offset} on wait for {minutes}"


CHECKS: Final = (
    problem("partition-unreadable", "its leader and ISR are unknown to every broker",
            f"kafka08 topic describe {Z}", _unreadable),
    problem("partition-without-state", "it cannot be written or read",
            "restart the broker that is controller", _without_state),
    problem("partition-offline", "it cannot be written or read",
            "start the brokers of its ISR again; if their disks are lost, let another replica "
            "lead, which loses messages: kafka08 topic alter TOPIC --config "
            f"{UNCLEAN_ELECTIONS}=true {Z}", _offline),
    problem("partition-led-by-dead", "it cannot be written or read until a leader is elected",
            "start that broker again, unless another one leads in a minute: "
            f"kafka08 topic describe --unavailable-partitions {Z}", _led_by_dead),
    problem("partition-under-replicated", "one more failure loses messages or the partition",
            "start that broker again if it is down; else its log says why it is behind ('Error in "
            f"fetch'): kafka08 topic describe --under-replicated-partitions {Z}",
            _under_replicated),
    problem("coordinator-none", "these groups cannot join or commit, and no list has them",
            "start that broker again, and give the offsets topic more replicas: "
            f"kafka08 topic describe {OFFSETS_TOPIC} {Z}", _without_coordinator),
    problem("isr-foreign", "a reassignment was aborted and its request is gone",
            f"move it again: kafka08 partition reassign --topic TOPIC --brokers ID,.. {ZOOKEEPER}",
            _foreign_isr),
    problem("partition-without-replicas", "it cannot have a leader",
            "kafka08 partition reassign --help", _no_replicas),
    problem("partition-gap", "producers count partitions and send to one that does not exist",
            f"kafka08 topic describe {Z}", _gaps),
    problem("leaders-skewed", "other brokers carry this one's load",
            f"kafka08 partition elect {ZOOKEEPER}", _leaders_skewed),
    problem("transaction-overdue", "readers of committed messages get no further",
            f"kafka08 transaction hanging {Z}", _transaction_overdue),
    problem("transaction-hanging", "readers of committed messages get no further",
            f"kafka08 transaction abort --partition TOPIC-NUMBER {Z}", _transaction_hanging),
    note("replicas-skewed", "disks and network of some brokers fill before those of others",
         "kafka08 partition reassign --help", _replicas_skewed),
)  # fmt: skip
