"""The states of a replica in the controller, and the legal transitions.

    NONEXISTENT ► NEW ► ONLINE ◄► OFFLINE ► DELETION_STARTED ► DELETION_SUCCESSFUL ► NONEXISTENT
                                     ▲            └─► DELETION_INELIGIBLE
                                     └────────────────────────┘ (or ONLINE, when it is back)

Source: kafka.controller.ReplicaStateMachine 0.8.2.2.
"""

from __future__ import annotations

from collections.abc import Container
from enum import Enum
from typing import Final, NamedTuple, TypeAlias

from kafka08.broker.controller.state_table import StateTable
from kafka08.structs import TopicPartition


class PartitionReplica(NamedTuple):
    """A replica of a partition, on broker `replica`."""

    topic: str
    partition: int
    replica: int

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    def __str__(self) -> str:
        return f"[Topic={self.topic},Partition={self.partition},Replica={self.replica}]"


class ReplicaState(Enum):
    NEW = 1
    """Just assigned; may only become a follower."""

    ONLINE = 2
    """Its broker runs and has it; may be leader or follower."""

    OFFLINE = 3
    """Its broker is dead or shutting down, or it is about to be deleted: out of the ISR."""

    DELETION_STARTED = 4
    """Its broker got the request to delete it with its log."""

    DELETION_SUCCESSFUL = 5
    """Its broker has deleted it."""

    DELETION_INELIGIBLE = 6
    """Its broker could not delete it (it is dead, or returned an error): the deletion waits."""

    NONEXISTENT = 7
    """Never created, or completely deleted."""


VALID_PREVIOUS: Final[dict[ReplicaState, frozenset[ReplicaState]]] = {
    ReplicaState.NEW: frozenset({ReplicaState.NONEXISTENT}),
    **dict.fromkeys(
        (ReplicaState.ONLINE, ReplicaState.OFFLINE),
        frozenset(
            {
                ReplicaState.NEW,
                ReplicaState.ONLINE,
                ReplicaState.OFFLINE,
                ReplicaState.DELETION_INELIGIBLE,
            }
        ),
    ),
    ReplicaState.DELETION_STARTED: frozenset({ReplicaState.OFFLINE}),
    ReplicaState.DELETION_SUCCESSFUL: frozenset({ReplicaState.DELETION_STARTED}),
    ReplicaState.DELETION_INELIGIBLE: frozenset({ReplicaState.DELETION_STARTED}),
    ReplicaState.NONEXISTENT: frozenset({ReplicaState.DELETION_SUCCESSFUL}),
}
"""Target → legal sources."""

ReplicaStates: TypeAlias = StateTable[PartitionReplica, ReplicaState]


def initial_state(replica: int, live: Container[int]) -> ReplicaState:
    """The state at the start of a term. A replica on a dead broker counts as ineligible for
    deletion, because a deletion may have been in progress when the old controller died."""
    return ReplicaState.ONLINE if replica in live else ReplicaState.DELETION_INELIGIBLE
