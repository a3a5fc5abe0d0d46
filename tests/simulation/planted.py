"""Defects to plant: each a small patch, what a run must say of it, and a seed that finds it.

    scripts/simulate --planted [name …]    searches seeds 0 to 999 and prints a table

Historic ones name their issue; "ours" are defects of this project that were mended. A patch undoes
the cure, or breaks the rule the way the defect did.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import pytest

from kafka08.broker import replica_fetcher
from kafka08.broker.controller.leader_selectors import Election
from kafka08.broker.controller.leadership import Leadership
from kafka08.broker.controller.reassignment import Reassignments
from kafka08.broker.controller.state_changes import StateChanges
from kafka08.broker.controller.unclean_elections import TopicUncleanElections
from kafka08.broker.coordinator.offset_manager import OffsetManager
from kafka08.broker.handlers import fetch
from kafka08.broker.isr_changes import IsrChanges
from kafka08.broker.partition import Partition
from kafka08.broker.registration import RegistrationKeeper
from kafka08.broker.replica_fetcher import ReplicaFetcher
from kafka08.broker.replica_manager import ReplicaManager
from kafka08.client.cluster import ClusterClient
from kafka08.client.committed import committed_in_kafka
from kafka08.consumer import offset_store
from kafka08.consumer.offset_store import KafkaOffsetStore, ZooKeeperOffsetStore
from kafka08.consumer.ownership import Ownership
from kafka08.consumer.registry import GroupRegistry
from kafka08.consumer.session import SessionGate
from kafka08.errors import NodeExists
from kafka08.log.log import Log
from kafka08.log.manager import LogManager
from kafka08.log.segment import LogSegment
from kafka08.producer.accumulator import RecordAccumulator
from kafka08.producer.kafka_producer_config import KafkaProducerConfig
from kafka08.producer.sender import Sender
from kafka08.profile import CLASSIC, SAFE
from kafka08.simulation import workload
from kafka08.simulation.run import simulate
from kafka08.structs import LeaderAndIsr
from kafka08.zk import nodes, paths
from kafka08.zk.election import ControllerElection
from kafka08.zk.model.session import ModelSession
from kafka08.zk.operations import ANY_VERSION
from kafka08.zk.store import ClusterStore

SEEDS_MAX: Final = 1000
Patch = Callable[[pytest.MonkeyPatch], object]


@dataclass(frozen=True)
class Planted:
    """name      of the defect, in a few words
    origin    where it comes from
    verdict   what a run says of it begins with, or has in it
    seed      the first that finds it; None: none did of those that were tried
    """

    name: str
    origin: str
    verdict: str
    seed: int | None
    plant: Patch
    profile: str = SAFE


PLANTED: Final[list[Planted]] = []


def planted(
    name: str, origin: str, verdict: str, seed: int | None, profile: str = SAFE
) -> Callable[[Patch], Patch]:
    """Take the patch into the list."""

    def take(plant: Patch) -> Patch:
        PLANTED.append(Planted(name, origin, verdict, seed, plant, profile))
        return plant

    return take


# Replication


@planted("the leader acknowledges alone", "acks=1", "lost", 3)
def _(patch: pytest.MonkeyPatch) -> None:
    def with_acks_1(properties: dict[str, object]) -> KafkaProducerConfig:
        return KafkaProducerConfig({**properties, "acks": "1"})

    patch.setattr(workload, "KafkaProducerConfig", with_acks_1)


@planted("a follower cuts its log to its HW", "KAFKA-1211, KIP-101", "lost", None)
def _(patch: pytest.MonkeyPatch) -> None:
    make_follower = Partition.make_follower

    def cut(self: Partition, state: LeaderAndIsr, *args: Any) -> bool:
        changed = make_follower(self, state, *args)
        if self.log is not None:
            self.log.truncate_to(self.high_watermark)
        return changed

    patch.setattr(Partition, "make_follower", cut)


@planted(
    "a follower keeps what its new leader does not have", "KAFKA-1561", "different messages", None
)
def _(patch: pytest.MonkeyPatch) -> None:
    add = ReplicaFetcher.add

    def without_comparing(self: ReplicaFetcher, partitions: Any) -> None:
        listed = list(partitions)
        add(self, listed)
        for partition in listed:
            self._followed[partition.topic_partition].unsettled = None

    patch.setattr(ReplicaFetcher, "add", without_comparing)


@planted("the HW waits for no follower", "replication", "the HW of", 0)
def _(patch: pytest.MonkeyPatch) -> None:
    def raise_it(self: Partition) -> bool:
        assert self.log is not None
        raised = self.log.log_end_offset > self.high_watermark
        self.high_watermark = self.log.log_end_offset
        return raised

    patch.setattr(Partition, "maybe_raise_high_watermark", raise_it)


@planted(
    "the HW does not wait for members that are joining the ISR", "replication", "the HW of", 16
)
def _(patch: pytest.MonkeyPatch) -> None:
    begin = Partition.begin_isr_change

    def begin_at_once(self: Partition, isr: tuple[int, ...]) -> LeaderAndIsr:
        change = begin(self, isr)
        self.maximal_isr = isr if len(isr) < len(self.isr) else self.isr
        return change

    patch.setattr(Partition, "begin_isr_change", begin_at_once)


@planted("any follower joins the ISR", "replication", "the HW of", 3)
def _(patch: pytest.MonkeyPatch) -> None:
    def joins(self: Partition, broker_id: int) -> bool:
        return self.is_leader and self.isr_change is None and broker_id not in self.isr

    patch.setattr(Partition, "joins_isr", joins)


@planted("a new leader lets its HW fall", "KAFKA-1647", "fell from", 0)
def _(patch: pytest.MonkeyPatch) -> None:
    record = Partition.record_follower_fetch

    def fall(self: Partition, broker_id: int, offset: int, now: float) -> bool:
        raised = record(self, broker_id, offset, now)
        if self.is_leader and len(self.isr) > 1:
            self.high_watermark = min(self.high_watermark, offset)
        return raised

    patch.setattr(Partition, "record_follower_fetch", fall)


@planted("ISR writes have no condition", "KAFKA-1382", "the leader epoch fell", 4)
def _(patch: pytest.MonkeyPatch) -> None:
    update = ClusterStore.update_leader_and_isr

    def blindly(self: ClusterStore, states: Any, *args: Any) -> Any:
        if args:
            return update(self, states, *args)
        return update(self, {tp: replace(s, zk_version=ANY_VERSION) for tp, s in states.items()})

    patch.setattr(ClusterStore, "update_leader_and_isr", blindly)


@planted("a refused ISR change is kept as if it was written", "ours", "", None)
def _(patch: pytest.MonkeyPatch) -> None:
    def keep(self: IsrChanges, conflicts: Any) -> Any:
        for partition, change in conflicts.values():
            partition.end_isr_change(change, change)
        return {}

    patch.setattr(IsrChanges, "_resolve", keep)


@planted(
    "an answer for a partition followed no more is appended", "replication", "to be in sync", 11
)
def _(patch: pytest.MonkeyPatch) -> None:
    def whatever(self: replica_fetcher.ReplicaFetcher, partitions: Any) -> None:
        for tp in list(partitions):
            followed = self._followed.get(tp)
            if followed is not None:
                self._runtime.call_later(0.5, self._followed.pop, tp, None)

    patch.setattr(ReplicaFetcher, "remove", whatever)


@planted("one refused partition ends the copying of all", "0.8.2.2; ours", "in sync", None)
def _(patch: pytest.MonkeyPatch) -> None:
    def all_or_nothing(broker: Any, replica_id: int, wanted: Any, reads: Any, call: Any) -> None:
        for tp, data in reads.items():
            if data.message_set is not None:
                offset = wanted[tp].offset
                broker.replica_manager.record_follower_fetch(tp, replica_id, offset)

    patch.setattr(fetch, "record_positions", all_or_nothing)


# The controller


@planted("a replica that is not in sync may lead", "KAFKA-1028", "though", 0)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TopicUncleanElections, "allowed", lambda *_: True)


@planted("a former controller goes on electing", "KAFKA-1096", "elected", 8)
def _(patch: pytest.MonkeyPatch) -> None:
    update = Leadership._while_in_office

    def always(self: Leadership, write: Any, states: Any) -> Any:
        return write(states) if states else update(self, write, states)

    patch.setattr(Leadership, "_while_in_office", always)


@planted("brokers obey a former controller", "KAFKA-1188", "", None)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ReplicaManager, "_is_stale", lambda *_: False)


@planted("the election of a controller sets no watch", "KAFKA-1451", "waited", None)
def _(patch: pytest.MonkeyPatch) -> None:
    def refresh(self: ControllerElection) -> bool:
        self._lose_office(None)
        try:
            return self._take_office() if self._try() else False
        except NodeExists:
            return False

    patch.setattr(ControllerElection, "refresh", refresh)


@planted("the ISR keeps a leader's dead followers", "ours", "the ISR is not among", 3)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StateChanges, "replicas_to_offline", lambda *_: None)
    patch.setattr(ReplicaManager, "shrink_isrs", lambda *_: None)


@planted(
    "a widened assignment that a refused move left is not sent", "ours", "in sync", None, CLASSIC
)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Reassignments, "_may_be_widened", lambda *_: False)


@planted("new replicas of a move are not told", "reassignment", "to be moved", 4)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StateChanges, "resend_with_next_epoch", lambda *_: None)


@planted("a leader outside of the ISR is elected", "elections", "not in the ISR", 0)
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


# ZooKeeper


@planted("a broker whose session ended does not register again", "KAFKA-1387", "register", 0)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RegistrationKeeper, "_register_again", lambda _: True)


@planted("watches are lost with a connection", "kazoo-style clients", "no leader", 2)
def _(patch: pytest.MonkeyPatch) -> None:
    drop = ModelSession._drop_watchers

    def silently(self: ModelSession, *, call: bool = True) -> None:
        drop(self, call=False)

    patch.setattr(ModelSession, "_drop_watchers", silently)


# The disk


@planted("an acknowledged message is not synced", "durability", "lost", None)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Log, "owed_flush", lambda _: None)


@planted("the name of a synced file is not synced", "ours", "with log end", 25)
def _(patch: pytest.MonkeyPatch) -> None:
    from kafka08.simulation.memory_disk import MemoryDirectory

    patch.setattr(MemoryDirectory, "sync", lambda _: None)


@planted("recovery keeps a torn end", "recovery", "", None)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LogSegment, "repair", lambda self, found, index_bytes: 0)


@planted("every start counts as one after a clean stop", "recovery", "", None)
def _(patch: pytest.MonkeyPatch) -> None:
    job = LogManager._load_job
    patch.setattr(
        LogManager, "_load_job", lambda self, path, point, _clean: job(self, path, point, True)
    )


@planted("a truncation leaves its segments' index", "ours", "different messages", 0)
def _(patch: pytest.MonkeyPatch) -> None:
    truncate = LogSegment.truncate_to

    def without_index(self: LogSegment, offset: int, position: Any, *args: Any) -> None:
        if position is not None:
            self._drop_bytes_after(position)
        else:
            truncate(self, offset, position, *args)

    patch.setattr(LogSegment, "truncate_to", without_index)


# Producers


@planted("a lost connection counts as an acknowledgement", "clients", "lost", 0)
def _(patch: pytest.MonkeyPatch) -> None:
    def stored(self: Sender, sent: Any, error: Any) -> None:
        for parts in (sent.context or {}).values():
            self._stored(parts, 0)

    patch.setattr(Sender, "_lost_one", stored)


@planted("what is sent again overtakes", "producers", "out of order", None)
def _(patch: pytest.MonkeyPatch) -> None:
    def at_five(properties: dict[str, object]) -> KafkaProducerConfig:
        key = "max.in.flight.requests.per.connection"
        return KafkaProducerConfig({**properties, key: 5})

    patch.setattr(workload, "KafkaProducerConfig", at_five)


@planted("batches that wait too long are never completed", "KAFKA-1788", "producers to end", 0)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RecordAccumulator, "take_overdue", lambda *_: [])
    patch.setattr(RecordAccumulator, "put_back", lambda *_: None)


@planted("a closed client keeps its connections", "clients", "has stopped, but", 0)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ClusterClient, "close", lambda _: None)


# Consumers


@planted("a member goes on after its session", "kafka-pixy 30", "was handed", None)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SessionGate, "deadline", lambda self: self._clock.monotonic() + 1000)
    patch.setattr(SessionGate, "check", lambda self: None)


@planted("the end of a session is told by the wall clock", "clients", "was handed", None)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        SessionGate, "is_open", property(lambda self: self._zk.session_id == self._session_id)
    )
    patch.setattr(
        SessionGate,
        "deadline",
        lambda self: self._clock.monotonic() + 30 if self._zk.session_id else 0.0,
    )


@planted("claims are left behind", "kafka-node 981", "the group to", None)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(GroupRegistry, "release", lambda *_: None)


@planted("a partition is released before its reader stops", "consumers", "was handed", None)
def _(patch: pytest.MonkeyPatch) -> None:
    give_up = Ownership.give_up

    def later(self: Ownership, partitions: Any, *, commit: bool) -> None:
        self._runtime.call_later(0.5, lambda: give_up(self, partitions, commit=commit))

    patch.setattr(Ownership, "give_up", later)


@planted("a commit may go back", "ours", "went back", None)
def _(patch: pytest.MonkeyPatch) -> None:
    commit = ZooKeeperOffsetStore.commit

    def late(self: ZooKeeperOffsetStore, offsets: Any) -> None:
        held = self.__dict__.setdefault("held", [])
        held.append(dict(offsets))
        commit(self, held.pop(0) if len(held) > 2 else held[0])

    patch.setattr(ZooKeeperOffsetStore, "commit", late)


@planted("'unknown partition' means nothing committed", "0.8.2.2; ours", "", None)
def _(patch: pytest.MonkeyPatch) -> None:
    committed = committed_in_kafka

    def unknown_is_none(response: Any, group: str, partitions: Any, *, known: bool) -> Any:
        return committed(response, group, partitions, known=False)

    patch.setattr(offset_store, "committed_in_kafka", unknown_is_none)


@planted("offsets are answered before they are loaded", "offsets", "", None)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(OffsetManager, "_load_log", lambda *_: 0)


@planted("a commit to Kafka is not fenced", "kafka-pixy 30", "", None)
def _(patch: pytest.MonkeyPatch) -> None:
    init = KafkaOffsetStore.__init__

    def unfenced(self: KafkaOffsetStore, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **{**kwargs, "fence": lambda: None})

    patch.setattr(KafkaOffsetStore, "__init__", unfenced)


# Tools


@planted("a rollback rewinds both stores", "ours", "went back", None)
def _(patch: pytest.MonkeyPatch) -> None:
    from kafka08.migration import offset_migration
    from kafka08.migration.rollback import Rollback

    def oldest(facts: Any) -> Rollback:
        writes = {p.topic_partition: min(p.zookeeper or 0, p.kafka or 0) for p in facts.partitions}
        return Rollback(writes, {})

    def write(connections: Any, group: str, offsets: Any, _out_of_log: Any) -> Any:
        for tp, offset in offsets.items():
            connections.zk.ensure(paths.offset(group, *tp))
            connections.zk.set(paths.offset(group, *tp), nodes.encode_offset(offset))
        return offsets

    patch.setattr(offset_migration, "rollback_to_newest", oldest)
    patch.setattr(offset_migration, "raise_in_zookeeper", write)


def found_by(one: Planted, seed: int) -> str | None:
    """What a run with the defect says; None if it finds nothing."""
    with pytest.MonkeyPatch.context() as patch:
        one.plant(patch)
        return simulate(seed, profile=one.profile).verdict


def main(names: list[str]) -> None:
    """Search, and print a row for each defect."""
    logging.getLogger().setLevel(logging.CRITICAL + 1)
    for one in PLANTED:
        if names and not any(name in one.name for name in names):
            continue
        started = time.perf_counter()
        for seed in range(SEEDS_MAX):
            verdict = found_by(one, seed)
            if verdict is not None and one.verdict in verdict:
                break
        else:
            verdict = "NOT FOUND"
        seconds = time.perf_counter() - started
        row = (one.name, one.origin, str(seed), f"{seconds:.0f} s", f"{verdict:.150}")
        print(f"| {' | '.join(row)} |", flush=True)  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1:])
