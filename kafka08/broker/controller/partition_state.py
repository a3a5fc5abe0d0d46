"""States of a partition in the controller, and which may follow which.

    NONEXISTENT ──► NEW ──► ONLINE ◄──► OFFLINE ──► NONEXISTENT
                     └───────────────────► OFFLINE

Source: kafka.controller.PartitionStateMachine 0.8.2.2.
"""

from __future__ import annotations

from collections.abc import Container
from enum import Enum
from typing import Final, TypeAlias

from kafka08.broker.controller.state_table import StateTable
from kafka08.structs import LeaderAndIsr, TopicPartition


class PartitionState(Enum):
    NEW = "new"
    """It has replicas, but never had a leader: there is no state znode. Leaves for ONLINE as soon
    as one assigned replica is alive."""

    ONLINE = "online"
    """A leader was elected. A move from ONLINE to ONLINE elects another one on purpose."""

    OFFLINE = "offline"
    """Its leader died, or its topic is being deleted. Each broker that joins is a reason to elect
    again."""

    NONEXISTENT = "nonexistent"
    """Never created, or deleted to the end. The controller holds no data about it."""


VALID_PREVIOUS: Final[dict[PartitionState, frozenset[PartitionState]]] = {
    PartitionState.NEW: frozenset({PartitionState.NONEXISTENT}),
    PartitionState.ONLINE: frozenset(
        {PartitionState.NEW, PartitionState.ONLINE, PartitionState.OFFLINE}
    ),
    PartitionState.OFFLINE: frozenset(
        {PartitionState.NEW, PartitionState.ONLINE, PartitionState.OFFLINE}
    ),
    PartitionState.NONEXISTENT: frozenset({PartitionState.OFFLINE}),
}
"""Target → legal sources."""

PartitionStates: TypeAlias = StateTable[TopicPartition, PartitionState]


def initial_state(state: LeaderAndIsr | None, live: Container[int]) -> PartitionState:
    """Where a new controller finds a partition: NEW without a state znode, ONLINE when its leader
    is alive, else OFFLINE."""
    if state is None:
        return PartitionState.NEW
    return PartitionState.ONLINE if state.leader in live else PartitionState.OFFLINE
