"""ControllerContext: an active controller's view of the cluster, as plain data.

Only the controller's own greenlet uses it. It is filled from ZooKeeper at election, updated by
events, and discarded on resignation. Source: kafka.controller.ControllerContext 0.8.2.2.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Final

from kafka08.broker.controller import partition_state, replica_state
from kafka08.broker.controller.partition_state import PartitionState, PartitionStates
from kafka08.broker.controller.propagation import OF_0_8_2, Propagation
from kafka08.broker.controller.replica_state import (
    PartitionReplica,
    ReplicaState,
    ReplicaStates,
)
from kafka08.broker.controller.state_table import History, StateTable
from kafka08.protocol.update_metadata import LiveBroker
from kafka08.runtime.yielding import InTurns
from kafka08.structs import NO_LEADER, Broker, LeaderAndIsr, TopicPartition

NO_EPOCH: Final = 0
"""Controller epoch of a broker that is not the controller; the first controller's is 1."""


@dataclass(slots=True)
class ControllerContext:
    """The cluster as the controller sees it.

    epoch, epoch_zk_version  this controller's epoch, and the version of /controller_epoch after it
                             was written there
    propagation              when brokers get UpdateMetadata, by level
    brokers                  id → address of every broker in /brokers/ids
    listed                   id → the same with all listeners and the rack, as in UpdateMetadata
    shutting_down            ids of brokers in controlled shutdown; none of them becomes a leader
    topics                   names in /brokers/topics
    assignments              partition → replicas, the preferred one first
    leadership               partition → last known state; absent while the partition is NEW.
                             The znode may be newer, because leaders change the ISR by themselves
    topics_to_delete         topics queued for deletion
    topics_ineligible        those among them whose deletion waits (a replica's broker is dead)
    topics_vanished          those whose znode was gone when their first states were to be written;
                             there may be another one of the name
    awaited_deletions        topic → its replicas in DELETION_STARTED, until their brokers respond
    reassigning              partition → replicas that it is being moved to
    elections, unclean       number of leaders elected in this term, and of unclean elections
    """

    epoch: int = NO_EPOCH
    epoch_zk_version: int = -1
    propagation: Propagation = OF_0_8_2
    brokers: dict[int, Broker] = field(default_factory=dict)
    listed: dict[int, LiveBroker] = field(default_factory=dict)
    shutting_down: set[int] = field(default_factory=set)
    topics: set[str] = field(default_factory=set)
    assignments: dict[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    leadership: dict[TopicPartition, LeaderAndIsr] = field(default_factory=dict)
    topics_to_delete: set[str] = field(default_factory=set)
    topics_ineligible: set[str] = field(default_factory=set)
    topics_vanished: set[str] = field(default_factory=set)
    awaited_deletions: dict[str, set[PartitionReplica]] = field(default_factory=dict)
    reassigning: dict[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    elections: int = 0
    unclean: int = 0
    history: History = field(default_factory=History)
    partition_states: PartitionStates = field(init=False)
    replica_states: ReplicaStates = field(init=False)

    def __post_init__(self) -> None:
        self.partition_states = StateTable(
            partition_state.VALID_PREVIOUS, PartitionState.NONEXISTENT, self.history
        )
        self.replica_states = StateTable(
            replica_state.VALID_PREVIOUS, ReplicaState.NONEXISTENT, self.history
        )

    @property
    def live(self) -> frozenset[int]:
        """Ids of the brokers that may lead: alive and not shutting down."""
        return frozenset(self.brokers.keys() - self.shutting_down)

    def live_brokers(self) -> list[LiveBroker]:
        """Every broker in /brokers/ids, as UpdateMetadata lists it."""
        return [
            # Without decoded listeners a broker is still named, with its address alone.
            self.listed.get(broker_id) or LiveBroker.plaintext(*broker)
            for broker_id, broker in sorted(self.brokers.items())
        ]

    def initialize_states(self, in_turns: InTurns = iter) -> None:
        """Set the initial state of every partition and replica at the start of a term. `in_turns`
        goes through the partitions."""
        live = self.live
        for tp, replicas in in_turns(self.assignments.items()):
            self.partition_states.put(
                tp, partition_state.initial_state(self.leadership.get(tp), live)
            )
            for replica in replicas:
                self.replica_states.put(
                    PartitionReplica(tp.topic, tp.partition, replica),
                    replica_state.initial_state(replica, live),
                )

    def replicas_on(self, brokers: Collection[int]) -> list[PartitionReplica]:
        """Every assigned replica on one of `brokers`, in partition order."""
        return [
            PartitionReplica(*tp, replica)
            for tp, replicas in sorted(self.assignments.items())
            for replica in replicas
            if replica in brokers
        ]

    def replicas_of(self, partitions: Iterable[TopicPartition]) -> list[PartitionReplica]:
        """Every assigned replica of `partitions`."""
        return [PartitionReplica(*tp, r) for tp in partitions for r in self.assignments[tp]]

    def partitions_of(self, topics: Collection[str]) -> list[TopicPartition]:
        """Every partition of `topics`, sorted."""
        return sorted(tp for tp in self.assignments if tp.topic in topics)

    def led_by(self, brokers: Collection[int]) -> list[TopicPartition]:
        """The partitions whose leader is one of `brokers`, sorted."""
        return sorted(tp for tp, state in self.leadership.items() if state.leader in brokers)

    def offline_and_imbalanced(self) -> tuple[int, int]:
        """The numbers of partitions without a live leader, and of those whose leader is not the
        preferred replica. One pass for both: there may be ten thousand, and a broker's loop waits.
        Source: the gauges OfflinePartitionsCount and PreferredReplicaImbalanceCount."""
        live, leadership, deleted = self.brokers, self.leadership, self.topics_to_delete
        offline = imbalanced = 0
        for tp, replicas in self.assignments.items():
            if deleted and tp.topic in deleted:
                continue
            state = leadership.get(tp)
            leader = NO_LEADER if state is None else state.leader
            offline += leader not in live
            imbalanced += bool(replicas) and leader != replicas[0]
        return offline, imbalanced

    def is_queued_for_deletion(self, topic: str) -> bool:
        return topic in self.topics_to_delete

    def forget_topics(self, topics: Collection[str]) -> None:
        """Drop all data of deleted topics, their states too."""
        for tp in self.partitions_of(topics):
            for replica in self.assignments.pop(tp):
                self.replica_states.forget(PartitionReplica(*tp, replica))
            self.leadership.pop(tp, None)
            self.reassigning.pop(tp, None)
            self.partition_states.forget(tp)
        for topic in topics:
            self.awaited_deletions.pop(topic, None)
        self.topics.difference_update(topics)
        self.topics_to_delete.difference_update(topics)
        self.topics_ineligible.difference_update(topics)
        self.topics_vanished.difference_update(topics)

    def __str__(self) -> str:
        return (
            f"epoch {self.epoch}, brokers {sorted(self.brokers)}"
            f" (shutting down {sorted(self.shutting_down)}), {len(self.topics)} topics,"
            f" {len(self.assignments)} partitions"
        )
