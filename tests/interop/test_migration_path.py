"""The whole way of docs/migration.md, and back: a group in ZooKeeper on JVM 0.8.2.2 brokers becomes
one with a coordinator on brokers of 0.10.2, step by step, and returns by the same steps.

Messages are sent all the time. At each change of members all of the old kind stop before the new
ones start, and what is committed then is noted: nothing below that may come again, and in the end
every message was handed out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from kafka08.admin.connections import Connections
from kafka08.client.log_offsets import log_ends
from kafka08.errors import KafkaError
from kafka08.migration import OffsetMigration, State, Watching
from kafka08.structs import OFFSETS_TOPIC, TopicPartition
from kafka08.zk.migration_protocol import OffsetStorage
from tests.histories.offsets import OffsetHistory
from tests.interop.jvm import POM_0_10_2
from tests.interop.jvm_member import jvm_member
from tests.interop.seats import MixedCluster, Release, Seat, mixed_cluster
from tests.migration.live_group import Load, MemberProcess, our_member
from tests.waiting import until

pytestmark = pytest.mark.timeout(400)
GROUP = TOPIC = "orders"
PARTITIONS = 4
RATE = 100
SEATS = 2
SAFE = {"unclean.leader.election.enable": "false", "min.insync.replicas": "2"}
OFFSETS = {"offsets.topic.replication.factor": str(SEATS)}
OLD = Release(keys=OFFSETS)
PINNED = Release(
    POM_0_10_2,
    "0.10.2",
    {
        **OFFSETS,
        "inter.broker.protocol.version": "0.8.2",
        "log.message.format.version": "0.8.2",
    },
)
"""The new release, on which clients of every age work, as long as there may be a way back."""
WATCHING = Watching(seconds=1.5, interval_ms=1000, period_s=0.1)
GROUP_KEYS = {"group.id": GROUP, "auto.commit.interval.ms": "200"}
Program = Callable[..., list[str]]


class Way:
    """The cluster, the group on it, and what its members were handed."""

    def __init__(self, cluster: MixedCluster) -> None:
        self.cluster = cluster
        self.history = OffsetHistory(ordered=False)
        self.partitions = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
        self.members: list[MemberProcess] = []
        self._joined = 0
        connect = cluster.zookeeper.connect_string
        self._in_zookeeper = {
            **GROUP_KEYS,
            "zookeeper.connect": connect,
            "zookeeper.session.timeout.ms": "4000",
            "rebalance.backoff.ms": "500",
            "auto.offset.reset": "smallest",
        }
        self._with_a_coordinator = {
            **GROUP_KEYS,
            "bootstrap.servers": cluster.bootstrap,
            "session.timeout.ms": "6000",
            "heartbeat.interval.ms": "300",
            "auto.offset.reset": "none",  # they must find what the others committed
        }
        self.connections = Connections(connect, cluster.bootstrap)
        self.migration = OffsetMigration(
            group=GROUP, connections=self.connections, confirmation_timeout_s=30
        )
        self.load = Load(cluster.bootstrap, self.partitions, RATE)

    # ---------------------------------------------------------------------------- the brokers

    def roll(self, *starts: Callable[[Seat], None]) -> None:
        """Restart each broker cleanly as its function does; the group reads on."""
        everybody = [seat.id for seat in self.cluster.seats]
        for seat, start in zip(self.cluster.seats, starts, strict=True):
            seat.stop()
            start(seat)
            self.cluster.await_isr(TOPIC, *everybody)
            self.go_on()
        if self.cluster.store.assignment(OFFSETS_TOPIC):
            self.cluster.await_isr(OFFSETS_TOPIC, *everybody)

    # ----------------------------------------------------------------------------- the members

    def join(self, program: Program, keys: Mapping[str, str]) -> None:
        self._joined += 1
        name = f"m{self._joined}"
        named = "client.id" if "bootstrap.servers" in keys else "consumer.id"
        self.members.append(MemberProcess(TOPIC, {**keys, named: name}, self.history, program))

    def join_connectors(self, storage: OffsetStorage = OffsetStorage.ZOOKEEPER) -> None:
        for _ in range(2):
            self.join(our_member, {**self._in_zookeeper, **storage.properties})
        self.share()

    def join_jvm_connector(self) -> None:
        self.join(jvm_member, self._in_zookeeper)
        self.share()

    def join_consumers(self) -> None:
        for _ in range(2):
            self.join(our_member, self._with_a_coordinator)
        self.share()

    def share(self) -> None:
        """Until each member has been handed something, and all partitions are read."""
        until(lambda: all(member.reached for member in self.members), "each member to read")
        self.go_on()

    def go_on(self) -> None:
        """Until what is in the log now has been read."""
        ends = until(self.ends, "the ends of the logs")

        def is_read() -> bool:
            reached = [member.reached for member in self.members]
            return all(any(one.get(tp, 0) >= end for one in reached) for tp, end in ends.items())

        until(is_read, "the group to go on")

    def ends(self) -> dict[TopicPartition, int] | None:
        """None while a leader moves."""
        with suppress(KafkaError):
            self.connections.cluster.refresh([TOPIC])
            return log_ends(self.connections.cluster, self.partitions)
        return None

    def stop(self, *, kills_one: bool = False) -> None:
        """All members, one of them with kill -9."""
        if kills_one:
            self.members.pop().kill()
        for member in self.members:
            member.stop()
        self.members.clear()
        self.history.stopped(until(self.committed, "the committed offsets"))

    def committed(self) -> dict[TopicPartition, int] | None:
        """In the store that the members went by; None while it cannot be read."""
        with suppress(KafkaError):
            facts = self.migration.facts()
            entry = self.migration.journal()
            in_kafka = entry is not None and entry.state is State.FINISHED
            found = {p.topic_partition: p.kafka if in_kafka else p.zookeeper
                     for p in facts.partitions}  # fmt: skip
            return {tp: offset for tp, offset in found.items() if offset is not None} or None
        return None

    # --------------------------------------------------------------------------- the migration

    def is_verified(self) -> bool:
        """To be asked again on a machine that is too busy to commit within the interval."""
        with suppress(KafkaError):
            return self.migration.verify(WATCHING).is_verified
        return False

    def move_to_kafka(self) -> None:
        """With a change of mind after the first step."""
        self.migration.start()
        self.migration.rollback()
        self.go_on()
        self.migration.start()
        until(self.is_verified, "both stores to agree")
        until(lambda: not self.migration.finish(WATCHING).problems, "ZooKeeper to stand still")

    def state(self) -> State | None:
        return self.migration.status().state

    def hand_over(self) -> None:
        """Until new members may start, which begin where the old ones stopped."""
        assert any("still in the group" in line for line in self.migration.handover().obstacles)
        self.stop(kills_one=True)
        until(
            lambda: self.migration.handover().is_ready,
            "the end of the killed member's session",
            explain=lambda: str(self.migration.handover().obstacles),
        )
        assert self.migration.handover().offsets == self.committed()
        self.join_consumers()
        assert self.migration.handover().members == 2

    def close(self) -> None:
        self.load.close()
        for member in self.members:
            member.kill()
        self.connections.close()


@contextmanager
def way_of(cluster: MixedCluster) -> Iterator[Way]:
    for seat in cluster.seats:
        seat.start_jvm()
    cluster.admin.create_topic(TOPIC, PARTITIONS, SEATS, SAFE)
    cluster.admin.await_leaders(TOPIC)
    way = Way(cluster)
    try:
        yield way
    finally:
        way.close()


def test_from_jvm_0_8_2_2_to_a_coordinator_and_back(tmp_path: Path) -> None:
    """Brokers, members, offsets and the coordinator are migrated, then each step is reversed in the
    opposite order. No message is skipped, and none is repeated that was committed when its member
    stopped, though one member is killed."""
    with mixed_cluster(tmp_path, SEATS, OLD) as cluster, way_of(cluster) as way:
        way.join_jvm_connector()
        way.roll(lambda seat: seat.start_ours(PINNED), lambda seat: seat.start_jvm(PINNED))
        way.stop()
        way.join_connectors()
        way.move_to_kafka()
        way.hand_over()

        way.stop()
        way.join_connectors(OffsetStorage.KAFKA)
        way.migration.rollback()
        assert way.state() is State.ROLLED_BACK
        way.go_on()
        way.stop()
        way.join_jvm_connector()
        way.roll(*[lambda seat: seat.start_jvm(OLD)] * SEATS)
        ends = way.load.stop()
        way.go_on()
        way.stop()
    assert way.history.problems(ends) == []
