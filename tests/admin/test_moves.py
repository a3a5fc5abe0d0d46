"""Plans of moves: the JVM tool's files in and out, and how far a move has come. Pure."""

from __future__ import annotations

import json
import random

import pytest

from kafka08.admin import MoveStatus
from kafka08.admin.moves import (
    PROPOSED,
    absent_brokers,
    cancelled,
    format_moves,
    parse_elections,
    parse_moves,
    parse_topics,
    plan_moves,
    statuses,
)
from kafka08.errors import AdminError
from kafka08.structs import TopicPartition

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
PLAN = '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[2,1]}]}'

BEFORE = PLAN.replace("2,1", "1,2")


def entries(*entries: dict[str, object]) -> str:
    return json.dumps({"version": 1, "partitions": entries})


def test_a_plan_reads_back_as_it_is_written() -> None:
    """A plan is written in the text of 0.8.2.2, and read with any key order and blanks."""
    assert {T0: (2, 1)} == parse_moves(PLAN)
    assert PLAN == format_moves({T0: (2, 1)})
    loose = '{ "partitions" : [ {"replicas": [2, 1], "partition": 0, "topic": "t"} ] }'
    assert {T0: (2, 1)} == parse_moves(loose)


@pytest.mark.parametrize(
    "printed",
    [
        f"Current partition replica assignment\n\n{BEFORE}\n\n{PROPOSED}\n\n{PLAN}\n\n",
        json.dumps(
            {"current": json.loads(BEFORE), "proposed": json.loads(PLAN), "executed": False}
        ),
    ],
)
def test_what_reassign_printed_is_a_plan(printed: str) -> None:
    """Its text as that of the JVM's tool, and its JSON: the proposed assignment is read. (The text
    was no plan, and the JSON an empty one.)"""
    assert {T0: (2, 1)} == parse_moves(printed)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{\n", r"this is not a plan.*line 2 column 1"),
        (entries(), "is empty"),
        (
            entries(*[{"topic": "t", "partition": 0, "replicas": [1]}] * 2),
            r"duplicate topic partitions: \[t,0\]",
        ),
        (
            entries({"topic": "t", "partition": 0, "replicas": [1, 1]}),
            r"\[t,0\] contains multiple entries for 1",
        ),
        (entries({"topic": "..", "partition": 0, "replicas": [1]}), 'cannot be "." or ".."'),
        (entries({"topic": "t", "partition": 0, "replicas": []}), r"\[t,0\] has \[\]"),
        (entries({"topic": "t", "partition": 0, "replicas": [1, -1]}), r"\[t,0\] has \[1, -1\]"),
    ],
)
def test_a_bad_plan_is_refused(text: str, complaint: str) -> None:
    """The errors have the JVM tool's sentences."""
    with pytest.raises(AdminError, match=complaint):
        parse_moves(text)


def test_elections_and_topics() -> None:
    """The files of elections and topics are parsed; empty and repeated entries are refused."""
    assert [T0] == parse_elections(entries({"topic": "t", "partition": 0}))
    assert ["t", "u"] == parse_topics('{"topics":[{"topic":"t"},{"topic":"u"}],"version":1}')
    for parse, text in (
        (parse_elections, entries()),
        (parse_elections, entries(*[{"topic": "t", "partition": 0}] * 2)),
        (parse_topics, "[]"),
        (parse_topics, '{"topics":[{"topic":"t"},{"topic":"t"}]}'),
        (parse_topics, '{"topics":[{"topic":".."}]}'),
    ):
        with pytest.raises(AdminError):
            parse(text)


def test_a_plan_keeps_each_topics_replication_factor() -> None:
    """Spread over the brokers named, and none else."""
    current: dict[str, dict[int, tuple[int, ...]]] = {"t": {0: (1, 2), 1: (2, 1)}, "u": {0: (1,)}}
    plan = plan_moves(current, [3, 4, 5], random.Random(1))
    assert {T0: 2, T1: 2, TopicPartition("u", 0): 1} == {tp: len(rs) for tp, rs in plan.items()}
    assert {3, 4, 5} >= {replica for replicas in plan.values() for replica in replicas}
    with pytest.raises(AdminError, match="duplicate entries: 3"):
        plan_moves(current, [3, 3], random.Random(1))
    with pytest.raises(AdminError, match="empty has no partitions to move"):
        plan_moves({"empty": {}}, [3], random.Random(1))


@pytest.mark.parametrize(
    ("current", "new", "isr", "live", "stay"),
    [
        ((3, 4, 1, 2), (3, 4), (1, 2), (1, 2, 3, 4), (1, 2)),
        ((3, 2, 1), (3, 2), (1, 2), (1, 2, 3), (1, 2)),
        ((3, 2, 1), (3, 2), (1, 2), (1, 2), (1, 2)),
        ((3, 4, 1, 2), (3, 4), (1, 3), (1, 3, 4), (1, 3)),
        ((3, 1), (3,), (1,), (1, 3), (1,)),
        ((3, 1, 2), (3,), (1, 2), (1, 2, 3), (1, 2)),
        ((3, 1), (3,), (1,), (3,), None),
    ],
)
def test_where_a_cancelled_move_leaves_a_partition(
    current: tuple[int, ...],
    new: tuple[int, ...],
    isr: tuple[int, ...],
    live: tuple[int, ...],
    stay: tuple[int, ...] | None,
) -> None:
    """At the replicas that it was to leave, while they live; the rest of as many as it was to have
    are in sync. A partition without any is left out."""
    found = cancelled({T0: new}, {T0: current}, {T0: isr}, live)
    assert found == ({} if stay is None else {T0: stay})


def test_each_absent_broker_is_reported_once() -> None:
    """The report has the first partition and a count; a partition that does not move needs no
    broker."""
    moves = {T0: (1, 9), T1: (9, 2), TopicPartition("u", 0): (8,)}
    current = {T0: (1,), T1: (2,), TopicPartition("u", 0): (8,)}
    assert ["broker 9 of [t,0] and 1 more is not registered; registered are 1, 2"] == (
        absent_brokers(moves, current, [1, 2])
    )


def test_how_far_a_move_is() -> None:
    """A move is still requested, assigned as planned, or neither."""
    plan = {T0: (1,), T1: (2,), TopicPartition("u", 0): (3,)}
    assigned = {T0: (1,), T1: (2,), TopicPartition("u", 0): (1,)}
    assert [
        MoveStatus.IN_PROGRESS,
        MoveStatus.COMPLETED,
        MoveStatus.FAILED,
    ] == list(statuses(plan, [T0], assigned).values())
