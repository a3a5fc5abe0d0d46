"""The states of a partition in the controller, and the legal transitions.

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
    """It has replicas, but never had a leader: there is no state znode. It goes ONLINE as soon as
    one assigned replica is alive."""

    ONLINE = "online"
    """It has a leader. A transition from ONLINE to ONLINE elects another one on purpose."""

    OFFLINE = "offline"
    """Its leader died, or its topic is being deleted. The controller elects again whenever a broker
    joins."""

    NONEXISTENT = "nonexistent"
    """Never created, or completely deleted. The controller has no data about it."""


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
    """The state at the start of a term: NEW without a state znode, ONLINE if its leader is alive,
    else OFFLINE."""
    if state is None:
        return PartitionState.NEW
    return PartitionState.ONLINE if state.leader in live else PartitionState.OFFLINE
