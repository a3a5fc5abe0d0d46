"""The controller's two state tables: every pair of states, and the history in the exception."""

from __future__ import annotations

import itertools
from enum import Enum
from typing import Any

import pytest

from kafka08.broker.controller import partition_state, replica_state
from kafka08.broker.controller.partition_state import PartitionState
from kafka08.broker.controller.replica_state import PartitionReplica, ReplicaState
from kafka08.broker.controller.state_table import (
    HISTORY_LENGTH,
    History,
    IllegalTransition,
    StateTable,
)
from kafka08.structs import LeaderAndIsr, TopicPartition

P, R = PartitionState, ReplicaState

LEGAL_PARTITION_MOVES = {
    (P.NONEXISTENT, P.NEW),
    (P.NEW, P.ONLINE),
    (P.ONLINE, P.ONLINE),
    (P.OFFLINE, P.ONLINE),
    (P.NEW, P.OFFLINE),
    (P.ONLINE, P.OFFLINE),
    (P.OFFLINE, P.OFFLINE),
    (P.OFFLINE, P.NONEXISTENT),
}
"""(from, to) of kafka.controller.PartitionStateMachine, written down independently."""

LEGAL_REPLICA_MOVES = {
    (R.NONEXISTENT, R.NEW),
    *itertools.product((R.NEW, R.ONLINE, R.OFFLINE, R.DELETION_INELIGIBLE), (R.ONLINE, R.OFFLINE)),
    (R.OFFLINE, R.DELETION_STARTED),
    (R.DELETION_STARTED, R.DELETION_SUCCESSFUL),
    (R.DELETION_STARTED, R.DELETION_INELIGIBLE),
    (R.DELETION_SUCCESSFUL, R.NONEXISTENT),
}
"""(from, to) of kafka.controller.ReplicaStateMachine."""

TABLES: list[tuple[dict[Any, Any], Enum, set[tuple[Any, Any]]]] = [
    (partition_state.VALID_PREVIOUS, P.NONEXISTENT, LEGAL_PARTITION_MOVES),
    (replica_state.VALID_PREVIOUS, R.NONEXISTENT, LEGAL_REPLICA_MOVES),
]
PAIRS = [
    (valid_previous, initial, source, target, (source, target) in legal)
    for valid_previous, initial, legal in TABLES
    for source, target in itertools.product(type(initial), repeat=2)
]


def table_in(valid_previous: dict[Any, Any], initial: Enum, state: Enum) -> StateTable[str, Any]:
    table: StateTable[str, Any] = StateTable(valid_previous, initial, History())
    if state is not initial:
        table.put("key", state)
    return table


@pytest.mark.parametrize(
    ("valid_previous", "initial", "source", "target", "legal"),
    PAIRS,
    ids=lambda value: value.name if isinstance(value, Enum) else "",
)
def test_every_pair_of_states(
    valid_previous: dict[Any, Any], initial: Enum, source: Enum, target: Enum, legal: bool
) -> None:
    """A legal transition is made. An illegal one raises and leaves the state."""
    table = table_in(valid_previous, initial, source)
    if legal:
        table.move(["key"], target)
        assert table["key"] is target
    else:
        with pytest.raises(IllegalTransition, match=f"{target.name}; it is in {source.name}"):
            table.move(["key"], target)
        assert table["key"] is source


def test_one_illegal_key_stops_the_whole_move() -> None:
    """`move` is all or nothing: one illegal key stops the whole move."""
    table: StateTable[str, Any] = StateTable(
        partition_state.VALID_PREVIOUS, P.NONEXISTENT, History()
    )
    table.move(["new"], P.NEW)
    with pytest.raises(IllegalTransition):
        table.move(["new", "never named"], P.ONLINE)
    assert table["new"] is P.NEW
    assert "never named" not in table


def test_the_exception_has_the_latest_transitions() -> None:
    """The exception has the latest transitions, up to a limit."""
    history = History()
    for number in range(HISTORY_LENGTH + 10):
        history.add(f"event {number}")
    table: StateTable[str, Any] = StateTable(partition_state.VALID_PREVIOUS, P.NONEXISTENT, history)
    table.move(["a", "b"], P.NEW)
    with pytest.raises(IllegalTransition) as raised:
        table.check("a", P.NEW)
    assert "a, b → NEW" in str(raised.value)
    assert f"event {HISTORY_LENGTH + 9}" in str(raised.value)
    assert len(list(history)) == HISTORY_LENGTH


def test_reaching_the_initial_state_forgets_the_key() -> None:
    """Returning to the initial state removes the key from the table."""
    table = table_in(partition_state.VALID_PREVIOUS, P.NONEXISTENT, P.OFFLINE)
    table.move(["key"], P.NONEXISTENT)
    assert len(table) == 0
    assert table["key"] is P.NONEXISTENT


def test_in_state_filters_and_keeps_order() -> None:
    """Keys have the order in which they were added."""
    table: StateTable[str, Any] = StateTable(
        partition_state.VALID_PREVIOUS, P.NONEXISTENT, History()
    )
    for key, state in (("b", P.NEW), ("a", P.OFFLINE), ("c", P.ONLINE), ("d", P.NEW)):
        table.put(key, state)
    assert table.in_state(P.NEW, P.OFFLINE) == ["b", "a", "d"]
    assert table.in_state(P.NEW, where=lambda key: key > "b") == ["d"]


def test_a_new_controller_finds_partitions_by_their_leader() -> None:
    """A partition without state znode is NEW, one with a live leader ONLINE, one with a dead leader
    or none OFFLINE."""
    led = LeaderAndIsr(1, 0, (1, 2), 0, 1)
    nobody = LeaderAndIsr(-1, 3, (), 4, 1)
    assert partition_state.initial_state(None, {1}) is P.NEW
    assert partition_state.initial_state(led, {1}) is P.ONLINE
    assert partition_state.initial_state(led, {2}) is P.OFFLINE
    assert partition_state.initial_state(nobody, {1}) is P.OFFLINE


def test_a_new_controller_distrusts_replicas_on_dead_brokers() -> None:
    """A replica on a dead broker may have been under deletion when the old controller died."""
    assert replica_state.initial_state(1, {1}) is R.ONLINE
    assert replica_state.initial_state(2, {1}) is R.DELETION_INELIGIBLE


def test_replicas_print_as_in_the_jvm_log() -> None:
    """A replica prints as PartitionAndReplica.toString does."""
    replica = PartitionReplica("t", 0, 2)
    assert str(replica) == "[Topic=t,Partition=0,Replica=2]"
    assert replica.topic_partition == TopicPartition("t", 0)
