"""StateChanges: executes the transitions of partitions and replicas, with all their effects.

A call handles many at once: it checks the tables for legal transitions, lets `Leadership` read,
decide and write the znodes in bulk, then records the new states and sends one batch of requests. An
illegal transition, or a failed election, is logged with its reason and does not affect the others.
Source: PartitionStateMachine, ReplicaStateMachine 0.8.2.2.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from enum import Enum
from typing import TypeVar

from kafka08.broker.controller.context import ControllerContext
from kafka08.broker.controller.leader_selectors import (
    Election,
    ElectionNotNeeded,
    elect_new,
    elect_offline,
    first_in_sync,
    with_next_epoch,
    without_replica,
)
from kafka08.broker.controller.leadership import Leadership
from kafka08.broker.controller.partition_state import PartitionState
from kafka08.broker.controller.replica_state import PartitionReplica, ReplicaState
from kafka08.broker.controller.request_batch import RequestBatch, StopReplicaCallback
from kafka08.broker.controller.state_table import IllegalTransition, StateTable
from kafka08.broker.controller.unclean_elections import TopicUncleanElections
from kafka08.errors import KafkaError, NoNode
from kafka08.runtime.yielding import InTurns
from kafka08.structs import LeaderAndIsr, TopicPartition

logger = logging.getLogger("state.change.logger")

K = TypeVar("K")
S = TypeVar("S", bound=Enum)

Elect = Callable[[TopicPartition, LeaderAndIsr], Election]
"""One of the leader selectors, with all arguments bound but partition and state."""


class StateChanges:
    """The transitions of one active controller.

    send       sends a finished batch
    in_turns   how long work goes through partitions and replicas: it may yield between them
    """

    def __init__(
        self,
        context: ControllerContext,
        leadership: Leadership,
        unclean: TopicUncleanElections,
        send: Callable[[RequestBatch], None],
        *,
        controller_id: int,
        in_turns: InTurns = iter,
    ) -> None:
        self._context = context
        self._leadership = leadership
        self._unclean = unclean
        self._send = send
        self._controller_id = controller_id
        self._in_turns = in_turns

    def new_batch(self) -> RequestBatch:
        return RequestBatch(self._context, self._controller_id)

    def send(self, batch: RequestBatch) -> None:
        self._send(batch)

    # Partitions

    def partitions_to_new(self, partitions: Iterable[TopicPartition]) -> None:
        self._move(self._context.partition_states, partitions, PartitionState.NEW)

    def partitions_to_offline(self, partitions: Iterable[TopicPartition]) -> None:
        self._move(self._context.partition_states, partitions, PartitionState.OFFLINE)

    def partitions_to_nonexistent(self, partitions: Iterable[TopicPartition]) -> None:
        self._move(self._context.partition_states, partitions, PartitionState.NONEXISTENT)

    def partitions_to_online(
        self, partitions: Iterable[TopicPartition], elect: Elect
    ) -> dict[TopicPartition, KafkaError]:
        """Elect a leader for each partition: a first one if it is NEW, else by `elect`. Returns the
        failures, with reasons."""
        states = self._context.partition_states
        legal = self._legal(states, partitions, PartitionState.ONLINE)
        new = [tp for tp in legal if states[tp] is PartitionState.NEW]
        elected, failures = self._initialize(new)
        # With the NEW ones whose state `_initialize` found: they are OFFLINE now.
        others = [tp for tp in legal if tp not in elected and tp not in failures]
        re_elected, refused = self._elect(others, elect)
        elected |= re_elected
        failures |= refused
        self._announce(elected)
        states.move(elected, PartitionState.ONLINE)
        self._log_failures(failures)
        return failures

    def elect_where_needed(self) -> None:
        """Try to bring every NEW and OFFLINE partition online, except those being deleted."""
        waiting = self._context.partition_states.in_state(
            PartitionState.NEW,
            PartitionState.OFFLINE,
            where=lambda tp: not self._context.is_queued_for_deletion(tp.topic),
        )
        self._unclean.load(self._topics_without_live_isr(waiting))
        self.partitions_to_online(sorted(waiting), self.elect_offline)

    def elect_offline(self, tp: TopicPartition, current: LeaderAndIsr) -> Election:
        """`Elect` for partitions whose leader died. Switches if no replica in sync is alive and the
        topic's overrides were not loaded."""
        context = self._context
        live, assignment = context.live, context.assignments[tp]
        has_in_sync = first_in_sync(assignment, live, current.isr) is not None
        return elect_offline(
            assignment,
            live,
            current,
            controller_epoch=context.epoch,
            unclean_allowed=not has_in_sync and self._unclean.allowed(tp.topic),
        )

    def _initialize(
        self, partitions: Iterable[TopicPartition]
    ) -> tuple[dict[TopicPartition, Election], dict[TopicPartition, KafkaError]]:
        """First elections: (done, failed). Partitions that another controller has initialized
        before are in neither: they are OFFLINE now. One with an unreadable state znode stays
        NEW."""
        context = self._context
        elected: dict[TopicPartition, Election] = {}
        failures: dict[TopicPartition, KafkaError] = {}
        for tp in self._in_turns(partitions):
            try:
                elected[tp] = elect_new(
                    context.assignments[tp],
                    context.live,
                    controller_epoch=context.epoch,
                )
            except KafkaError as reason:
                failures[tp] = reason
        outcome = self._leadership.create({tp: e.state for tp, e in elected.items()})
        context.topics_vanished |= {
            tp.topic for tp, why in outcome.failures.items() if isinstance(why, NoNode)
        }
        adopted = self._adopt(outcome.failures)
        failures |= {tp: why for tp, why in outcome.failures.items() if tp not in adopted}
        return self._written(elected, outcome.states), failures

    def _adopt(self, partitions: Iterable[TopicPartition]) -> Collection[TopicPartition]:
        """Read states that an earlier controller wrote after our first read; returns the readable
        ones. 0.8.2.2 leaves such a partition NEW for ever; here it is OFFLINE until the next
        election."""
        states = self._leadership.read_states(partitions)
        self._leadership.check_still_controller(states, self._context.epoch)
        self._context.leadership.update(states)
        self._context.partition_states.move(states, PartitionState.OFFLINE)
        return states.keys()

    def _elect(
        self, partitions: Collection[TopicPartition], elect: Elect
    ) -> tuple[dict[TopicPartition, Election], dict[TopicPartition, KafkaError]]:
        elections: dict[TopicPartition, Election] = {}

        def decide(tp: TopicPartition, current: LeaderAndIsr) -> LeaderAndIsr:
            elections[tp] = elect(tp, current)
            return elections[tp].state

        outcome = self._leadership.update(
            partitions, decide, self._context.epoch, self._context.leadership
        )
        failures = {
            tp: reason
            for tp, reason in outcome.failures.items()
            if not isinstance(reason, ElectionNotNeeded)
        }
        return self._written(elections, outcome.states), failures

    @staticmethod
    def _written(
        elections: dict[TopicPartition, Election], states: dict[TopicPartition, LeaderAndIsr]
    ) -> dict[TopicPartition, Election]:
        """The elections that were written to ZooKeeper, with their new versions."""
        return {
            tp: Election(states[tp], election.receivers, election.unclean)
            for tp, election in elections.items()
            if tp in states
        }

    def _announce(self, elected: dict[TopicPartition, Election]) -> None:
        batch = self.new_batch()
        for tp, election in self._in_turns(elected.items()):
            self._context.leadership[tp] = election.state
            batch.add_leader_and_isr(election.receivers, tp, self._context.assignments[tp])
            logger.info("%s elected %s", tp, election.state)
            self._context.elections += 1
            if election.unclean:
                self._context.unclean += 1
                logger.warning(
                    "No broker in ISR is alive for %s. Elect leader %d. There's potential data "
                    "loss.",
                    tp,
                    election.state.leader,
                )
        self._send(batch)

    def resend_with_next_epoch(self, receivers: Mapping[TopicPartition, Iterable[int]]) -> None:
        """Send leader, ISR and assignment of each partition to its brokers, unchanged but with the
        next leader epoch: brokers ignore an epoch that they know."""
        context = self._context
        outcome = self._leadership.update(
            receivers.keys(),
            lambda _, current: with_next_epoch(current, controller_epoch=context.epoch),
            context.epoch,
            context.leadership,
        )
        self._log_failures(outcome.failures)
        context.leadership.update(outcome.states)
        batch = self.new_batch()
        for tp in self._in_turns(outcome.states):
            batch.add_leader_and_isr(receivers[tp], tp, context.assignments[tp])
        self._send(batch)

    # Replicas

    def replicas_to_new(self, replicas: Iterable[PartitionReplica]) -> None:
        """Start replicas as followers of the leader, if there is one yet."""
        context, batch = self._context, self.new_batch()
        legal = self._legal(context.replica_states, replicas, ReplicaState.NEW)
        for replica in self._in_turns(legal):
            tp = replica.topic_partition
            if tp in context.leadership:
                batch.add_leader_and_isr([replica.replica], tp, context.assignments[tp])
        context.replica_states.move(legal, ReplicaState.NEW)
        self._send(batch)

    def replicas_to_online(self, replicas: Iterable[PartitionReplica]) -> None:
        """Replicas whose broker runs: send them the current state of their partition, with its
        epochs. A NEW one has it; it is only added to the assignment if it is missing there."""
        context, batch = self._context, self.new_batch()
        legal = self._legal(context.replica_states, replicas, ReplicaState.ONLINE)
        for replica in self._in_turns(legal):
            tp = replica.topic_partition
            if context.replica_states[replica] is ReplicaState.NEW:
                if replica.replica not in context.assignments[tp]:
                    context.assignments[tp] += (replica.replica,)
            elif tp in context.leadership:
                batch.add_leader_and_isr([replica.replica], tp, context.assignments[tp])
        context.replica_states.move(legal, ReplicaState.ONLINE)
        self._send(batch)

    def replicas_to_offline(self, replicas: Iterable[PartitionReplica]) -> None:
        """Replicas that stop: their broker, if it runs, gets StopReplica; they leave the ISR; the
        other replicas of the partition get LeaderAndIsr, unless its topic is being deleted."""
        context, batch = self._context, self.new_batch()
        legal = self._legal(context.replica_states, replicas, ReplicaState.OFFLINE)
        leaving: dict[TopicPartition, list[int]] = {}
        for replica in self._in_turns(legal):
            if replica.replica in context.brokers:
                batch.add_stop_replica(replica, delete=False)
            if replica.topic_partition in context.leadership:
                leaving.setdefault(replica.topic_partition, []).append(replica.replica)
        for tp in self._shrink(leaving):
            if not context.is_queued_for_deletion(tp.topic):
                rest = [r for r in context.assignments[tp] if r not in leaving[tp]]
                batch.add_leader_and_isr(rest, tp, context.assignments[tp])
        context.replica_states.move(legal, ReplicaState.OFFLINE)
        self._send(batch)

    def _shrink(self, leaving: dict[TopicPartition, list[int]]) -> list[TopicPartition]:
        """Take replicas out of the ISR. Returns the partitions whose known state has changed: the
        other ones were sent already (0.8.2.2 sends them again)."""
        context = self._context
        emptied = {
            tp.topic for tp, gone in leaving.items() if set(context.leadership[tp].isr) <= set(gone)
        }
        self._unclean.load(emptied)

        def decide(tp: TopicPartition, current: LeaderAndIsr) -> LeaderAndIsr:
            for replica in leaving[tp]:
                current = without_replica(
                    current,
                    replica,
                    controller_epoch=context.epoch,
                    # Asked for the last member alone: `allowed` may have to read ZooKeeper.
                    unclean_allowed=current.isr == (replica,) and self._unclean.allowed(tp.topic),
                )
            return current

        outcome = self._leadership.update(leaving, decide, context.epoch, context.leadership)
        self._log_failures(outcome.failures)
        changed = [tp for tp, state in outcome.states.items() if context.leadership[tp] != state]
        context.leadership.update(outcome.states)
        return changed

    def replicas_to_deletion_started(
        self, replicas: Iterable[PartitionReplica], on_stopped: StopReplicaCallback | None
    ) -> None:
        """Have brokers delete replicas with their logs; `on_stopped` gets each response."""
        context, batch = self._context, self.new_batch()
        target = ReplicaState.DELETION_STARTED
        for replica in self._in_turns(self._move(context.replica_states, replicas, target)):
            batch.add_stop_replica(replica, delete=True, on_stopped=on_stopped)
        self._send(batch)

    def replicas_to_deletion_successful(self, replicas: Iterable[PartitionReplica]) -> None:
        self._move(self._context.replica_states, replicas, ReplicaState.DELETION_SUCCESSFUL)

    def replicas_to_deletion_ineligible(self, replicas: Iterable[PartitionReplica]) -> None:
        self._move(self._context.replica_states, replicas, ReplicaState.DELETION_INELIGIBLE)

    def replicas_to_nonexistent(self, replicas: Iterable[PartitionReplica]) -> None:
        """Deleted replicas leave the assignment that the controller keeps in memory."""
        context = self._context
        for replica in self._move(context.replica_states, replicas, ReplicaState.NONEXISTENT):
            tp = replica.topic_partition
            context.assignments[tp] = tuple(
                r for r in context.assignments[tp] if r != replica.replica
            )

    # Shared

    def _topics_without_live_isr(self, partitions: Iterable[TopicPartition]) -> set[str]:
        context = self._context
        live = context.live
        return {
            tp.topic
            for tp in partitions
            if tp in context.leadership and live.isdisjoint(context.leadership[tp].isr)
        }

    def _move(self, table: StateTable[K, S], keys: Iterable[K], target: S) -> list[K]:
        """Make the legal transitions; returns their keys."""
        legal = self._legal(table, keys, target)
        table.move(legal, target)
        return legal

    def _legal(self, table: StateTable[K, S], keys: Iterable[K], target: S) -> list[K]:
        """The keys whose transition is legal; the others are logged with the history and stay. The
        table checks again at the transition: `_adopt` may have changed states in between."""
        legal = []
        for key in self._in_turns(keys):
            try:
                table.check(key, target)
            except IllegalTransition as illegal:
                logger.error("%s", illegal)
            else:
                legal.append(key)
        return legal

    def _log_failures(self, failures: dict[TopicPartition, KafkaError]) -> None:
        for tp, reason in self._in_turns(failures.items()):
            logger.error("State change of %s failed: %s", tp, reason)
