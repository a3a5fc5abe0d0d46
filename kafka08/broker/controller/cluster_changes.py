"""ClusterChanges: an active controller's reaction to each change of the cluster.

The caller has read ZooKeeper and passes the change; each method updates the context, the state
znodes and the brokers. Source: the callbacks of kafka.controller.KafkaController 0.8.2.2
(onControllerFailover, onBrokerStartup, onBrokerFailure, onNewTopicCreation, shutdownBroker).
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping

from kafka08.broker.controller.context import ControllerContext
from kafka08.broker.controller.leader_selectors import (
    Election,
    elect_controlled_shutdown,
    elect_preferred,
)
from kafka08.broker.controller.replica_state import PartitionReplica
from kafka08.broker.controller.state_changes import StateChanges
from kafka08.broker.controller.topic_deletion import TopicDeletion
from kafka08.errors import BrokerNotAvailable
from kafka08.runtime.yielding import InTurns
from kafka08.structs import LeaderAndIsr, TopicPartition

logger = logging.getLogger(__name__)


class ClusterChanges:
    """The reactions of one active controller, each a short procedure.

    in_turns              how long work goes through partitions: it may yield between them
    in_assignment_order   see elect_controlled_shutdown
    """

    def __init__(
        self,
        context: ControllerContext,
        changes: StateChanges,
        deletion: TopicDeletion,
        in_turns: InTurns = iter,
        *,
        in_assignment_order: bool = False,
    ) -> None:
        self._context = context
        self._changes = changes
        self._deletion = deletion
        self._in_turns = in_turns
        self._in_assignment_order = in_assignment_order

    def take_over(self) -> None:
        """The context has been read: bring everything on live brokers online and inform them."""
        context = self._context
        if context.propagation.metadata_first:
            self.send_metadata()
        context.initialize_states(self._in_turns)
        self._changes.replicas_to_online(context.replicas_on(context.live))
        self._changes.elect_where_needed()
        # After the elections, whose ISRs have no dead members: only unchanged leaders remain.
        self._changes.replicas_to_offline(self._dead_but_in_sync())
        if not context.propagation.metadata_first:
            self.send_metadata()
        self._deletion.resume(sorted(context.topics_to_delete))

    def _dead_but_in_sync(self) -> list[PartitionReplica]:
        """Replicas that died with, or before, the last controller, and are still in the ISR of a
        live leader: acks=-1 would wait for them. 0.8.2.2 leaves them to replica.lag.time."""
        context = self._context
        return [
            PartitionReplica(*tp, replica)
            for tp, state in sorted(context.leadership.items())
            if state.leader in context.live and not context.is_queued_for_deletion(tp.topic)
            for replica in state.isr
            if replica not in context.brokers and replica in context.assignments[tp]
        ]

    def send_metadata(self, brokers: Collection[int] | None = None) -> None:
        """Send the state of all partitions to `brokers` (None: all)."""
        batch = self._changes.new_batch()
        batch.add_update_metadata(brokers=brokers)
        self._changes.send(batch)

    def brokers_joined(self, brokers: Collection[int]) -> None:
        """Brokers, already in the context, have registered.

        1. They get the metadata of all partitions; from 0.9 on all brokers get it.
        2. Their replicas go online: they learn what they lead and follow, with current epochs.
        3. Partitions without a leader are elected, if possible.
        4. Deletions that waited for these brokers continue.
        """
        context = self._context
        context.history.add(f"brokers {sorted(brokers)} joined")
        self.send_metadata(None if context.propagation.always else brokers)  # 1
        replicas = context.replicas_on(brokers)
        self._changes.replicas_to_online(replicas)  # 2
        self._changes.elect_where_needed()  # 3
        self._deletion.resume({replica.topic for replica in replicas})  # 4

    def brokers_failed(self, brokers: Collection[int]) -> None:
        """Brokers, already removed from the context, died or left.

        1. Partitions they led are offline.
        2. Every partition without a leader is elected.
        3. Their replicas go offline: out of the ISR.
        4. Deletions that need them wait.
        5. From 0.9 on all brokers are informed, unless an election has done so.
        """
        context = self._context
        context.history.add(f"brokers {sorted(brokers)} left")
        context.shutting_down.difference_update(brokers)
        leaderless = [
            tp for tp in context.led_by(brokers) if not context.is_queued_for_deletion(tp.topic)
        ]
        self._changes.partitions_to_offline(leaderless)  # 1
        self._changes.elect_where_needed()  # 2
        replicas = context.replicas_on(brokers)
        self._changes.replicas_to_offline(  # 3
            replica for replica in replicas if not context.is_queued_for_deletion(replica.topic)
        )
        self._deletion.failed(replicas)  # 4
        if context.propagation.always and not leaderless:  # 5
            self.send_metadata()

    def topics_created(self, assignments: Mapping[TopicPartition, tuple[int, ...]]) -> None:
        """New topics, or new partitions of known ones: New, then Online."""
        if not assignments:
            return
        context, changes = self._context, self._changes
        context.history.add(f"{len(assignments)} new partitions, {min(assignments)} the first")
        context.assignments.update(assignments)
        partitions = sorted(assignments)
        changes.partitions_to_new(partitions)
        changes.replicas_to_new(context.replicas_of(partitions))
        changes.partitions_to_online(partitions, changes.elect_offline)
        # Replicas on dead brokers go online too, as in 0.8.2.2: the state only means that they are
        # assigned, and they get their LeaderAndIsr again when their broker joins.
        changes.replicas_to_online(context.replicas_of(partitions))

    def topics_vanished(self, topics: Collection[str]) -> None:
        """Topic znodes were deleted by another program: forget these topics."""
        self._context.history.add(f"topics {sorted(topics)} vanished")
        self._context.forget_topics(topics)

    def isrs_changed(self, states: Mapping[TopicPartition, LeaderAndIsr]) -> None:
        """Leaders changed the ISRs of these partitions: inform all brokers."""
        if states:
            self._context.leadership.update(states)
            batch = self._changes.new_batch()
            batch.add_update_metadata(states)
            self._changes.send(batch)

    def elect_preferred(self, partitions: Iterable[TopicPartition]) -> None:
        """Elect the preferred replicas of partitions where they are in sync. Partitions that do not
        exist or are being deleted are logged and left out."""
        context = self._context
        wanted = []
        for tp in sorted(partitions):
            if tp not in context.leadership or context.is_queued_for_deletion(tp.topic):
                logger.error("Skipping preferred replica election for %s: no such partition", tp)
            else:
                wanted.append(tp)
        if wanted:
            context.history.add(f"preferred election of {len(wanted)}, {wanted[0]} the first")
            self._changes.partitions_to_online(wanted, self._elect_preferred)

    def _elect_preferred(self, tp: TopicPartition, current: LeaderAndIsr) -> Election:
        context = self._context
        return elect_preferred(
            context.assignments[tp], context.live, current, controller_epoch=context.epoch
        )

    def shut_down(self, broker_id: int) -> set[TopicPartition]:
        """Move the leadership of a broker that wants to stop. Returns the partitions with several
        replicas that it still leads. BrokerNotAvailable if it is not registered.

        1. It gets StopReplica for the partitions that it follows. Sent later, it would let the
           broker fetch once more from leaders that have applied 3, and rejoin the ISR.
        2. Partitions it leads get another leader from the ISR.
        3. It leaves the ISR of those it follows.
        Partitions with one replica stay: there is no other one. So do those of topics that are
        being deleted: a replica that led one would make its log again. 0.8.2.2 moves them.
        """
        context = self._context
        if broker_id not in context.brokers:
            raise BrokerNotAvailable(f"Broker id {broker_id} does not exist.")
        context.history.add(f"broker {broker_id} asked for a controlled shutdown")
        context.shutting_down.add(broker_id)
        replicated = [
            tp
            for tp, replicas in sorted(context.assignments.items())
            if broker_id in replicas
            and len(replicas) > 1
            and tp in context.leadership
            and not context.is_queued_for_deletion(tp.topic)
        ]
        led = [tp for tp in replicated if context.leadership[tp].leader == broker_id]
        followed = [
            PartitionReplica(*tp, broker_id) for tp in sorted(set(replicated).difference(led))
        ]
        batch = self._changes.new_batch()
        for replica in followed:
            batch.add_stop_replica(replica, delete=False)
        self._changes.send(batch)  # 1
        self._changes.partitions_to_online(led, self._elect_other_leader)  # 2
        self._changes.replicas_to_offline(followed)  # 3
        return {tp for tp in replicated if context.leadership[tp].leader == broker_id}

    def _elect_other_leader(self, tp: TopicPartition, current: LeaderAndIsr) -> Election:
        context = self._context
        return elect_controlled_shutdown(
            context.assignments[tp],
            context.brokers.keys(),
            context.shutting_down,
            current,
            controller_epoch=context.epoch,
            in_assignment_order=self._in_assignment_order,
        )
