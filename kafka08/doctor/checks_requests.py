"""Checks of requests to the controller in ZooKeeper, and of remains there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kafka08.doctor.check import ZOOKEEPER, Found, note, problem
from kafka08.doctor.snapshot import Request, Snapshot
from kafka08.zk import paths

MINUTE_MS: Final = 60_000
REASSIGNMENT_MS: Final = 60 * MINUTE_MS
"""A reassignment copies whole partitions, so it may take long."""
ELECTION_MS: Final = 2 * MINUTE_MS
DELETION_MS: Final = 10 * MINUTE_MS
CONFIG_CHANGES_MAX: Final = 1000


def _minutes(snapshot: Snapshot, since_ms: int) -> int:
    return (snapshot.now_ms - since_ms) // MINUTE_MS


def _is_stuck(snapshot: Snapshot, request: Request | None, longest_ms: int) -> bool:
    return request is not None and snapshot.now_ms - request.since_ms > longest_ms


def _unreadable(snapshot: Snapshot) -> Iterator[Found]:
    for path, request in (
        (paths.REASSIGN_PARTITIONS, snapshot.reassignment),
        (paths.PREFERRED_ELECTION, snapshot.election),
    ):
        if request is not None and request.fault:
            yield Found(path, f"cannot be read: {request.fault}")


def _reassignment_stuck(snapshot: Snapshot) -> Iterator[Found]:
    request = snapshot.reassignment
    if request is not None and _is_stuck(snapshot, request, REASSIGNMENT_MS):
        yield Found(
            paths.REASSIGN_PARTITIONS,
            f"has moved {len(request.targets)} partitions for "
            f"{_minutes(snapshot, request.since_ms)} minutes",
        )


def _reassignment_to_dead(snapshot: Snapshot) -> Iterator[Found]:
    if snapshot.reassignment is None:
        return
    for tp, replicas in snapshot.reassignment.targets.items():
        dead = [r for r in replicas if r not in snapshot.live]
        if dead:
            names = ", ".join(map(str, dead))
            yield Found(str(tp), f"is to move to broker {names}, which is not registered")


def _reassignment_of_nothing(snapshot: Snapshot) -> Iterator[Found]:
    if snapshot.reassignment is not None:
        for tp in snapshot.reassignment.targets:
            facts = snapshot.topics.get(tp.topic)
            if facts is None or tp.partition not in facts.partitions:
                yield Found(str(tp), "is to move and does not exist")


def _election_stuck(snapshot: Snapshot) -> Iterator[Found]:
    request = snapshot.election
    if request is not None and _is_stuck(snapshot, request, ELECTION_MS):
        yield Found(
            paths.PREFERRED_ELECTION,
            f"has been pending for {_minutes(snapshot, request.since_ms)} minutes",
        )


def _half_deleted(snapshot: Snapshot) -> Iterator[Found]:
    for topic, since_ms in snapshot.deletions.items():
        if topic in snapshot.topics and snapshot.now_ms - since_ms > DELETION_MS:
            yield Found(
                f"topic {topic}", f"was to be deleted {_minutes(snapshot, since_ms)} minutes ago"
            )


def _deletion_of_nothing(snapshot: Snapshot) -> Iterator[Found]:
    for topic, since_ms in snapshot.deletions.items():
        if topic not in snapshot.topics and snapshot.now_ms - since_ms > DELETION_MS:
            yield Found(paths.delete_topic(topic), "is to be deleted and does not exist")


def _configs_left(snapshot: Snapshot) -> Iterator[Found]:
    for topic in snapshot.leftover_configs:
        yield Found(paths.topic_config(topic), "is the configuration of no topic")


def _config_changes(snapshot: Snapshot) -> Iterator[Found]:
    if snapshot.config_changes > CONFIG_CHANGES_MAX:
        yield Found(paths.CONFIG_CHANGES, f"has {snapshot.config_changes} notifications")


CHECKS: Final = (
    problem("request-unreadable", "the controller ignores it, and accepts no other",
            "delete that znode, and repeat the request", _unreadable),
    problem("reassignment-stuck", "no other reassignment can start, and disks hold both copies",
            "start the brokers that it moves to, or cancel it: "
            f"kafka08 partition reassign --cancel {ZOOKEEPER}", _reassignment_stuck),
    problem("reassignment-to-dead-broker", "the move cannot end until that broker is up",
            "start that broker, or cancel the move: "
            f"kafka08 partition reassign --cancel {ZOOKEEPER}", _reassignment_to_dead),
    problem("reassignment-of-nothing", "the controller of 0.8 may keep the request for ever",
            f"kafka08 partition reassign --cancel {ZOOKEEPER}", _reassignment_of_nothing),
    problem("election-stuck", "no other preferred replica election can be requested",
            "restart the broker that is controller", _election_stuck),
    problem("topic-half-deleted", "delete.topic.enable is false on the controller, or a broker "
            "with a replica is down", "start the brokers that are down; or set "
            "delete.topic.enable=true on all brokers, and restart them", _half_deleted),
    note("deletion-of-nothing", "a topic of that name is deleted as soon as it is created",
         "delete that znode", _deletion_of_nothing),
    note("config-left-behind", "a topic of that name gets it when it is created",
         "delete that znode", _configs_left),
    note("config-changes-pile-up", "brokers read all of them when they start",
         "delete the older ones: brokers have read them", _config_changes),
)  # fmt: skip
