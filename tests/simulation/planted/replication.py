"""Planted defects of replication: HWs, ISRs, followers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kafka08.broker.purgatory.purgatories import Purgatories
from kafka08.broker.replica import replica_state
from kafka08.broker.replica.partition import Partition
from kafka08.broker.replication import replica_fetcher
from kafka08.broker.replication.isr_changes import IsrChanges
from kafka08.broker.replication.partition_fetch_state import PartitionFetchState
from kafka08.broker.replication.replica_fetcher import ReplicaFetcher
from kafka08.broker.replication.replica_manager import ReplicaManager
from kafka08.broker.requests.fetch_call import FetchCall
from kafka08.producer.kafka_producer_config import KafkaProducerConfig
from kafka08.simulation import writers
from kafka08.simulation.plan import SUSPENDED, Fault
from kafka08.structs import LeaderAndIsr, TopicPartition
from kafka08.zk.operations import ANY_VERSION
from kafka08.zk.store import ClusterStore
from tests.simulation.planted.defect import LONG, MOVES, PLAIN, movable, planted, replicated


@planted(
    "the leader acknowledges alone",
    "acks=1",
    "lost",
    (Fault.KILL,),
    seed=22,
    needs=replicated,
)
def _(patch: pytest.MonkeyPatch) -> None:
    def with_acks_1(properties: dict[str, object]) -> KafkaProducerConfig:
        return KafkaProducerConfig({**properties, "acks": "1"})

    patch.setattr(writers, "KafkaProducerConfig", with_acks_1)


@planted(
    "an ISR that shrinks after the append is enough",
    "replication",
    "is stored, but only",
    (Fault.KILL, Fault.SUSPEND),
    seed=0,
    needs=replicated,
)
def _(patch: pytest.MonkeyPatch) -> None:
    def acknowledged(self: Partition, required_offset: int, _required_acks: int) -> bool:
        self.leader_log()
        return self.high_watermark >= required_offset

    patch.setattr(Partition, "acknowledged", acknowledged)


@planted(
    "a follower cuts its log to its HW",
    "KAFKA-1211, KIP-101",
    "the HW of",
    (Fault.KILL, Fault.ELECT),
    seed=9,
    needs=replicated,
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
    (Fault.KILL,),
    seed=85,
    needs=replicated,
)
def _(patch: pytest.MonkeyPatch) -> None:
    def does_not_differ(self: PartitionFetchState) -> None:
        self.unsettled = None

    patch.setattr(PartitionFetchState, "unsettle", does_not_differ)


@planted(
    "a follower that was refused goes on at its log end",
    "0.8.2.2; ours",
    "have different messages",
    (Fault.CUT, Fault.EXPIRE, Fault.MOVE),
    seed=23,
    settings={**LONG, "replication_factor": 3, "partitions": 2},
)
def _(patch: pytest.MonkeyPatch) -> None:
    take = ReplicaFetcher._take

    def take_and_go_on(
        self: ReplicaFetcher,
        tp: TopicPartition,
        followed: PartitionFetchState,
        data: Any,
        to: Any,
        *,
        is_cut: bool,
    ) -> None:
        unsettled = followed.unsettled
        take(self, tp, followed, data, to, is_cut=is_cut)
        if data.error_code:
            followed.unsettled = unsettled

    patch.setattr(ReplicaFetcher, "_take", take_and_go_on)


@planted(
    "the HW waits for no follower",
    "replication",
    "the HW of",
    (Fault.KILL,),
    seed=0,
)
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
    (Fault.SUSPEND, Fault.KILL),
    seed=16,
    needs=replicated,
)
def _(patch: pytest.MonkeyPatch) -> None:
    begin = Partition.begin_isr_change

    def begin_at_once(self: Partition, isr: tuple[int, ...]) -> LeaderAndIsr:
        change = begin(self, isr)
        self.maximal_isr = isr if len(isr) < len(self.isr) else self.isr
        return change

    patch.setattr(Partition, "begin_isr_change", begin_at_once)


@planted(
    "any follower joins the ISR",
    "replication",
    "the HW of",
    (Fault.KILL, Fault.SUSPEND),
    seed=0,
)
def _(patch: pytest.MonkeyPatch) -> None:
    def joins(self: Partition, broker_id: int) -> bool:
        return self.is_leader and self.isr_change is None and broker_id not in self.isr

    patch.setattr(Partition, "joins_isr", joins)


@planted(
    "a new leader lets its HW fall",
    "KAFKA-1647",
    "fell from",
    (Fault.KILL,),
    seed=10,
)
def _(patch: pytest.MonkeyPatch) -> None:
    record = replica_state.record_fetches

    def fall(
        partitions: list[Partition], offsets: list[int], broker_id: int, now: float
    ) -> tuple[list[TopicPartition], list[TopicPartition], list[Partition]]:
        found = record(partitions, offsets, broker_id, now)
        for partition, offset in zip(partitions, offsets, strict=True):
            if partition.is_leader and len(partition.isr) > 1:
                partition.high_watermark = min(partition.high_watermark, offset)
        return found

    patch.setattr(replica_state, "record_fetches", fall)


@planted(
    "ISR writes have no condition",
    "KAFKA-1382",
    "the leader epoch fell",
    (Fault.OUTAGE,),
    seed=16,
    settings=LONG,
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
    "waited",
    (Fault.ISR,),
    seed=9,
    settings=LONG,
    needs=replicated,
)
def _(patch: pytest.MonkeyPatch) -> None:
    def keep(self: IsrChanges, conflicts: Any) -> Any:
        for partition, change in conflicts.values():
            partition.end_isr_change(change, change)
        return {}

    patch.setattr(IsrChanges, "_resolve", keep)


@planted(
    "a response for a partition followed no more is appended",
    "replication",
    "appends as a follower",
    (Fault.ELECT, Fault.KILL),
    seed=16,
    needs=replicated,
)
def _(patch: pytest.MonkeyPatch) -> None:
    def whatever(self: replica_fetcher.ReplicaFetcher, partitions: Any) -> None:
        def drop(tp: Any, followed: Any) -> None:
            if self._followed.get(tp) is followed:
                del self._followed[tp]

        for tp in list(partitions):
            if (followed := self._followed.get(tp)) is not None:
                self._runtime.call_later(0.5, drop, tp, followed)

    patch.setattr(ReplicaFetcher, "remove", whatever)


@planted(
    "one refused partition ends the copying of all",
    "0.8.2.2; ours",
    "waited",
    (Fault.MOVE, Fault.LATE),
    seed=10,
    settings=MOVES,
    needs=lambda plan: movable(plan) and plan.partitions > 1,
)
def _(patch: pytest.MonkeyPatch) -> None:
    def all_or_nothing(self: FetchCall, reads: Any) -> None:
        for number, offset in enumerate(self._offsets):
            if number not in reads.codes:
                partition = self._partitions[number]
                partition.check_replica(self._replica_id, offset)
                manager = self._broker.replica_manager
                manager.record_follower_fetches([partition], [offset], self._replica_id)

    patch.setattr(FetchCall, "_record", all_or_nothing)


@planted(
    "a silent follower stays in the ISR",
    "KAFKA-1367",
    "to leave the ISR",
    (),
    seed=5,
    settings={**LONG, "replication_factor": 3, "away": SUSPENDED, "faults_seconds": 1.0},
    needs=lambda plan: (
        plan.broker_properties["replica.lag.time.max.ms"] == "2000"
        and plan.broker_properties["zookeeper.session.timeout.ms"] == "6000"
    ),
)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ReplicaManager, "shrink_isrs", lambda *_: None)


@planted(
    "a follower that waits for messages counts as silent",
    "replication",
    "to stay as it is",
    (),
    seed=0,
    settings={**PLAIN, "replication_factor": 3, "faults_seconds": 1.0, "away": ""},
)
def _(patch: pytest.MonkeyPatch) -> None:
    out_of_sync = Partition.out_of_sync_replicas

    def soon(self: Partition, now: float, _lag_seconds: float, lag_messages: Any) -> Any:
        return out_of_sync(self, now, 0.2, lag_messages)

    patch.setattr(Partition, "out_of_sync_replicas", soon)


@planted(
    "a raised HW wakes no parked fetch",
    "purgatories",
    "is parked, though",
    (),
    seed=0,
    settings={**PLAIN, "replication_factor": 3, "faults_seconds": 5.0},
)
def _(patch: pytest.MonkeyPatch) -> None:
    def produces_alone(self: Purgatories, _moved: Any, raised: Any) -> bool:
        return self.produces.check_and_complete_all(raised) > 0

    patch.setattr(Purgatories, "follower_fetched", produces_alone)


@planted(
    "an append wakes no follower",
    "purgatories",
    "is parked, though",
    (),
    seed=0,
    settings={**PLAIN, "replication_factor": 3, "faults_seconds": 5.0},
)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Purgatories, "wake_followers", lambda *_: None)
