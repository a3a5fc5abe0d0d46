"""IsrChanges: writes new ISRs of this broker's partitions to ZooKeeper, conditionally.

A leader decides in the hub (Partition.joins_isr, Partition.out_of_sync_replicas), and one greenlet
writes, up to BURST partitions together. The outcomes:

    written       the new ISR is valid
    BadVersion    the znode is read. If it was written in this leader epoch, this broker wrote it
                  earlier, and its content is valid. If in a later one, the controller has made a
                  decision, and its LeaderAndIsr is in flight; nothing more is written until then.
                  A leader that was replaced stops leading at once: the request may never arrive
    SessionLost   the outcome is unknown; written again until it is one of the above. An unexpected
                  exception is handled alike

Source: Partition.updateIsr and kafka.utils.ReplicationUtils 0.8.2.2.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Final

from kafka08.broker.replica.partition import Partition
from kafka08.errors import BadVersion, NoNode, ZooKeeperError
from kafka08.runtime import BrokerRuntime
from kafka08.runtime.uncaught import uncaught
from kafka08.structs import LeaderAndIsr, TopicPartition
from kafka08.zk.store import ClusterStore

logger = logging.getLogger(__name__)

BURST: Final = 200
"""The most ISRs in one write: encoding them blocks the hub for a few ms."""
RETRY_S: Final = 1.0
"""Pause before a write with unknown outcome is repeated."""

Pending = dict[TopicPartition, tuple[Partition, LeaderAndIsr]]
"""partition → its change that is not in ZooKeeper yet."""


class IsrChanges:
    """The ISR writes of one broker.

    on_raised           called with each partition whose HW rose because its new ISR is valid
    on_conflict         called with each partition whose state the controller has changed, and the
                        state
    on_changed          called with each partition whose new ISR is valid
    shrinks, expansions how many were begun

    None of these calls may switch.
    """

    def __init__(
        self,
        runtime: BrokerRuntime,
        store: ClusterStore,
        on_raised: Callable[[TopicPartition], object],
        on_conflict: Callable[[TopicPartition, LeaderAndIsr], object],
        on_changed: Callable[[TopicPartition], object] | None = None,
    ) -> None:
        self._runtime = runtime
        self._store = store
        self._on_raised = on_raised
        self._on_conflict = on_conflict
        self._on_changed = on_changed
        self._waiting: Pending = {}
        self._unlogged: dict[TopicPartition, tuple[tuple[int, ...], tuple[int, ...]]] = {}
        """Changes, from one ISR to another, without a log line yet: thousands of them begin in one
        turn of the event loop when a broker returns, and the lines would take most of it."""
        self._writing = False
        self.shrinks = self.expansions = 0

    def begin(self, partition: Partition, isr: tuple[int, ...]) -> None:
        """Write `isr` soon. Returns at once; never switches."""
        expands = len(isr) > len(partition.isr)
        self.expansions += expands
        self.shrinks += not expands
        self._unlogged[partition.topic_partition] = partition.isr, isr
        self._waiting[partition.topic_partition] = (partition, partition.begin_isr_change(isr))
        if not self._writing:
            self._writing = True
            self._runtime.spawn(self._run, name="isr-changes")

    def _run(self) -> None:
        """Write until no change is pending, then end."""
        unknown: Pending = {}
        try:
            while self._waiting or unknown:
                if not self._waiting:
                    self._runtime.sleep(RETRY_S)
                    # A change that began meanwhile replaces the one with unknown outcome.
                    self._waiting, unknown = {**unknown, **self._waiting}, {}
                burst = [(tp, self._waiting.pop(tp)) for tp in [*islice(self._waiting, BURST)]]
                self._log(tp for tp, _ in burst)
                # A state that the controller sent while a change waited is valid instead.
                wanted = {tp: item for tp, item in burst if is_wanted(*item)}
                try:
                    unknown |= self._write(wanted)
                except Exception as error:  # noqa: BLE001 - a change must end, or its HW stays
                    text = "Error while writing %d ISRs; writing them again"
                    uncaught(self._runtime, error, logger, text, len(wanted))
                    unknown |= wanted
        finally:
            self._writing = False

    def _log(self, partitions: Iterable[TopicPartition]) -> None:
        for tp in partitions:
            # None: a change that is written again was logged the first time.
            isrs = self._unlogged.pop(tp, None)
            if isrs is not None:
                logger.info(
                    "%s ISR for partition %s from %s to %s",
                    "Expanding" if len(isrs[1]) > len(isrs[0]) else "Shrinking",
                    tp,
                    *(",".join(map(str, isr)) for isr in isrs),
                )

    def _write(self, todo: Pending) -> Pending:
        """Write one burst; returns the changes whose outcome is unknown."""
        unknown: Pending = {}
        conflicts: Pending = {}
        outcomes = self._attempt({tp: change for tp, (_, change) in todo.items()})
        for tp, item in todo.items():
            outcome = outcomes[tp]
            if isinstance(outcome, LeaderAndIsr):
                self._end(*item, outcome)
            elif isinstance(outcome, BadVersion | NoNode):
                conflicts[tp] = item
            else:
                logger.warning(
                    "It is unknown whether the new ISR of %s was written: %s. Writing it again in "
                    "%g s",
                    tp,
                    outcome,
                    RETRY_S,
                )
                unknown[tp] = item
        return {**unknown, **self._resolve(conflicts)}

    def _attempt(
        self, states: dict[TopicPartition, LeaderAndIsr]
    ) -> dict[TopicPartition, LeaderAndIsr | ZooKeeperError]:
        try:
            return self._store.update_leader_and_isr(states)
        except ZooKeeperError as error:
            return dict.fromkeys(states, error)

    def _resolve(self, conflicts: Pending) -> Pending:
        """Read the states after failed conditions; returns the changes that could not be read."""
        if not conflicts:
            return {}
        try:
            found = self._store.leader_and_isr(conflicts)
        except ZooKeeperError as error:
            logger.warning(
                "Cannot read the states of %d partitions whose new ISR met another version in "
                "ZooKeeper: %s. Trying again in %g s",
                len(conflicts),
                error,
                RETRY_S,
            )
            return conflicts
        for tp, (partition, change) in conflicts.items():
            state = found.get(tp)
            if state is not None and is_ours(state, change):
                self._end(partition, change, state)
            else:
                # 0.8: a leader with a stale version waits for the controller's next request.
                logger.info(
                    "Cached zkVersion [%d] not equal to that in zookeeper, skip updating ISR of %s",
                    change.zk_version,
                    tp,
                )
                if state is not None:
                    self._on_conflict(tp, state)
        return {}

    def _end(self, partition: Partition, change: LeaderAndIsr, found: LeaderAndIsr) -> None:
        if self._on_changed is not None:
            self._on_changed(partition.topic_partition)
        if partition.end_isr_change(change, found):
            self._on_raised(partition.topic_partition)


def is_wanted(partition: Partition, change: LeaderAndIsr) -> bool:
    """Whether the controller has sent nothing newer since the change began."""
    return partition.is_leader and partition.isr_change is change


def is_ours(state: LeaderAndIsr, change: LeaderAndIsr) -> bool:
    """Whether the leader that wants `change` wrote a state, in the same epochs."""
    return (state.leader, state.leader_epoch, state.controller_epoch) == (
        change.leader,
        change.leader_epoch,
        change.controller_epoch,
    )


def without(isr: Iterable[int], removed: Iterable[int]) -> tuple[int, ...]:
    """The remaining ISR."""
    return tuple(broker_id for broker_id in isr if broker_id not in removed)
