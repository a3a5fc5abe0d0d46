"""Moves of partitions: the files of the JVM's tools, and the status of a move.

    {"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,2]}]}    a plan of moves
    {"version":1,"partitions":[{"topic":"t","partition":0}]}                     preferred elections
    {"version":1,"topics":[{"topic":"t"}]}                                       topics to plan for

Pure. Refused input raises AdminError. Source: kafka.admin.ReassignPartitionsCommand and
PreferredReplicaLeaderElectionCommand 0.8.2.2.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Container, Hashable, Iterable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Final

from kafka08.assignment import NO_RACKS, Racks, assign_replicas
from kafka08.config import INT_MAX
from kafka08.errors import AdminError, NoSuchTopicOrPartition, ZooKeeperError
from kafka08.structs import TopicPartition
from kafka08.topic_name import fault_of
from kafka08.zk import nodes

if TYPE_CHECKING:
    from random import Random

PLAN_FORM: Final = '{"partitions":[{"topic":"pages","partition":0,"replicas":[1,2]}]}'
PROPOSED: Final = "Proposed partition reassignment configuration"
"""The line of the JVM's tool before the plan that it made."""
ELECTIONS_FORM: Final = '{"partitions":[{"topic":"pages","partition":0}]}'
TOPICS_FORM: Final = '{"topics":[{"topic":"pages"}]}'

Moves = Mapping[TopicPartition, tuple[int, ...]]
"""Partition → its new replicas, the preferred one first."""


class MoveStatus(Enum):
    """The status of one partition's move; the value is the JVM tool's wording."""

    IN_PROGRESS = "is still in progress"
    """It is still in /admin/reassign_partitions."""

    COMPLETED = "completed successfully"
    """The partition has the planned replicas."""

    FAILED = "failed"
    """It has other replicas: the move was refused, or another one followed."""


def parse_moves(text: str) -> Moves:
    """The plan in a file, or in what `partition reassign` printed: the proposed assignment.
    AdminError for an empty one, for a partition that occurs twice, and where check_moves raises
    it."""
    text = _proposed(text)
    try:
        moves = nodes.decode_reassignment(text)
        partitions = nodes.decode_preferred_election(text)
    except ZooKeeperError as error:
        raise AdminError(
            f"this is not a plan of partition moves: {error}; the form is {PLAN_FORM}"
        ) from error
    if not moves:
        raise AdminError(f"Partition reassignment data file is empty; the form is {PLAN_FORM}")
    _check_distinct(partitions, "Partition reassignment contains duplicate topic partitions: ")
    check_moves(moves)
    return moves


def _proposed(text: str) -> str:
    """The proposed assignment in the output of `partition reassign`, with --json or without; any
    other text as it is."""
    _, found, rest = text.partition(PROPOSED)
    if found:
        return rest.strip().partition("\n")[0]
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if isinstance(value, dict) and isinstance(value.get("proposed"), dict):
        return json.dumps(value["proposed"])
    return text


def check_moves(moves: Moves) -> None:
    """AdminError for an illegal move: an illegal topic name, no replicas, an illegal broker id, or
    a replica that occurs twice."""
    for tp, replicas in moves.items():
        if fault := fault_of(tp.topic):
            raise AdminError(fault)
        if not replicas or min(replicas) < 0 or max(replicas) > INT_MAX:
            raise AdminError(
                "Partition replica lists must have at least one broker id, and none below 0: "
                f"{tp} has {list(replicas)}"
            )
        _check_distinct(
            replicas,
            "Partition replica lists may not contain duplicate entries: "
            f"{tp} contains multiple entries for ",
        )


def check_exist(wanted: Iterable[TopicPartition], existing: Container[TopicPartition]) -> None:
    """NoSuchTopicOrPartition, with all of `wanted` that are not among the `existing`."""
    if absent := sorted(tp for tp in wanted if tp not in existing):
        raise NoSuchTopicOrPartition(f"There is no partition {', '.join(map(str, absent))}")


def cancelled(
    requested: Moves,
    current: Moves,
    in_sync: Mapping[TopicPartition, Collection[int]],
    live: Collection[int],
) -> Moves:
    """Where partitions that are being moved (to `requested`) stay instead: at the replicas that the
    move would take away, and for the rest of as many as it requested at those in sync. Which of the
    new replicas they had before, nothing tells."""
    stay: dict[TopicPartition, tuple[int, ...]] = {}
    for tp, new in requested.items():
        leaving = [r for r in current.get(tp, ()) if r not in new and r in live]
        synced = [r for r in new if r in in_sync.get(tp, ()) and r in live]
        if kept := [*leaving, *synced[: max(0, len(new) - len(leaving))]]:
            stay[tp] = tuple(kept)
    return stay


def absent_brokers(moves: Moves, current: Moves, registered: Sequence[int]) -> list[str]:
    """A sentence for each unregistered broker in `moves`: it is down, or does not exist.
    Controllers refuse such moves. A partition that already has its replicas (`current`) is no
    move."""
    wanted: dict[int, list[TopicPartition]] = {}
    for tp, replicas in sorted(moves.items()):
        if replicas != current.get(tp):
            for broker_id in set(replicas).difference(registered):
                wanted.setdefault(broker_id, []).append(tp)
    live = ", ".join(map(str, registered)) or "none"
    return [
        f"broker {broker_id} of {tps[0]}{f' and {len(tps) - 1} more' if tps[1:] else ''} is not "
        f"registered; registered are {live}"
        for broker_id, tps in sorted(wanted.items())
    ]


def format_moves(moves: Moves) -> str:
    """The plan as one line of a file, sorted."""
    return nodes.encode_reassignment(dict(sorted(moves.items())))


def parse_elections(text: str) -> list[TopicPartition]:
    """The partitions in a file of preferred elections; AdminError for one that occurs twice."""
    try:
        partitions = nodes.decode_preferred_election(text)
    except ZooKeeperError as error:
        raise AdminError(
            f"this is not a list of partitions: {error}; the form is {ELECTIONS_FORM}"
        ) from error
    if not partitions:
        raise AdminError(f"Preferred replica election data is empty; the form is {ELECTIONS_FORM}")
    _check_distinct(partitions, "Preferred replica election data contains duplicate partitions: ")
    return list(partitions)


def parse_topics(text: str) -> list[str]:
    """The topics in a file of topics to plan for; AdminError for one that occurs twice, and for an
    illegal name."""
    try:
        topics = [str(entry["topic"]) for entry in json.loads(text)["topics"]]
    except (ValueError, RecursionError) as error:
        raise AdminError(f"this is not JSON: {error}; the form is {TOPICS_FORM}") from error
    except (KeyError, TypeError) as error:
        raise AdminError(f"this is not a list of topics; the form is {TOPICS_FORM}") from error
    _check_distinct(topics, "List of topics to reassign contains duplicate entries: ")
    for topic in topics:
        if fault := fault_of(topic):
            raise AdminError(fault)
    return topics


def plan_moves(
    current: Mapping[str, Mapping[int, Sequence[int]]],
    brokers: Sequence[int],
    rng: Random,
    racks: Racks = NO_RACKS,
) -> Moves:
    """Spread every partition of the topics over `brokers` as if they were new, with as many
    replicas as each topic has."""
    _check_distinct(brokers, "Broker list contains duplicate entries: ")
    moves: dict[TopicPartition, tuple[int, ...]] = {}
    for topic, assignment in current.items():
        if not assignment:
            raise AdminError(f"Topic {topic} has no partitions to move")
        factor = len(assignment[min(assignment)])
        planned = assign_replicas(brokers, len(assignment), factor, racks=racks, rng=rng)
        moves.update({TopicPartition(topic, number): r for number, r in planned.items()})
    return moves


def statuses(
    moves: Moves, under_way: Iterable[TopicPartition], assigned: Moves
) -> dict[TopicPartition, MoveStatus]:
    """The status of each move, given the request in ZooKeeper and the assignments."""
    waiting = frozenset(under_way)

    def status(tp: TopicPartition) -> MoveStatus:
        if tp in waiting:
            return MoveStatus.IN_PROGRESS
        return MoveStatus.COMPLETED if assigned.get(tp) == moves[tp] else MoveStatus.FAILED

    return {tp: status(tp) for tp in sorted(moves)}


def _check_distinct(items: Iterable[Hashable], refusal: str) -> None:
    """AdminError, which ends in the items that occur twice."""
    if repeated := [str(item) for item, count in Counter(items).items() if count > 1]:
        raise AdminError(refusal + ",".join(repeated))
