"""ClusterChanges: what an active controller does about each change of the cluster.

Each method is told what changed (the caller has read ZooKeeper) and brings the context, the state
znodes and the brokers in line. Source: the callbacks of kafka.controller.KafkaController 0.8.2.2
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
from kafka08.structs import LeaderAndIsr, TopicPartition

logger = logging.getLogger(__name__)


class ClusterChanges:
    """The reactions of one active controller, each a short recipe."""

    def __init__(
        self,
        context: ControllerContext,
        changes: StateChanges,
        deletion: TopicDeletion,
    ) -> None:
        self._context = context
        self._changes = changes
        self._deletion = deletion

    def take_over(self) -> None:
        """The context has been read: bring everything that lives online and tell everybody."""
        context = self._context
        context.initialize_states()
        self._changes.replicas_to_online(context.replicas_on(context.live))
        self._changes.elect_where_needed()
        self._changes.replicas_to_offline(self._dead_but_in_sync())
        self.send_metadata()
        self._deletion.resume(sorted(context.topics_to_delete))

    def _dead_but_in_sync(self) -> list[PartitionReplica]:
        """Replicas that died with, or before, the last controller, and still stand in the ISR of a
        leader that lives: acks=-1 would wait for them. 0.8.2.2 leaves them to replica.lag.time."""
        context = self._context
        return [
            PartitionReplica(*tp, replica)
            for tp, state in sorted(context.leadership.items())
            if state.leader in context.live and not context.is_queued_for_deletion(tp.topic)
            for replica in state.isr
            if replica not in context.brokers and replica in context.assignments[tp]
        ]

    def send_metadata(self, brokers: Collection[int] | None = None) -> None:
        """The state of all partitions, to `brokers` (None: all)."""
        batch = self._changes.new_batch()
        batch.add_update_metadata(brokers=brokers)
        self._changes.send(batch)

    def brokers_joined(self, brokers: Collection[int]) -> None:
        """Brokers (in the context already) came up.

        1. They get the metadata of everything; from 0.9 on all brokers do, and so hear of them.
        2. Their replicas go online: they learn what they lead and follow, under current epochs.
        3. Partitions without a leader may get one.
        4. Deletions that waited for them go on.
        """
        context = self._context
        context.history.add(f"brokers {sorted(brokers)} joined")
        self.send_metadata(None if context.telling.always else brokers)
        replicas = context.replicas_on(brokers)
        self._changes.replicas_to_online(replicas)
        self._changes.elect_where_needed()
        self._deletion.resume({replica.topic for replica in replicas})

    def brokers_failed(self, brokers: Collection[int]) -> None:
        """Brokers (gone from the context already) died or left.

        1. Partitions they led are offline.
        2. Every partition without a leader is elected.
        3. Their replicas go offline: out of the ISR.
        4. Deletions that need them wait.
        5. From 0.9 on all brokers hear of it, if no election has told them already.
        """
        context = self._context
        context.history.add(f"brokers {sorted(brokers)} left")
        context.shutting_down.difference_update(brokers)
        leaderless = [
            tp for tp in context.led_by(brokers) if not context.is_queued_for_deletion(tp.topic)
        ]
        self._changes.partitions_to_offline(leaderless)
        self._changes.elect_where_needed()
        replicas = context.replicas_on(brokers)
        self._changes.replicas_to_offline(
            replica for replica in replicas if not context.is_queued_for_deletion(replica.topic)
        )
        self._deletion.failed(replicas)
        if context.telling.always and not leaderless:
            self.send_metadata()

    def topics_created(self, assignments: Mapping[TopicPartition, tuple[int, ...]]) -> None:
        """New topics, or new partitions of known ones: New, then Online."""
        if not assignments:
            return
        context, changes = self._context, self._changes
        context.history.add(f"{len(assignments)} new partitions, {min(assignments)} the first")
        context.add_assignments(assignments)
        partitions = sorted(assignments)
        changes.partitions_to_new(partitions)
        changes.replicas_to_new(context.replicas_of(partitions))
        changes.partitions_to_online(partitions, changes.elect_offline)
        # Replicas on dead brokers go online too, as in 0.8.2.2: the state says that they were
        # given their part, and they are told again when their broker joins.
        changes.replicas_to_online(context.replicas_of(partitions))

    def topics_vanished(self, topics: Collection[str]) -> None:
        """Topic znodes went away by other hands than ours: forget them."""
        self._context.history.add(f"topics {sorted(topics)} vanished")
        self._context.forget_topics(topics)

    def isrs_changed(self, states: Mapping[TopicPartition, LeaderAndIsr]) -> None:
        """Leaders changed the ISRs of these partitions: all brokers hear of it."""
        if states:
            self._context.leadership.update(states)
            batch = self._changes.new_batch()
            batch.add_update_metadata(states)
            self._changes.send(batch)

    def elect_preferred(self, partitions: Iterable[TopicPartition]) -> None:
        """Give partitions back to their preferred replicas, where these are in sync. Those that do
        not exist or are being deleted are logged and left out."""
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
        """Take the leadership of a broker that wants to stop elsewhere. Returns the partitions with
        several replicas that it still leads. BrokerNotAvailable if it is not registered.

        1. It is told to stop following. Told later, it would fetch once more from leaders that have
           heard of 3, and rejoin.
        2. Partitions it leads get another leader out of the ISR.
        3. It leaves the ISR of those it follows.
        Partitions with one replica stay: nobody else has them.
        """
        context = self._context
        if broker_id not in context.brokers:
            raise BrokerNotAvailable(f"Broker id {broker_id} does not exist.")
        context.history.add(f"broker {broker_id} asked for a controlled shutdown")
        context.shutting_down.add(broker_id)
        replicated = [
            tp
            for tp, replicas in sorted(context.assignments.items())
            if broker_id in replicas and len(replicas) > 1 and tp in context.leadership
        ]
        led = [tp for tp in replicated if context.leadership[tp].leader == broker_id]
        followed = [
            PartitionReplica(*tp, broker_id) for tp in sorted(set(replicated).difference(led))
        ]
        batch = self._changes.new_batch()
        for replica in followed:
            batch.add_stop_replica(replica, delete=False)
        self._changes.send(batch)
        self._changes.partitions_to_online(led, self._elect_other_leader)
        self._changes.replicas_to_offline(followed)
        return {tp for tp in replicated if context.leadership[tp].leader == broker_id}

    def _elect_other_leader(self, tp: TopicPartition, current: LeaderAndIsr) -> Election:
        context = self._context
        return elect_controlled_shutdown(
            context.assignments[tp],
            context.brokers.keys(),
            context.shutting_down,
            current,
            controller_epoch=context.epoch,
        )
