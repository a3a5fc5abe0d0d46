"""TopicDeletion: deletes topics, from the request in /admin/delete_topics to the last znode.

A topic in `context.topics_to_delete` goes through these steps. Each event that may unblock it calls
`resume`, which checks its progress:

    1. all brokers get UpdateMetadata with LEADER_DURING_DELETE and drop it from their metadata
    2. every replica goes OFFLINE (stops following), then DELETION_STARTED (its log is deleted)
    3. responses make replicas DELETION_SUCCESSFUL, or DELETION_INELIGIBLE on an error
    4. all successful: the znodes of configuration, partitions, topic and request go, the last two
       together; then all data of the topic is dropped

While a replica's broker is dead the topic is ineligible and waits; it starts again when the broker
returns. It also waits for the end of a reassignment in progress. What a broker or ZooKeeper refused
is tried again after RETRY_S; in 0.8.2.2 when a broker starts, or another controller is elected.
Source: kafka.controller.TopicDeletionManager 0.8.2.2.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Final

from kafka08.broker.controller.context import ControllerContext
from kafka08.broker.controller.replica_state import PartitionReplica, ReplicaState
from kafka08.broker.controller.state_changes import StateChanges
from kafka08.errors import NO_ERROR
from kafka08.protocol.stop_replica import StopReplicaResponse
from kafka08.zk.errors import OF_ONE_ZNODE

logger = logging.getLogger(__name__)

RETRY_S: Final = 10.0
"""Time after which a deletion that was refused starts again."""

Awaited = set[PartitionReplica]
"""The replicas of one start of a deletion whose brokers have not responded."""


class TopicDeletion:
    """The deletions of one active controller. Every call comes from its greenlet.

    on_stopped   called with what `replica_stopped` takes, for each response of a broker
    remove       deletes the znodes of a topic that all brokers have deleted; if it raises one of
                 OF_ONE_ZNODE, the topic waits
    on_refused   called when a broker or ZooKeeper has refused to delete a part of a topic: nothing
                 else may call `resume`
    """

    def __init__(
        self,
        context: ControllerContext,
        changes: StateChanges,
        *,
        on_stopped: Callable[[Awaited, PartitionReplica, StopReplicaResponse], object],
        remove: Callable[[str], None],
        on_refused: Callable[[], object],
    ) -> None:
        self._context = context
        self._changes = changes
        self._on_stopped = on_stopped
        self._remove = remove
        self._on_refused = on_refused
        self._refused: set[str] = set()
        """Those of which a broker could not delete a replica, or ZooKeeper the znodes."""

    def enqueue(self, topics: Collection[str]) -> None:
        """Start to delete existing topics."""
        self._context.topics_to_delete.update(topics)
        self.resume(topics)

    def resume(self, topics: Iterable[str]) -> None:
        """Check queued topics again: the event that they waited for may have happened. Also those
        that were refused, for which no event will tell."""
        context = self._context
        again = {*topics, *self._refused}
        self._refused.clear()
        for topic in sorted(context.topics_to_delete & again):
            context.topics_ineligible.discard(topic)
            self._advance(topic)

    def replica_stopped(
        self, awaited: Awaited, replica: PartitionReplica, response: StopReplicaResponse
    ) -> None:
        """A broker responded to step 2 for one replica. Only the last response of a topic looks at
        all its replicas. `awaited`: those of the start whose request it was. After a failure of the
        broker it is late, and the replica may be online again; 0.8.2.2 takes it for deleted."""
        topic = replica.topic
        if replica not in awaited or self._context.awaited_deletions.get(topic) is not awaited:
            return
        errors = {p.error_code for p in response.partitions} | {response.error_code}
        if errors == {NO_ERROR}:
            self._changes.replicas_to_deletion_successful([replica])  # 3
            awaited.discard(replica)
            if not awaited:
                self._advance(topic)
        else:
            logger.error("Broker %d failed to delete %s: %s", replica.replica, replica, response)
            self.failed([replica])
            self._refuse(topic)

    def failed(self, replicas: Iterable[PartitionReplica]) -> None:
        """Replicas cannot be deleted now: their broker is dead or refused. The topic waits."""
        states = self._context.replica_states
        replicas = [r for r in replicas if self._context.is_queued_for_deletion(r.topic)]
        started = [r for r in replicas if states[r] is ReplicaState.DELETION_STARTED]
        for replica in started:
            self._context.awaited_deletions.get(replica.topic, set()).discard(replica)
        self._changes.replicas_to_deletion_ineligible(started)
        self._halt({replica.topic for replica in replicas})

    def _refuse(self, topic: str) -> None:
        if not self._refused:
            self._on_refused()
        self._refused.add(topic)

    def _halt(self, topics: Collection[str]) -> None:
        if topics:
            logger.info("Halted deletion of topics %s", ",".join(sorted(topics)))
            self._context.topics_ineligible.update(topics)

    def _advance(self, topic: str) -> None:
        replicas = self._context.replicas_of(self._context.partitions_of({topic}))
        states = {self._context.replica_states[replica] for replica in replicas}
        # Also true of a topic without replicas, which has nothing to wait for.
        if states <= {ReplicaState.DELETION_SUCCESSFUL}:
            self._complete(topic, replicas)  # 4
        elif ReplicaState.DELETION_STARTED in states:
            logger.info("Deletion of topic %s is in progress", topic)
        elif any(tp.topic == topic for tp in self._context.reassigning):
            logger.info("Deletion of topic %s waits for the reassignment of its partitions", topic)
        elif topic not in self._context.topics_ineligible:
            self._start(topic, replicas)

    def _start(self, topic: str, replicas: list[PartitionReplica]) -> None:
        context, changes = self._context, self._changes
        logger.info("Deletion of topic %s (re)started", topic)
        batch = changes.new_batch()
        batch.add_update_metadata(context.partitions_of({topic}))
        changes.send(batch)  # 1
        live = context.live
        wanted = [
            replica
            for replica in replicas
            if replica.replica in live
            # One that an earlier start has deleted is not deleted twice.
            and context.replica_states[replica] is not ReplicaState.DELETION_SUCCESSFUL
        ]
        changes.replicas_to_offline(wanted)  # 2
        awaited = context.awaited_deletions[topic] = set(wanted)
        changes.replicas_to_deletion_started(wanted, partial(self._on_stopped, awaited))
        if any(replica.replica not in live for replica in replicas):
            self._halt({topic})

    def _complete(self, topic: str, replicas: list[PartitionReplica]) -> None:
        partitions = self._context.partitions_of({topic})
        self._changes.replicas_to_nonexistent(replicas)
        # NONEXISTENT may only follow OFFLINE. They are that already if the removal failed before.
        partitions = [tp for tp in partitions if tp in self._context.partition_states]
        self._changes.partitions_to_offline(partitions)
        self._changes.partitions_to_nonexistent(partitions)
        try:
            self._remove(topic)
        except OF_ONE_ZNODE as error:
            logger.error("The znodes of topic %s cannot be removed: %s", topic, error)
            self._halt({topic})
            self._refuse(topic)
            return
        self._context.forget_topics({topic})
        logger.info("Deletion of topic %s successfully completed", topic)
