"""Leader election: one pure function for each reason to elect.

Each takes the assignment, the live brokers and (except for a new partition) the current state, and
returns an Election, or raises ElectionFailed (the partition stays as it is) or ElectionNotNeeded
(nothing to do). The znode version in the result is the one that was read: the write is conditional
on it, and the writer replaces it by the new version.

Source: kafka.controller.PartitionLeaderSelector and its five classes, initializeLeaderAndIsr of
PartitionStateMachine, removeReplicaFromIsr and updateLeaderEpoch of KafkaController 0.8.2.2.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

from kafka08.config import INT_MAX
from kafka08.errors import KafkaError
from kafka08.structs import NO_LEADER, LeaderAndIsr

INITIAL_LEADER_EPOCH: Final = 0
NOT_WRITTEN: Final = -1
"""zk_version of a state that has no znode yet."""


class ElectionFailed(KafkaError):
    """No replica may lead now; the text says why."""


class ElectionNotNeeded(KafkaError):
    """The wanted replica leads already."""


@dataclass(frozen=True, slots=True)
class Election:
    """The outcome: the state to write and the brokers that get LeaderAndIsr.

    unclean   the leader was not in sync: messages may be lost
    """

    state: LeaderAndIsr
    receivers: tuple[int, ...]
    unclean: bool = False


def elect_new(
    assignment: Sequence[int],
    live: Collection[int],
    *,
    controller_epoch: int,
) -> Election:
    """The first leader of a new partition.

    1. Leader is the first live replica in assignment order.
    2. ISR are all live assigned replicas, in that order: the log is still empty.
    3. The live assigned replicas get LeaderAndIsr.
    4. None alive: ElectionFailed, and no state znode is written.
    """
    receivers = _alive(assignment, live)
    if not receivers:
        raise ElectionFailed(
            f"none of the assigned replicas {_ids(assignment)} is alive; live brokers are "
            f"{_ids(sorted(live))}"
        )
    state = LeaderAndIsr(
        receivers[0], INITIAL_LEADER_EPOCH, receivers, NOT_WRITTEN, controller_epoch
    )
    return Election(state, receivers)


def elect_offline(
    assignment: Sequence[int],
    live: Collection[int],
    current: LeaderAndIsr,
    *,
    controller_epoch: int,
    unclean_allowed: bool,
) -> Election:
    """A leader for a partition whose leader died.

    1. If members of the ISR live: the first of them in assignment order leads; the ISR are its
       live members, in the order they had.
    2. Else, if `unclean_allowed`: the first live assigned replica leads, alone in the ISR.
    3. Else ElectionFailed.
    4. The live assigned replicas get LeaderAndIsr.
    """
    receivers = _alive(assignment, live)
    isr = _alive(current.isr, live)
    leader = first_in_sync(assignment, live, current.isr)
    if leader is not None:  # 1
        return Election(_elected(current, leader, isr, controller_epoch), receivers)
    if not unclean_allowed:  # 3
        raise ElectionFailed(
            f"no broker in the ISR {_ids(current.isr)} is alive, live brokers are "
            f"{_ids(sorted(live))}, and unclean leader election is not allowed"
        )
    if not receivers:
        raise ElectionFailed(
            f"no assigned replica of {_ids(assignment)} is alive; live brokers are "
            f"{_ids(sorted(live))}"
        )
    state = _elected(current, receivers[0], receivers[:1], controller_epoch)  # 2
    return Election(state, receivers, unclean=True)


def first_in_sync(
    candidates: Sequence[int], live: Collection[int], isr: Collection[int]
) -> int | None:
    """The first candidate that is alive and in the ISR; None if there is none."""
    return next((r for r in candidates if r in live and r in isr), None)


def elect_reassigned(
    new_replicas: Sequence[int],
    live: Collection[int],
    current: LeaderAndIsr,
    *,
    controller_epoch: int,
) -> Election:
    """A leader among the replicas that a partition is being moved to.

    1. The first of them that lives and is in the ISR leads; the ISR stays.
    2. The new replicas get LeaderAndIsr.
    3. None in sync: ElectionFailed.
    """
    leader = first_in_sync(new_replicas, live, current.isr)
    if leader is None:
        raise ElectionFailed(
            f"none of the reassigned replicas {_ids(new_replicas)} is alive and in the ISR "
            f"{_ids(current.isr)}"
        )
    state = _elected(current, leader, current.isr, controller_epoch)
    return Election(state, tuple(new_replicas))


def elect_preferred(
    assignment: Sequence[int],
    live: Collection[int],
    current: LeaderAndIsr,
    *,
    controller_epoch: int,
) -> Election:
    """Leadership back to the preferred replica, the first of the assignment.

    1. It leads already: ElectionNotNeeded.
    2. It is alive and in the ISR: it leads; the ISR stays; all assigned replicas get LeaderAndIsr.
    3. Else ElectionFailed.
    """
    preferred = assignment[0]
    if current.leader == preferred:  # 1
        raise ElectionNotNeeded(f"preferred replica {preferred} leads already")
    if preferred not in live or preferred not in current.isr:  # 3
        raise ElectionFailed(
            f"preferred replica {preferred} is either not alive or not in the ISR "
            f"{_ids(current.isr)}"
        )
    state = _elected(current, preferred, current.isr, controller_epoch)
    return Election(state, tuple(assignment))


def elect_controlled_shutdown(
    assignment: Sequence[int],
    live_or_shutting_down: Collection[int],
    shutting_down: Collection[int],
    current: LeaderAndIsr,
    *,
    controller_epoch: int,
    in_assignment_order: bool = False,
) -> Election:
    """Another leader for a partition whose leader is shutting down.

    1. Brokers that shut down leave the ISR; the first of the others that is alive leads: the first
       in the ISR, or with `in_assignment_order` (from 0.10.1 on) in the assignment. 0.8.2.2 takes
       the first of the ISR, which may have stopped without leaving it: until it is back the
       partition has no leader, and then its followers still fetch from the old one.
    2. The assigned replicas on live brokers get LeaderAndIsr, also those shutting down: the old
       leader must learn that it no longer leads.
    3. No other live replica in the ISR: ElectionFailed; the partition stays, and the response to
       the broker lists it.
    """
    # 0.8: members that are dead stay in the ISR until their failure is handled.
    isr = tuple(r for r in current.isr if r not in shutting_down)
    candidates = assignment if in_assignment_order else isr
    leader = first_in_sync(candidates, live_or_shutting_down, isr)
    if leader is None:
        raise ElectionFailed(
            f"no other live replica in the ISR {_ids(current.isr)} besides shutting down brokers "
            f"{_ids(sorted(shutting_down))}"
        )
    state = _elected(current, leader, isr, controller_epoch)
    return Election(state, _alive(assignment, live_or_shutting_down))


def without_replica(
    current: LeaderAndIsr, replica: int, *, controller_epoch: int, unclean_allowed: bool
) -> LeaderAndIsr:
    """The state after `replica` went offline; `current` itself when it was not in the ISR.

    1. The replica leaves the ISR; if it led, the partition has no leader.
    2. The last member stays in the ISR unless an unclean election is allowed, so that it can lead
       again after its return.
    3. The leader epoch rises even if only a follower left.
    """
    if replica not in current.isr:
        return current
    leader = NO_LEADER if current.leader == replica else current.leader  # 1
    isr = tuple(r for r in current.isr if r != replica)
    if not isr and not unclean_allowed:  # 2
        isr = current.isr
    return _elected(current, leader, isr, controller_epoch)  # 3


def with_next_epoch(current: LeaderAndIsr, *, controller_epoch: int) -> LeaderAndIsr:
    """The same leader and ISR with the next leader epoch, so that brokers accept a changed
    assignment."""
    return _elected(current, current.leader, current.isr, controller_epoch)


def _elected(
    current: LeaderAndIsr, leader: int, isr: tuple[int, ...], controller_epoch: int
) -> LeaderAndIsr:
    if current.leader_epoch == INT_MAX:
        raise ElectionFailed(
            "the leader epoch is at its maximum; write a lower one into the partition's state "
            "znode and restart the brokers that host it"
        )
    return replace(
        current,
        leader=leader,
        leader_epoch=current.leader_epoch + 1,
        isr=isr,
        controller_epoch=controller_epoch,
    )


def _alive(replicas: Sequence[int], live: Collection[int]) -> tuple[int, ...]:
    return tuple(r for r in replicas if r in live)


def _ids(ids: Sequence[int]) -> str:
    return "[" + ",".join(map(str, ids)) + "]"
