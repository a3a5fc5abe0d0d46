"""Planted defects of the controller and of ZooKeeper sessions."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import pytest

from kafka08.broker.cluster.registration import RegistrationKeeper
from kafka08.broker.controller.cluster_changes import ClusterChanges
from kafka08.broker.controller.leader_selectors import Election
from kafka08.broker.controller.leadership import Leadership, while_controller
from kafka08.broker.controller.reassignment import Reassignments
from kafka08.broker.controller.request_znodes import RequestZnodes
from kafka08.broker.controller.state_changes import StateChanges
from kafka08.broker.controller.unclean_elections import TopicUncleanElections
from kafka08.broker.process.server import KafkaServer
from kafka08.broker.replication.replica_manager import ReplicaManager
from kafka08.profile import CLASSIC
from kafka08.simulation.plan import KILLED, Fault
from kafka08.structs import LeaderAndIsr, TopicPartition
from kafka08.zk import paths
from kafka08.zk.election import ControllerElection
from kafka08.zk.model.session import ModelSession
from tests.simulation.planted.defect import LONG, MOVES, PLAIN, movable, planted, replicated


@planted(
    "a replica that is not in sync may lead",
    "KAFKA-1028",
    "had HW",
    (Fault.KILL,),
    seed=3,
    settings=LONG,
    needs=replicated,
)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TopicUncleanElections, "allowed", lambda *_: True)


@planted(
    "a former controller continues to elect",
    "KAFKA-1096",
    "elected",
    (Fault.EXPIRE, Fault.SUSPEND),
    seed=1,
)
def _(patch: pytest.MonkeyPatch) -> None:
    update = Leadership._while_controller

    def always(self: Leadership, write: Any, states: Any) -> Any:
        return write(states) if states else update(self, write, states)

    patch.setattr(Leadership, "_while_controller", always)


@planted(
    "brokers obey a former controller",
    "KAFKA-1188",
    "obeys controller",
    (Fault.LATE, Fault.KILL),
    seed=27,
    settings=PLAIN,
    needs=lambda plan: plan.brokers > 1,
)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ReplicaManager, "_is_stale", lambda *_: False)


@planted(
    "a broker that loses the election of a controller sets no watch",
    "KAFKA-1451",
    "no controller",
    (Fault.KILL,),
    seed=0,
    needs=lambda plan: plan.brokers > 1,
)
def _(patch: pytest.MonkeyPatch) -> None:
    def refresh(self: ControllerElection) -> bool:
        if self._elected and self.holds_znode():
            return True
        self._has_resigned(None)
        return self._try() and self._become_controller()

    patch.setattr(ControllerElection, "refresh", refresh)


@planted(
    "the ISR keeps a leader's dead followers",
    "ours",
    "the ISR is not among",
    (Fault.MOVE, Fault.KILL),
    seed=1,
)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StateChanges, "replicas_to_offline", lambda *_: None)
    patch.setattr(ReplicaManager, "shrink_isrs", lambda *_: None)


@planted(
    "a widened assignment that a refused move left is not sent",
    "ours",
    "in sync",
    (Fault.INTERRUPT,),
    seed=35,
    settings=MOVES,
    profile=CLASSIC,
    needs=movable,
)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Reassignments, "_may_know_another", lambda *_: False)


@planted(
    "new replicas of a move are not told",
    "reassignment",
    "to be moved",
    (Fault.MOVE,),
    seed=0,
)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StateChanges, "resend_with_next_epoch", lambda *_: None)


@planted(
    "a move's request is removed before its assignment is written",
    "reassignment",
    "removed the request to move",
    (Fault.MOVE,),
    seed=0,
    needs=movable,
)
def _(patch: pytest.MonkeyPatch) -> None:
    complete = Reassignments._complete

    def removed_first(self: Reassignments, finished: Collection[TopicPartition]) -> None:
        self._znodes.remove_reassignments(finished)
        complete(self, finished)

    patch.setattr(Reassignments, "_complete", removed_first)


@planted(
    "a leader outside of the ISR is elected",
    "elections",
    "not in the ISR",
    (Fault.KILL,),
    seed=10,
    needs=replicated,
)
def _(patch: pytest.MonkeyPatch) -> None:
    def elect(self: StateChanges, tp: Any, current: LeaderAndIsr) -> Election:
        context = self._context
        leader = min(set(context.assignments[tp]) & context.live)
        state = replace(
            current,
            leader=leader,
            leader_epoch=current.leader_epoch + 1,
            controller_epoch=context.epoch,
        )
        return Election(state, tuple(context.assignments[tp]))

    patch.setattr(StateChanges, "elect_offline", elect)


@planted(
    "a broker whose session ended does not register again",
    "KAFKA-1387",
    "runs, but is not registered",
    (Fault.EXPIRE,),
    seed=0,
)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RegistrationKeeper, "_register_again", lambda _: True)


@planted(
    "watches are lost with a connection",
    "kazoo-style clients",
    "waited",
    (Fault.SESSION,),
    seed=2,
)
def _(patch: pytest.MonkeyPatch) -> None:
    drop = ModelSession._drop_watchers

    def silently(self: ModelSession, *, call: bool = True) -> None:
        drop(self, call=False)

    patch.setattr(ModelSession, "_drop_watchers", silently)


@planted(
    "a request for a deletion outlives its topic",
    "0.8.2.2; ours",
    "has a configuration",
    (Fault.TOPIC, Fault.KILL, Fault.EXPIRE),
    seed=43,
    settings={"faults_seconds": 60.0},
)
def _(patch: pytest.MonkeyPatch) -> None:
    def remove(self: RequestZnodes, topic: str) -> None:
        for path in (paths.topic(topic), paths.topic_config(topic)):
            with while_controller():
                self._zk.delete_recursive(path, self._epoch_check)
        self.remove_deletion(topic)

    patch.setattr(RequestZnodes, "remove_topic", remove)


@planted(
    "leaders are elected only when a broker comes back",
    "controller",
    "to be led by another",
    (),
    seed=0,
    settings={**PLAIN, "replication_factor": 3, "faults_seconds": 1.0, "away": KILLED},
)
def _(patch: pytest.MonkeyPatch) -> None:
    failed = ClusterChanges.brokers_failed

    def without_election(self: ClusterChanges, brokers: Collection[int]) -> None:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(StateChanges, "elect_where_needed", lambda _: None)
            failed(self, brokers)

    patch.setattr(ClusterChanges, "brokers_failed", without_election)


@planted(
    "a clean stop moves no leaders",
    "brokers",
    "is stopped cleanly, and leads",
    (),
    seed=0,
    settings={**PLAIN, "replication_factor": 3, "faults_seconds": 1.0},
)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(KafkaServer, "_controlled_shutdown", lambda _: None)
