"""Moves of partitions: files as the JVM's tools read and write them, and how far a move has come.

    {"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,2]}]}    a plan of moves
    {"version":1,"partitions":[{"topic":"t","partition":0}]}                     preferred elections
    {"version":1,"topics":[{"topic":"t"}]}                                       topics to plan for

Pure. What cannot be done raises AdminError. Source: kafka.admin.ReassignPartitionsCommand and
PreferredReplicaLeaderElectionCommand 0.8.2.2.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Final, TypeVar

from kafka08.assignment import NO_RACKS, Racks, assign_replicas
from kafka08.config import INT_MAX
from kafka08.errors import AdminError, ZooKeeperError
from kafka08.structs import TopicPartition
from kafka08.topic_name import fault_of
from kafka08.zk import nodes

if TYPE_CHECKING:
    from random import Random

T = TypeVar("T", bound=Hashable)

PLAN_FORM: Final = '{"partitions":[{"topic":"pages","partition":0,"replicas":[1,2]}]}'
ELECTIONS_FORM: Final = '{"partitions":[{"topic":"pages","partition":0}]}'
TOPICS_FORM: Final = '{"topics":[{"topic":"pages"}]}'

Moves = Mapping[TopicPartition, tuple[int, ...]]
"""Partition → the replicas that it shall have, the preferred one first."""


class MoveStatus(Enum):
    """How far the move of one partition has come; the value is the JVM tool's word."""

    IN_PROGRESS = "is still in progress"
    """It stands in /admin/reassign_partitions."""

    COMPLETED = "completed successfully"
    """The partition is assigned as planned."""

    FAILED = "failed"
    """It is not: refused, or changed by somebody else since."""


def parse_moves(text: str) -> Moves:
    """The plan in a file; AdminError for none, for a partition that stands twice, and for what
    check_moves refuses."""
    try:
        moves = nodes.decode_reassignment(text)
        partitions = nodes.decode_preferred_election(text)
    except ZooKeeperError as error:
        raise AdminError(
            f"this is no plan of partition moves: {error}; one is {PLAN_FORM}"
        ) from error
    if not moves:
        raise AdminError(f"Partition reassignment data file is empty; a plan is {PLAN_FORM}")
    if repeated := _repeated(partitions):
        raise AdminError(
            "Partition reassignment contains duplicate topic partitions: "
            + ",".join(map(str, repeated))
        )
    check_moves(moves)
    return moves


def check_moves(moves: Moves) -> None:
    """AdminError for what no controller can do: a name that no topic has, no replicas, an id that
    no broker has, a replica that stands twice."""
    for tp, replicas in moves.items():
        if fault := fault_of(tp.topic):
            raise AdminError(fault)
        if not replicas or min(replicas) < 0 or max(replicas) > INT_MAX:
            raise AdminError(
                "Partition replica lists must name the brokers that shall have the partition: "
                f"{tp} has {list(replicas)}"
            )
        if repeated_ids := _repeated(replicas):
            raise AdminError(
                "Partition replica lists may not contain duplicate entries: "
                f"{tp} contains multiple entries for {','.join(map(str, repeated_ids))}"
            )


def absent_brokers(moves: Moves, current: Moves, registered: Sequence[int]) -> list[str]:
    """A sentence for each broker that `moves` name and that is not registered: it is down, or there
    is none. Controllers refuse such moves. What is where it shall be (`current`) is no move."""
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
    """The plan as one line of a file; sorted."""
    return nodes.encode_reassignment(dict(sorted(moves.items())))


def parse_elections(text: str) -> list[TopicPartition]:
    """The partitions in a file of preferred elections; AdminError for one that stands twice."""
    try:
        partitions = nodes.decode_preferred_election(text)
    except ZooKeeperError as error:
        raise AdminError(
            f"this is no list of partitions: {error}; one is {ELECTIONS_FORM}"
        ) from error
    if not partitions:
        raise AdminError(f"Preferred replica election data is empty; a list is {ELECTIONS_FORM}")
    if repeated := _repeated(partitions):
        raise AdminError(
            "Preferred replica election data contains duplicate partitions: "
            + ",".join(map(str, repeated))
        )
    return list(partitions)


def parse_topics(text: str) -> list[str]:
    """The topics in a file of topics to plan for; AdminError for one that stands twice, and for a
    name that no topic has."""
    try:
        topics = [str(entry["topic"]) for entry in json.loads(text)["topics"]]
    except ValueError as error:
        raise AdminError(f"this is no JSON: {error}; a list of topics is {TOPICS_FORM}") from error
    except (KeyError, TypeError) as error:
        raise AdminError(f"this is no list of topics; one is {TOPICS_FORM}") from error
    if repeated := _repeated(topics):
        raise AdminError(
            f"List of topics to reassign contains duplicate entries: {','.join(repeated)}"
        )
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
    """Spread every partition of the topics anew over `brokers`, as for new topics, with as many
    replicas as each topic has."""
    if repeated := _repeated(brokers):
        raise AdminError(f"Broker list contains duplicate entries: {','.join(map(str, repeated))}")
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
    """How far each move is, given the request in ZooKeeper and the assignments."""
    waiting = frozenset(under_way)

    def status(tp: TopicPartition) -> MoveStatus:
        if tp in waiting:
            return MoveStatus.IN_PROGRESS
        return MoveStatus.COMPLETED if assigned.get(tp) == moves[tp] else MoveStatus.FAILED

    return {tp: status(tp) for tp in sorted(moves)}


def _repeated(items: Iterable[T]) -> list[T]:
    return [item for item, count in Counter(items).items() if count > 1]
