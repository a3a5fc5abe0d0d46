"""Leadership: the state znodes of partitions, read and written in bulk, always conditionally.

A round reads all states, decides each, and writes all; each write succeeds only if its znode is
still as it was read. Partitions whose write failed are read and decided again in the next round. A
conflict with our own earlier write, whose reply was lost, counts as success. The first round uses
known states instead of reading; a stale one makes its write fail. Every transaction also requires
that /controller_epoch is ours, so a controller that was replaced without noticing writes nothing.
If a state has a controller epoch above ours, while /controller_epoch is ours, no controller wrote
it: that znode was edited by hand, or /controller_epoch was lost. Its partition keeps that state, as
in 0.8.2.2, and does not affect others (there it ends the whole burst). Source:
electLeaderForPartition, removeReplicaFromIsr and kafka.utils.ReplicationUtils 0.8.2.2, which handle
one partition at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final

from kafka08.broker.controller.leader_selectors import ElectionFailed, ElectionNotNeeded
from kafka08.errors import BadVersion, KafkaError, NodeExists, NoNode, ZooKeeperError
from kafka08.runtime.yielding import InTurns
from kafka08.structs import LeaderAndIsr, TopicPartition
from kafka08.zk import paths
from kafka08.zk.errors import OF_ONE_ZNODE
from kafka08.zk.operations import Check
from kafka08.zk.store import ClusterStore

PARTITIONS_PER_BURST: Final = 1000
"""Partitions of one burst of reads or writes. Encoding or decoding as many states takes some 20 ms;
then other greenlets run, since the burst waits for ZooKeeper."""
MAX_ROUNDS: Final = 20
"""A leader changes its ISR every few seconds at most; losing this many races is a failure."""

Decide = Callable[[TopicPartition, LeaderAndIsr], LeaderAndIsr]
"""Computes the next state of a partition; the current one means that nothing is to be written.
Raises ElectionFailed or ElectionNotNeeded to leave the partition as it is."""

Written = Mapping[TopicPartition, LeaderAndIsr | ZooKeeperError]
Write = Callable[[Mapping[TopicPartition, LeaderAndIsr], Check], Written]


class ControllerMoved(KafkaError):
    """Another broker is the controller by now; this one must stop acting."""


@dataclass(slots=True)
class Outcome:
    """The result for each partition: in `states` the state that is in ZooKeeper now, or in
    `failures` the reason why it was left as it is."""

    states: dict[TopicPartition, LeaderAndIsr] = field(default_factory=dict)
    failures: dict[TopicPartition, KafkaError] = field(default_factory=dict)


class Leadership:
    """Reads and writes /brokers/topics/<t>/partitions/<p>/state for one controller.

    epoch_zk_version   the version of /controller_epoch that this controller wrote
    in_turns           how long work goes through partitions: it may yield between them
    """

    def __init__(
        self, store: ClusterStore, epoch_zk_version: int, in_turns: InTurns = iter
    ) -> None:
        self._store = store
        self._in_turns = in_turns
        self._epoch_check = Check(paths.CONTROLLER_EPOCH, epoch_zk_version)

    def read_states(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, LeaderAndIsr]:
        """The existing states; those that cannot be decoded are left out."""
        wanted = list(partitions)
        states: dict[TopicPartition, LeaderAndIsr] = {}
        for first in range(0, len(wanted), PARTITIONS_PER_BURST):
            states |= self._store.leader_and_isr(wanted[first : first + PARTITIONS_PER_BURST])
        return states

    def check_still_controller(
        self, states: Mapping[TopicPartition, LeaderAndIsr], controller_epoch: int
    ) -> None:
        """ControllerMoved if a state that was read has a higher controller epoch because another
        controller has written /controller_epoch since. Switches in that case only."""
        if all(state.controller_epoch <= controller_epoch for state in states.values()):
            return
        node = self._store.zk.get_or_none(paths.CONTROLLER_EPOCH)
        if node is None or node.version != self._epoch_check.version:
            raise ControllerMoved(f"another controller has written {paths.CONTROLLER_EPOCH}")

    def create(self, states: Mapping[TopicPartition, LeaderAndIsr]) -> Outcome:
        """Write the first states of new partitions. An existing one is a failure: another
        controller wrote it, or an earlier attempt of ours whose response was lost. So is a topic
        that is gone (0.8.2.2 makes an empty one of its name), and a znode that another client does
        not let us write."""
        outcome = Outcome()
        for tp, result in self._while_controller(self._store.create_leader_and_isr, states).items():
            if isinstance(result, (NodeExists, NoNode, *OF_ONE_ZNODE)):
                outcome.failures[tp] = result
            elif isinstance(result, ZooKeeperError):
                raise result
            else:
                outcome.states[tp] = result
        return outcome

    def update(
        self,
        partitions: Collection[TopicPartition],
        decide: Decide,
        controller_epoch: int,
        known: Mapping[TopicPartition, LeaderAndIsr],
    ) -> Outcome:
        """Write the state that `decide` returns for each partition; `known` are the last known
        states. ControllerMoved if /controller_epoch was written since ours. A partition whose state
        has a higher controller epoch than `controller_epoch` is a failure."""
        outcome = Outcome()

        def decide_below(tp: TopicPartition, current: LeaderAndIsr) -> LeaderAndIsr:
            check_epoch(tp, current, controller_epoch)
            return decide(tp, current)

        lost = self._update_known(partitions, decide_below, known, outcome.states)
        todo = [tp for tp in partitions if tp not in outcome.states]
        for _ in range(MAX_ROUNDS):
            if not todo:
                return outcome
            current = self.read_states(todo)
            self.check_still_controller(current, controller_epoch)
            # Refused because our own earlier write had arrived, and only its reply was lost.
            done = {tp: current[tp] for tp in lost if is_written(lost[tp], current.get(tp))}
            outcome.states |= done
            undecided = [tp for tp in todo if tp not in done]
            lost = self._write(self._decide(undecided, current, decide_below, outcome), outcome)
            todo = list(lost)
        for tp in todo:
            outcome.failures[tp] = ElectionFailed(
                f"its state znode changed {MAX_ROUNDS} times while it was being written"
            )
        return outcome

    def _update_known(
        self,
        partitions: Collection[TopicPartition],
        decide: Decide,
        known: Mapping[TopicPartition, LeaderAndIsr],
        states: dict[TopicPartition, LeaderAndIsr],
    ) -> dict[TopicPartition, LeaderAndIsr]:
        """The round that does not read; returns what `_write` returns. Only successful writes
        count, and go to `states`: all else is tried again with the state that is read."""
        tried = Outcome()
        decided = self._decide([tp for tp in partitions if tp in known], known, decide, Outcome())
        lost = self._write(decided, tried)
        states |= tried.states
        return lost

    def _decide(
        self,
        partitions: Iterable[TopicPartition],
        current: Mapping[TopicPartition, LeaderAndIsr],
        decide: Decide,
        outcome: Outcome,
    ) -> dict[TopicPartition, LeaderAndIsr]:
        """The states to write; partitions that need no write go to `outcome` at once."""
        decided = {}
        for tp in self._in_turns(partitions):
            if tp not in current:
                outcome.failures[tp] = ElectionFailed("its state znode is missing or unreadable")
                continue
            try:
                wanted = decide(tp, current[tp])
            except (ElectionFailed, ElectionNotNeeded) as reason:
                outcome.failures[tp] = reason
                continue
            if wanted == current[tp]:
                outcome.states[tp] = wanted
            else:
                decided[tp] = wanted
        return decided

    def _write(
        self, decided: Mapping[TopicPartition, LeaderAndIsr], outcome: Outcome
    ) -> dict[TopicPartition, LeaderAndIsr]:
        """Write conditionally; returns the states whose condition failed."""
        lost = {}
        for tp, result in self._while_controller(
            self._store.update_leader_and_isr, decided
        ).items():
            # NoNode too: the next read shows whether it was the topic that went.
            if isinstance(result, BadVersion | NoNode):
                lost[tp] = decided[tp]
            elif isinstance(result, OF_ONE_ZNODE):
                outcome.failures[tp] = result
            elif isinstance(result, ZooKeeperError):
                raise result
            else:
                outcome.states[tp] = result
        return lost

    def _while_controller(
        self, write: Write, states: Mapping[TopicPartition, LeaderAndIsr]
    ) -> Written:
        items = list(states.items())
        written: dict[TopicPartition, LeaderAndIsr | ZooKeeperError] = {}
        for first in range(0, len(items), PARTITIONS_PER_BURST):
            with while_controller():
                burst = dict(items[first : first + PARTITIONS_PER_BURST])
                written |= write(burst, self._epoch_check)
        return written


@contextmanager
def while_controller() -> Iterator[None]:
    """Around writes that are conditional on our /controller_epoch: turns a failed condition into
    ControllerMoved."""
    try:
        yield
    except (BadVersion, NoNode) as error:
        raise ControllerMoved(f"another controller was elected: {error}") from error


def is_written(wanted: LeaderAndIsr, found: LeaderAndIsr | None) -> bool:
    """Whether a state whose write was refused is in ZooKeeper already, because an earlier attempt
    has written it. The epoch excludes another controller. Source: checkLeaderAndIsrZkData."""
    return found is not None and found == replace(wanted, zk_version=found.zk_version)


def check_epoch(tp: TopicPartition, state: LeaderAndIsr, controller_epoch: int) -> None:
    """ElectionFailed for a state with a higher controller epoch. Source: the same check in
    electLeaderForPartition 0.8.2.2."""
    if state.controller_epoch > controller_epoch:
        raise ElectionFailed(
            f"{paths.partition_state(*tp)} has controller_epoch {state.controller_epoch}, above "
            f"{paths.CONTROLLER_EPOCH} ({controller_epoch}). Write a controller_epoch of at most "
            f"{controller_epoch} there; until then the partition keeps its leader and ISR"
        )
