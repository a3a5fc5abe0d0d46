"""Reassignments: moves partitions to other replicas, as /admin/reassign_partitions requests.

OAR are the old replicas of a partition (original assigned replicas), RAR the new ones (reassigned).

    1. the request is refused unless RAR is not empty, all in it are alive, it differs from OAR, and
       the topic is not being deleted
    2. while RAR is not in sync: the assignment becomes RAR + OAR, first in ZooKeeper; all of them
       get LeaderAndIsr with the next leader epoch, and the new ones start to fetch
    3. the state znode is watched until the ISR contains RAR
    4. then RAR goes online and is the assignment; if the leader is not in RAR, one of RAR is
       elected, else all get LeaderAndIsr with the next leader epoch
    5. the others stop, leave the ISR, and delete their logs
    6. the assignment in ZooKeeper becomes RAR, the request is removed from its znode, and all
       brokers get the new metadata

A move back to a replica of step 5 waits for its response. Until then it still fetches, and the
leader would take it into the ISR a moment before it deletes its log: 0.8.2.2 may then elect it, and
loses acknowledged messages.

If the controller dies in between, assignment and request remain, so the next one continues. If the
next one must refuse the request, because a broker has died, it first sends the assignment in
ZooKeeper to the replicas, with the next leader epoch: step 2 might not have sent it, or step 4 may
have sent another. Source: onPartitionReassignment of kafka.controller.KafkaController 0.8.2.2.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping

from kafka08.broker.controller.context import ControllerContext
from kafka08.broker.controller.leader_selectors import Election, elect_reassigned
from kafka08.broker.controller.replica_state import PartitionReplica
from kafka08.broker.controller.request_batch import StopReplicaCallback
from kafka08.broker.controller.request_znodes import RequestZnodes
from kafka08.broker.controller.state_changes import StateChanges
from kafka08.broker.controller.topic_deletion import TopicDeletion
from kafka08.listing import some_of
from kafka08.runtime.yielding import InTurns
from kafka08.structs import NO_LEADER, LeaderAndIsr, TopicPartition

logger = logging.getLogger(__name__)


class Reassignments:
    """The moves of one active controller; those in progress are in `context.reassigning`.

    on_stopped   gets the response to each StopReplica of step 5, and has `stopped` called
    in_turns     how long work goes through partitions: it may yield between them
    """

    def __init__(
        self,
        context: ControllerContext,
        changes: StateChanges,
        deletion: TopicDeletion,
        znodes: RequestZnodes,
        on_stopped: StopReplicaCallback,
        *,
        in_turns: InTurns = iter,
    ) -> None:
        self._context = context
        self._changes = changes
        self._deletion = deletion
        self._znodes = znodes
        self._on_stopped = on_stopped
        self._in_turns = in_turns
        self._stopping: set[PartitionReplica] = set()
        """Replicas of step 5 whose broker has not responded yet."""

    def begin(self, wanted: Mapping[TopicPartition, tuple[int, ...]]) -> None:
        """Start new moves; refused ones are logged and removed from the znode."""
        context = self._context
        started, refused, doubtful = [], [], []
        for tp, replicas in self._in_turns(sorted(wanted.items())):
            # 0.8: a move in progress goes on, whatever the request names by now.
            if tp in context.reassigning:
                continue
            refusal = self._refusal(tp, replicas)
            if refusal is None:
                logger.info(
                    "Handling reassignment of partition %s to new replicas %s", tp, replicas
                )
                context.reassigning[tp] = replicas
                started.append(tp)
            else:
                logger.error(
                    "Reassignment of %s to [%s] is refused: %s", tp, some_of(replicas), refusal
                )
                refused.append(tp)
                if self._may_know_another(tp, replicas):
                    doubtful.append(tp)
        if doubtful:
            self._changes.resend_with_next_epoch({tp: context.assignments[tp] for tp in doubtful})
        if refused:
            self._znodes.remove_reassignments(refused)
        if started:
            context.history.add(f"reassignment of {len(started)} partitions, {started[0]} first")
        self._advance(started, widen=True)

    def isr_changed(self, partitions: Iterable[TopicPartition]) -> None:
        """State znodes were written: check whether these partitions can finish."""
        moving = self._context.reassigning
        self._advance([tp for tp in sorted(partitions) if tp in moving], widen=False)

    def brokers_joined(self, brokers: Collection[int]) -> None:
        """Retry moves to these brokers."""
        self._advance(
            [
                tp
                for tp, replicas in sorted(self._context.reassigning.items())
                if not set(brokers).isdisjoint(replicas)
            ],
            widen=True,
        )

    def brokers_failed(self, brokers: Collection[int]) -> None:
        """These brokers will not respond."""
        self._stopping = {replica for replica in self._stopping if replica.replica not in brokers}

    def topics_vanished(self, topics: Collection[str]) -> None:
        """Topic znodes were deleted by another program: their moves leave the request too, or tools
        would refuse the next one until another controller reads it. 0.8.2.2 leaves them."""
        moving = self._context.reassigning
        gone = sorted(tp for tp in moving if tp.topic in topics)
        for tp in gone:
            logger.error("Reassignment of %s ends: its topic is gone", tp)
            del moving[tp]
        if gone:
            self._znodes.remove_reassignments(gone)

    def stopped(self, replicas: Collection[PartitionReplica]) -> None:
        """Brokers have responded for replicas of step 5: moves back to them may go on, all of them
        together."""
        self._stopping.difference_update(replicas)
        moving = self._context.reassigning
        back = {
            replica.topic_partition
            for replica in replicas
            if replica.replica in moving.get(replica.topic_partition, ())
        }
        self._advance(sorted(back), widen=True)

    def _refusal(self, tp: TopicPartition, replicas: tuple[int, ...]) -> str | None:
        """Why the partition cannot be moved; None if it can."""
        context = self._context
        if context.is_queued_for_deletion(tp.topic):
            return "its topic is being deleted"
        if tp not in context.leadership:
            return "there is no such partition, or it never had a leader"
        if context.assignments[tp] == replicas:
            return "it has this assignment already"
        if not replicas or len(set(replicas)) < len(replicas):
            return "the list of replicas is empty or has duplicates"
        dead = [broker_id for broker_id in replicas if broker_id not in context.live]
        return f"brokers [{some_of(dead)}] are not alive" if dead else None

    def _may_know_another(self, tp: TopicPartition, replicas: tuple[int, ...]) -> bool:
        """Whether the leader, alive or not, may know another assignment than the one in ZooKeeper:
        an earlier controller wrote that of step 2 and did not send it, or sent that of step 5 and
        did not write it. The leader would refuse replicas for good, since it ignores an assignment
        under an epoch that it knows. 0.8.2.2 leaves them out of the ISR until the next election."""
        context = self._context
        state = context.leadership.get(tp)
        if state is None or state.leader == NO_LEADER or context.is_queued_for_deletion(tp.topic):
            return False
        assignment = context.assignments[tp]
        wanted = set(replicas)
        is_begun = 0 < len(wanted) == len(replicas) and wanted <= set(assignment)
        return is_begun and (replicas != assignment or not wanted <= set(state.isr))

    def _advance(self, partitions: Collection[TopicPartition], *, widen: bool) -> None:
        """Take each step for all partitions together: a request may move thousands, and other
        events of the cluster wait until this is done."""
        moving = self._context.reassigning
        partitions = [tp for tp in partitions if not self._waits(tp, moving[tp])]
        if not partitions:
            return
        # Step 3: read and watched in one, so no change of an ISR is missed.
        states = self._znodes.watch_states(partitions)
        self._context.leadership.update(states)
        in_sync = [tp for tp, state in states.items() if set(moving[tp]) <= set(state.isr)]
        if widen:
            self._widen(sorted(states.keys() - set(in_sync)))
        finished = self._finish(in_sync)
        if finished:
            self._complete(finished)

    def _waits(self, tp: TopicPartition, new: Iterable[int]) -> bool:
        """Whether one of the new replicas still has to stop after an earlier move."""
        stopping = [r for r in new if PartitionReplica(*tp, r) in self._stopping]
        if stopping:
            logger.info("Reassignment of %s waits until brokers %s deleted it", tp, stopping)
        return bool(stopping)

    def _widen(self, partitions: Collection[TopicPartition]) -> None:
        """Step 2."""
        context = self._context
        added = []
        for tp in self._in_turns(partitions):
            old, new = context.assignments[tp], context.reassigning[tp]
            logger.info(
                "New replicas %s of %s are not yet caught up with the leader", list(new), tp
            )
            context.assignments[tp] = (*new, *(r for r in old if r not in new))
            added += [PartitionReplica(tp.topic, tp.partition, r) for r in new if r not in old]
        widened = {tp: context.assignments[tp] for tp in partitions}
        # ZooKeeper first: the next controller must know every replica that may have been started.
        self._znodes.write_assignments(widened)
        self._changes.resend_with_next_epoch(widened)
        self._changes.replicas_to_new(added)

    def _finish(self, partitions: Collection[TopicPartition]) -> list[TopicPartition]:
        """Steps 4 and 5. Partitions without a new replica that can lead are left out, and tried
        again when one of their brokers joins."""
        context, changes = self._context, self._changes
        new = {tp: context.reassigning[tp] for tp in partitions}
        changes.replicas_to_online(
            PartitionReplica(*tp, replica) for tp in partitions for replica in new[tp]
        )
        old = {tp: context.assignments[tp] for tp in partitions}
        context.assignments.update(new)
        leaders = {tp: context.leadership[tp].leader for tp in partitions}
        led = [tp for tp in partitions if leaders[tp] in context.live.intersection(new[tp])]
        # To `old`, which is RAR + OAR since step 2: the replicas that go hear of the epoch too.
        changes.resend_with_next_epoch({tp: old[tp] for tp in led})
        failed = changes.partitions_to_online(sorted(new.keys() - set(led)), self._elect)
        # No leader in RAR: the assignment of step 2 still holds.
        context.assignments.update({tp: old[tp] for tp in failed})
        finished = [tp for tp in partitions if tp not in failed]
        gone = [
            PartitionReplica(*tp, replica)
            for tp in finished
            for replica in old[tp]
            if replica not in new[tp]
        ]
        changes.replicas_to_offline(gone)
        # A dead broker gets no request, so no response is to be waited for.
        self._stopping.update(r for r in gone if r.replica in context.brokers)
        changes.replicas_to_deletion_started(gone, self._on_stopped)
        # 0.8: step 6 does not wait for the deletion; only a move back does.
        changes.replicas_to_deletion_successful(gone)
        changes.replicas_to_nonexistent(gone)
        return finished

    def _elect(self, tp: TopicPartition, current: LeaderAndIsr) -> Election:
        context = self._context
        return elect_reassigned(
            context.reassigning[tp], context.live, current, controller_epoch=context.epoch
        )

    def _complete(self, finished: Collection[TopicPartition]) -> None:
        """Step 6."""
        context = self._context
        self._znodes.write_assignments({tp: context.assignments[tp] for tp in finished})
        for tp in self._in_turns(finished):
            del context.reassigning[tp]
            logger.info("Reassignment of partition %s to %s is done", tp, context.assignments[tp])
        self._znodes.remove_reassignments(finished)
        batch = self._changes.new_batch()
        batch.add_update_metadata(finished)
        self._changes.send(batch)
        self._deletion.resume({tp.topic for tp in finished})
