"""Planted defects of consumer groups and their offsets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kafka08.broker.groups.offset_loader import OffsetLoader
from kafka08.client.committed import committed_in_kafka
from kafka08.consumer.fetching.fetched import FetchedSet
from kafka08.consumer.fetching.owned_partition import Chunk
from kafka08.consumer.fetching.stream import FetchedStream
from kafka08.consumer.group.partitions import Partitions
from kafka08.consumer.simple import SimpleConsumer
from kafka08.consumer.zookeeper import assignment, offset_store, registry
from kafka08.consumer.zookeeper.assignors import Assignment
from kafka08.consumer.zookeeper.member import ZooKeeperMember
from kafka08.consumer.zookeeper.offset_store import KafkaOffsetStore, ZooKeeperOffsetStore
from kafka08.consumer.zookeeper.ownership import Ownership
from kafka08.consumer.zookeeper.session import SessionGate
from kafka08.errors import KafkaError
from kafka08.migration import offset_migration
from kafka08.migration.rollback import Rollback
from kafka08.network import connection
from kafka08.simulation.plan import Fault
from kafka08.structs import TopicPartition
from kafka08.zk.group_store import GroupStore
from kafka08.zk.operations import Create
from tests.simulation.planted.defect import (
    LONG_WITH_GROUP,
    group_in_kafka,
    group_in_zookeeper,
    planted,
)


@planted(
    "a member continues after its session",
    "kafka-pixy 30",
    "was handed",
    (Fault.SUSPEND,),
    seed=27,
    needs=lambda plan: plan.members > 0,
)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SessionGate, "deadline", lambda self: self._clock.monotonic() + 1000)
    patch.setattr(SessionGate, "check", lambda self: None)


@planted(
    "a member does not know that its session may have ended",
    "clients",
    "was handed",
    (Fault.SUSPEND,),
    seed=27,
    needs=lambda plan: plan.members > 0,
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
    (Fault.KILL,),
    seed=2,
    needs=lambda plan: plan.members > 0,
)
def _(patch: pytest.MonkeyPatch) -> None:
    def persistent(path: str, data: str, *, ephemeral: bool) -> Create:
        return Create(path, data, ephemeral=ephemeral and "/owners/" not in path)

    patch.setattr(registry, "Create", persistent)


@planted(
    "a partition is released before its reader stops",
    "consumers",
    "was handed",
    (Fault.KILL,),
    seed=8,
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
    (Fault.SESSION,),
    seed=5,
    needs=group_in_zookeeper,
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
    "'unknown partition' means nothing committed",
    "0.8.2.2; ours",
    "begins",
    (Fault.BLACKOUT, Fault.LATE),
    seed=10,
    settings=LONG_WITH_GROUP,
    needs=lambda plan: group_in_kafka(plan) and plan.level == "0.8.2",
)
def _(patch: pytest.MonkeyPatch) -> None:
    committed = committed_in_kafka

    def unknown_is_none(response: Any, group: str, partitions: Any, *, known: bool) -> Any:
        return committed(response, group, partitions, known=False)

    patch.setattr(offset_store, "committed_in_kafka", unknown_is_none)


@planted(
    "offsets are answered before they are loaded",
    "offsets",
    "",
    (Fault.KILL,),
    seed=3,
    needs=group_in_kafka,
)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(OffsetLoader, "_load_log", lambda *_: 0)


@planted(
    "a commit to Kafka is not fenced",
    "kafka-pixy 30",
    "the group's offset of",
    (Fault.OUTAGE, Fault.SUSPEND),
    seed=19,
    settings=LONG_WITH_GROUP,
    needs=lambda plan: group_in_kafka(plan) and plan.members > 1,
)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SessionGate, "check", lambda _: None)
    init = KafkaOffsetStore.__init__

    def unfenced(self: KafkaOffsetStore, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **{**kwargs, "fence": lambda: None})

    patch.setattr(KafkaOffsetStore, "__init__", unfenced)


@planted(
    "a commit arrives after its connection has closed",
    "0.8.2.2; ours",
    "the group's offset of",
    (Fault.CUT,),
    seed=448,
    settings=LONG_WITH_GROUP,
    needs=lambda plan: group_in_kafka(plan) and plan.members > 1,
)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(connection, "NEVER_LATE", frozenset())


@planted(
    "a rollback rewinds both stores",
    "ours",
    "went back",
    (Fault.MIGRATE,),
    seed=6,
    needs=lambda plan: plan.members > 0,
)
def _(patch: pytest.MonkeyPatch) -> None:
    def oldest(facts: Any, *_: Any) -> Rollback:
        writes = {p.topic_partition: min(p.zookeeper or 0, p.kafka or 0) for p in facts.partitions}
        return Rollback(writes, {})

    def write(connections: Any, group: str, offsets: Any, _lowered: Any) -> Any:
        GroupStore(connections.zk).commit_offsets(group, offsets)
        return offsets

    patch.setattr(offset_migration, "plan_rollback", oldest)
    patch.setattr(offset_migration, "raise_in_zookeeper", write)


@planted(
    "the first message after a long wait is left out",
    "consumers",
    "skipped",
    (Fault.KILL,),
    seed=0,
)
def _(patch: pytest.MonkeyPatch) -> None:
    fetch = SimpleConsumer.fetch

    def late(self: SimpleConsumer, *args: Any, **options: Any) -> FetchedSet:
        began = self._runtime.monotonic()
        found = fetch(self, *args, **options)
        waited = self._runtime.monotonic() - began > 0.5
        return replace(found, offset=found.offset + 1) if waited else found

    patch.setattr(SimpleConsumer, "fetch", late)


@planted(
    "a commit counts the message in work as finished",
    "consumers",
    "no member has processed",
    (Fault.KILL,),
    seed=2,
    needs=lambda plan: plan.members > 0,
)
def _(patch: pytest.MonkeyPatch) -> None:
    positions = FetchedStream.positions

    def handed_out(self: FetchedStream, partitions: Any) -> Any:
        found, current = positions(self, partitions), self.handed_out()
        return found if current is None or current[0] not in found else {**found, **dict([current])}

    patch.setattr(FetchedStream, "positions", handed_out)


@planted(
    "a claim begins at the offset of an earlier claim",
    "consumers",
    "begins",
    (Fault.KILL,),
    seed=4,
    needs=lambda plan: plan.members > 1,
)
def _(patch: pytest.MonkeyPatch) -> None:
    make = ZooKeeperMember._make_partitions

    def remembered(self: ZooKeeperMember, wanted: Any, offsets: Any) -> Any:
        known = self.__dict__.setdefault("_known", {})
        return make(self, wanted, {tp: known.setdefault(tp, offsets[tp]) for tp in wanted})

    patch.setattr(ZooKeeperMember, "_make_partitions", remembered)


@planted(
    "the first message of a set is left out",
    "consumers",
    "instead of",
    (Fault.KILL,),
    seed=2,
    needs=lambda plan: plan.members > 0,
)
def _(patch: pytest.MonkeyPatch) -> None:
    messages_of = FetchedStream._messages_of

    def late(self: FetchedStream, chunk: Chunk, from_offset: int) -> Any:
        is_long = chunk.next_offset - from_offset > 1
        return messages_of(self, chunk, from_offset + (from_offset > 0 and is_long))

    patch.setattr(FetchedStream, "_messages_of", late)


@planted(
    "a clean stop does not commit",
    "consumers",
    "has stopped and finished",
    (Fault.KILL,),
    seed=2,
    needs=lambda plan: plan.members > 0,
)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ZooKeeperMember, "_commit_finally", lambda *_: None)


@planted(
    "the last members get the remaining partitions",
    "assignors",
    "share its partitions",
    (Fault.KILL,),
    seed=16,
    needs=lambda plan: plan.members > plan.partitions or plan.partitions % max(1, plan.members) > 0,
)
def _(patch: pytest.MonkeyPatch) -> None:
    def last_first(partitions: Any, threads: Any) -> Assignment:
        [(topic, numbers)] = partitions.items()
        readers = sorted(threads[topic], reverse=True)
        return {
            TopicPartition(topic, number): readers[place * len(readers) // len(numbers)]
            for place, number in enumerate(sorted(numbers, reverse=True))
        }

    patch.setattr(assignment, "range_assign", last_first)


@planted(
    "a paused partition still returns what was fetched",
    "KafkaConsumer",
    "is paused",
    (),
    seed=1,
    coordinated=True,
)
def _(patch: pytest.MonkeyPatch) -> None:
    def mark(self: Partitions, partitions: Any) -> None:
        for tp in partitions:
            self._states[tp].is_paused = True

    patch.setattr(Partitions, "pause", mark)
