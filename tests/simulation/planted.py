"""Planted defects: each has a small patch, what the verdict of a run must contain, and a seed whose
run finds it.

    scripts/simulate --planted [name …]    searches seeds 0 to 999 and prints a table

Historic defects name their issue; "ours" are defects of this project that were fixed. A patch
reverts the fix, or breaks the rule as the defect did. The search skips seeds whose plans cannot
show the defect: they lack the faults or the settings that it needs.
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
from kafka08.broker.coordinator.offset_loader import OffsetLoader
from kafka08.broker.handlers import fetch
from kafka08.broker.isr_changes import IsrChanges
from kafka08.broker.partition import Partition
from kafka08.broker.registration import RegistrationKeeper
from kafka08.broker.replica_fetcher import ReplicaFetcher
from kafka08.broker.replica_manager import ReplicaManager
from kafka08.client.cluster import ClusterClient
from kafka08.client.committed import committed_in_kafka
from kafka08.consumer import offset_store, registry
from kafka08.consumer.offset_store import KafkaOffsetStore, ZooKeeperOffsetStore
from kafka08.consumer.ownership import Ownership
from kafka08.consumer.session import SessionGate
from kafka08.errors import KafkaError
from kafka08.log.log import Log
from kafka08.log.manager import LogManager
from kafka08.log.segment import LogSegment
from kafka08.producer.accumulator import RecordAccumulator
from kafka08.producer.kafka_producer_config import KafkaProducerConfig
from kafka08.producer.sender import Sender
from kafka08.profile import CLASSIC, SAFE
from kafka08.simulation import workload
from kafka08.simulation.plan import Fault, Plan, draw_plan
from kafka08.simulation.run import simulate
from kafka08.structs import LeaderAndIsr
from kafka08.zk import nodes, paths
from kafka08.zk.election import ControllerElection
from kafka08.zk.model.session import ModelSession
from kafka08.zk.operations import ANY_VERSION, Create
from kafka08.zk.store import ClusterStore

SEEDS_MAX: Final = 1000
Patch = Callable[[pytest.MonkeyPatch], object]
Needs = Callable[[Plan], bool]


@dataclass(frozen=True)
class Planted:
    """name      the defect in a few words
    origin    the issue or component that it comes from
    verdict   a part of the verdict of a run that finds it
    seed      the first seed that finds it; None if none of those tried does
    needs     whether a run of this plan can show it
    """

    name: str
    origin: str
    verdict: str
    seed: int | None
    plant: Patch
    profile: str
    needs: Needs


PLANTED: Final[list[Planted]] = []


def any_plan(_: Plan) -> bool:
    return True


def planted(
    name: str,
    origin: str,
    verdict: str,
    seed: int | None,
    profile: str = SAFE,
    needs: Needs = any_plan,
) -> Callable[[Patch], Patch]:
    """Add the patch to the list."""

    def add(plant: Patch) -> Patch:
        PLANTED.append(Planted(name, origin, verdict, seed, plant, profile, needs))
        return plant

    return add


def has(plan: Plan, *kinds: Fault) -> bool:
    """Whether the plan has faults of each of these kinds."""
    return set(kinds) <= {fault.kind for fault in plan.faults}


def replicated(plan: Plan) -> bool:
    return plan.replication_factor > 1


def group_in_zookeeper(plan: Plan) -> bool:
    return plan.members > 0 and plan.offsets_storage == "zookeeper"


def group_in_kafka(plan: Plan) -> bool:
    return plan.members > 0 and plan.offsets_storage == "kafka"


def loses_power(plan: Plan) -> bool:
    """Whether brokers lose power, and with it what they have not synced."""
    return plan.loses_writes and plan.silent_share > 0 and has(plan, Fault.KILL)


# Replication


@planted(
    "the leader acknowledges alone",
    "acks=1",
    "lost",
    12,
    needs=lambda plan: replicated(plan) and has(plan, Fault.KILL),
)
def _(patch: pytest.MonkeyPatch) -> None:
    def with_acks_1(properties: dict[str, object]) -> KafkaProducerConfig:
        return KafkaProducerConfig({**properties, "acks": "1"})

    patch.setattr(workload, "KafkaProducerConfig", with_acks_1)


@planted(
    "a follower cuts its log to its HW", "KAFKA-1211, KIP-101", "the HW of", 3, needs=replicated
)
def _(patch: pytest.MonkeyPatch) -> None:
    make_follower = Partition.make_follower

    def cut(self: Partition, state: LeaderAndIsr, *args: Any) -> bool:
        changed = make_follower(self, state, *args)
        if self.log is not None:
            self.log.truncate_to(self.high_watermark)
        return changed

    patch.setattr(Partition, "make_follower", cut)


@planted(
    "a follower keeps what its new leader does not have",
    "KAFKA-1561",
    "differ",
    0,
    needs=lambda plan: replicated(plan) and has(plan, Fault.KILL),
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
    "the HW does not wait for members that are joining the ISR",
    "replication",
    "the HW of",
    17,
    needs=replicated,
)
def _(patch: pytest.MonkeyPatch) -> None:
    begin = Partition.begin_isr_change

    def begin_at_once(self: Partition, isr: tuple[int, ...]) -> LeaderAndIsr:
        change = begin(self, isr)
        self.maximal_isr = isr if len(isr) < len(self.isr) else self.isr
        return change

    patch.setattr(Partition, "begin_isr_change", begin_at_once)


@planted("any follower joins the ISR", "replication", "the HW of", 0)
def _(patch: pytest.MonkeyPatch) -> None:
    def joins(self: Partition, broker_id: int) -> bool:
        return self.is_leader and self.isr_change is None and broker_id not in self.isr

    patch.setattr(Partition, "joins_isr", joins)


@planted("a new leader lets its HW fall", "KAFKA-1647", "fell from", 3)
def _(patch: pytest.MonkeyPatch) -> None:
    record = Partition.record_follower_fetch

    def fall(self: Partition, broker_id: int, offset: int, now: float) -> bool:
        raised = record(self, broker_id, offset, now)
        if self.is_leader and len(self.isr) > 1:
            self.high_watermark = min(self.high_watermark, offset)
        return raised

    patch.setattr(Partition, "record_follower_fetch", fall)


@planted(
    "ISR writes have no condition",
    "KAFKA-1382",
    "the leader epoch fell",
    24,
    needs=replicated,
)
def _(patch: pytest.MonkeyPatch) -> None:
    update = ClusterStore.update_leader_and_isr

    def blindly(self: ClusterStore, states: Any, *args: Any) -> Any:
        if args:
            return update(self, states, *args)
        return update(self, {tp: replace(s, zk_version=ANY_VERSION) for tp, s in states.items()})

    patch.setattr(ClusterStore, "update_leader_and_isr", blindly)


@planted(
    "a refused ISR change is kept as if it was written",
    "ours",
    "",
    None,
    needs=lambda plan: replicated(plan) and has(plan, Fault.SESSION),
)
def _(patch: pytest.MonkeyPatch) -> None:
    def keep(self: IsrChanges, conflicts: Any) -> Any:
        for partition, change in conflicts.values():
            partition.end_isr_change(change, change)
        return {}

    patch.setattr(IsrChanges, "_resolve", keep)


@planted(
    "an answer for a partition followed no more is appended",
    "replication",
    "to be in sync",
    None,
    needs=replicated,
)
def _(patch: pytest.MonkeyPatch) -> None:
    def whatever(self: replica_fetcher.ReplicaFetcher, partitions: Any) -> None:
        for tp in list(partitions):
            followed = self._followed.get(tp)
            if followed is not None:
                self._runtime.call_later(0.5, self._followed.pop, tp, None)

    patch.setattr(ReplicaFetcher, "remove", whatever)


@planted(
    "one refused partition ends the copying of all",
    "0.8.2.2; ours",
    "in sync",
    None,
    needs=lambda plan: plan.replication_factor < plan.brokers and has(plan, Fault.MOVE, Fault.KILL),
)
def _(patch: pytest.MonkeyPatch) -> None:
    def all_or_nothing(broker: Any, replica_id: int, wanted: Any, reads: Any, call: Any) -> None:
        manager = broker.replica_manager
        for tp, data in reads.items():
            if data.message_set is not None:
                offset = wanted[tp].offset
                manager.partition(tp).check_replica(replica_id, offset)
                manager.record_follower_fetches([manager.partition(tp)], [offset], replica_id)

    patch.setattr(fetch, "record_positions", all_or_nothing)


# The controller


@planted(
    "a replica that is not in sync may lead",
    "KAFKA-1028",
    "had HW",
    30,
    needs=lambda plan: replicated(plan) and has(plan, Fault.KILL),
)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TopicUncleanElections, "allowed", lambda *_: True)


@planted("a former controller goes on electing", "KAFKA-1096", "elected", 0)
def _(patch: pytest.MonkeyPatch) -> None:
    update = Leadership._while_in_office

    def always(self: Leadership, write: Any, states: Any) -> Any:
        return write(states) if states else update(self, write, states)

    patch.setattr(Leadership, "_while_in_office", always)


@planted(
    "brokers obey a former controller",
    "KAFKA-1188",
    "",
    None,
    needs=lambda plan: (
        plan.brokers > 1 and (has(plan, Fault.CUT) or has(plan, Fault.SUSPEND, Fault.ELECT))
    ),
)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ReplicaManager, "_is_stale", lambda *_: False)


@planted(
    "a broker that loses the election of a controller sets no watch",
    "KAFKA-1451",
    "no controller",
    34,
    needs=lambda plan: plan.brokers > 1 and has(plan, Fault.KILL),
)
def _(patch: pytest.MonkeyPatch) -> None:
    def refresh(self: ControllerElection) -> bool:
        if self._elected and self._holds_znode():
            return True
        self._lose_office(None)
        return self._try() and self._take_office()

    patch.setattr(ControllerElection, "refresh", refresh)


@planted("the ISR keeps a leader's dead followers", "ours", "the ISR is not among", 4)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StateChanges, "replicas_to_offline", lambda *_: None)
    patch.setattr(ReplicaManager, "shrink_isrs", lambda *_: None)


@planted(
    "a widened assignment that a refused move left is not sent",
    "ours",
    "in sync",
    None,
    CLASSIC,
    needs=lambda plan: plan.replication_factor < plan.brokers and has(plan, Fault.MOVE, Fault.KILL),
)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Reassignments, "_may_be_widened", lambda *_: False)


@planted("new replicas of a move are not told", "reassignment", "to be moved", 4)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StateChanges, "resend_with_next_epoch", lambda *_: None)


@planted(
    "a leader outside of the ISR is elected",
    "elections",
    "not in the ISR",
    14,
    needs=lambda plan: replicated(plan) and has(plan, Fault.KILL),
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


# ZooKeeper


@planted("a broker whose session ended does not register again", "KAFKA-1387", "register", 0)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RegistrationKeeper, "_register_again", lambda _: True)


@planted(
    "watches are lost with a connection",
    "kazoo-style clients",
    "waited",
    8,
    needs=lambda plan: has(plan, Fault.SESSION),
)
def _(patch: pytest.MonkeyPatch) -> None:
    drop = ModelSession._drop_watchers

    def silently(self: ModelSession, *, call: bool = True) -> None:
        drop(self, call=False)

    patch.setattr(ModelSession, "_drop_watchers", silently)


# The disk


@planted("an acknowledged message is not synced", "durability", "had HW", 35, needs=loses_power)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Log, "owed_flush", lambda _: None)


@planted(
    "the name of a synced file is not synced",
    "ours",
    "with log end",
    35,
    needs=loses_power,
)
def _(patch: pytest.MonkeyPatch) -> None:
    from kafka08.simulation.memory_disk import MemoryDirectory

    patch.setattr(MemoryDirectory, "sync", lambda _: None)


@planted("recovery keeps a torn end", "recovery", "", 36, CLASSIC, needs=loses_power)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LogSegment, "repair", lambda self, found, index_bytes: 0)


@planted(
    "every start counts as one after a clean stop", "recovery", "", None, CLASSIC, needs=loses_power
)
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


@planted(
    "what is sent again is overtaken",
    "producers",
    "out of order",
    0,
    needs=lambda plan: plan.in_flight == 1 and plan.retries > 0,
)
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


@planted(
    "a member goes on after its session",
    "kafka-pixy 30",
    "was handed",
    11,
    needs=lambda plan: plan.members > 0 and has(plan, Fault.SUSPEND),
)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SessionGate, "deadline", lambda self: self._clock.monotonic() + 1000)
    patch.setattr(SessionGate, "check", lambda self: None)


@planted(
    "a member does not know that its session may have ended",
    "clients",
    "was handed",
    11,
    needs=lambda plan: plan.members > 0 and has(plan, Fault.SUSPEND),
)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        SessionGate, "is_open", property(lambda self: self._zk.session_id == self._session_id)
    )
    patch.setattr(
        SessionGate,
        "deadline",
        lambda self: self._clock.monotonic() + 30 if self._zk.session_id else 0.0,
    )


@planted(
    "claims are left behind",
    "kafka-node 981",
    "the group to",
    2,
    needs=lambda plan: plan.members > 0 and has(plan, Fault.KILL),
)
def _(patch: pytest.MonkeyPatch) -> None:
    def persistent(path: str, data: str, *, ephemeral: bool) -> Create:
        return Create(path, data, ephemeral=ephemeral and "/owners/" not in path)

    patch.setattr(registry, "Create", persistent)


@planted(
    "a partition is released before its reader stops",
    "consumers",
    "was handed",
    12,
    needs=lambda plan: plan.members > 1,
)
def _(patch: pytest.MonkeyPatch) -> None:
    give_up = Ownership.give_up

    def later(self: Ownership, partitions: Any, *, commit: bool) -> None:
        self._runtime.call_later(0.5, lambda: give_up(self, partitions, commit=commit))

    patch.setattr(Ownership, "give_up", later)


@planted(
    "a commit that failed is repeated after a later one",
    "clients",
    "went back",
    71,
    needs=lambda plan: group_in_zookeeper(plan) and has(plan, Fault.SESSION),
)
def _(patch: pytest.MonkeyPatch) -> None:
    commit = ZooKeeperOffsetStore.commit

    def repeated(self: ZooKeeperOffsetStore, offsets: Any) -> None:
        failed = self.__dict__.setdefault("failed", [])
        try:
            commit(self, offsets)
        except KafkaError:
            failed.append(dict(offsets))
            raise
        if failed:
            commit(self, failed.pop())

    patch.setattr(ZooKeeperOffsetStore, "commit", repeated)


@planted(
    "'unknown partition' means nothing committed", "0.8.2.2; ours", "", None, needs=group_in_kafka
)
def _(patch: pytest.MonkeyPatch) -> None:
    committed = committed_in_kafka

    def unknown_is_none(response: Any, group: str, partitions: Any, *, known: bool) -> Any:
        return committed(response, group, partitions, known=False)

    patch.setattr(offset_store, "committed_in_kafka", unknown_is_none)


@planted("offsets are answered before they are loaded", "offsets", "", 30, needs=group_in_kafka)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(OffsetLoader, "_load_log", lambda *_: 0)


@planted(
    "a commit to Kafka is not fenced",
    "kafka-pixy 30",
    "",
    None,
    needs=lambda plan: group_in_kafka(plan) and plan.members > 1 and has(plan, Fault.SUSPEND),
)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SessionGate, "check", lambda _: None)
    init = KafkaOffsetStore.__init__

    def unfenced(self: KafkaOffsetStore, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **{**kwargs, "fence": lambda: None})

    patch.setattr(KafkaOffsetStore, "__init__", unfenced)


# Tools


@planted(
    "a rollback rewinds both stores",
    "ours",
    "went back",
    2,
    needs=lambda plan: plan.members > 0 and has(plan, Fault.MIGRATE),
)
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
    """The verdict of a run with the defect; None if it finds nothing, or cannot."""
    if not one.needs(draw_plan(seed, one.profile)):
        return None
    with pytest.MonkeyPatch.context() as patch:
        one.plant(patch)
        return simulate(seed, profile=one.profile).verdict


def main(names: list[str]) -> None:
    """Search for these defects, by default for all, and print a row for each."""
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
