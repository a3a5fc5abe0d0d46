"""A group under load goes zookeeper → dual → kafka → dual → zookeeper, with kills all the way."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from kafka08.admin.connections import Connections
from kafka08.client.log_offsets import log_ends
from kafka08.embedded import EmbeddedCluster
from kafka08.errors import MigrationError
from kafka08.migration import OffsetMigration, State, Watching
from kafka08.structs import OFFSETS_TOPIC, TopicPartition
from kafka08.zk.group_store import GroupStore
from kafka08.zk.migration_protocol import OffsetStorage
from tests.histories.offsets import OffsetHistory
from tests.migration.killed_tool import STEPS
from tests.migration.live_group import ROOT, Load, MemberProcess, watched_stores
from tests.waiting import until

PARTITIONS = 4
INTERVAL_MS = 200
WATCHING = Watching(seconds=3.0, interval_ms=1500, period_s=0.2)
RATE = 200


class World:
    """A topic of its own, a load on it, and members that can be killed and replaced."""

    def __init__(self, cluster: EmbeddedCluster, group: str) -> None:
        self.cluster = cluster
        self.group = self.topic = group
        cluster.create_topic(group, PARTITIONS, 2)
        self.partitions = [TopicPartition(group, n) for n in range(PARTITIONS)]
        self.history = OffsetHistory()
        self.ends: dict[TopicPartition, int] = {}
        self.members: dict[str, MemberProcess] = {}
        self.kills = 0
        self.session_timeout_ms = 20_000
        """Long, so that a busy machine ends no session; short where members are killed."""
        self.connections = Connections(cluster.zookeeper.connect_string, cluster.bootstrap)
        self.load = Load(cluster.bootstrap, self.partitions, RATE)

    def join(self, name: str) -> None:
        keys = {
            "group.id": self.group,
            "consumer.id": name,
            "zookeeper.connect": self.cluster.zookeeper.connect_string,
            "zookeeper.session.timeout.ms": str(self.session_timeout_ms),
            "rebalance.backoff.ms": "300",
            "auto.commit.interval.ms": str(INTERVAL_MS),
            "auto.offset.reset": "smallest",
        }
        self.members[name] = MemberProcess(self.topic, keys, self.history)

    def kill(self, name: str) -> None:
        self.members.pop(name).kill()
        self.kills += 1

    def migration(self) -> OffsetMigration:
        return OffsetMigration(
            group=self.group, connections=self.connections, confirmation_timeout_s=30
        )

    def storages(self) -> set[OffsetStorage | None]:
        with self.migration() as migration:
            return {member.storage for member in migration.members()}

    def settle(self) -> None:
        """Until the members share the partitions, and everything is noted that they were handed
        before: each owner has been handed a message that came afterwards."""

        def owners() -> dict[TopicPartition, str]:
            """partition → name of its owner."""
            found = GroupStore(self.connections.zk).owners(self.group, self.topic)
            threads = {f"{self.group}_{name}-0": name for name in self.members}
            return {
                TopicPartition(self.topic, number): threads[thread]
                for number, thread in found.items()
                if thread in threads
            }

        def are_shared() -> bool:
            shared = owners()
            return shared.keys() == set(self.partitions) and len(set(shared.values())) == len(
                self.members
            )

        until(are_shared, "the members to share all partitions")
        shared, ends = owners(), log_ends(self.connections.cluster, self.partitions)

        def have_gone_on() -> bool:
            reached = {tp: self.members[name].reached for tp, name in shared.items()}
            return all(reached[tp].get(tp, 0) > end for tp, end in ends.items())

        until(have_gone_on, "messages")

    def read_all(self) -> None:
        """Stop the load, and let the group read everything."""
        self.ends = self.load.stop()
        until(lambda: not self.problems(), f"the end: {self.problems()}")

    def problems(self) -> list[str]:
        return self.history.problems(self.ends)

    def stop(self) -> None:
        for member in self.members.values():
            member.stop()
        assert self.problems() == []

    def close(self) -> None:
        for member in self.members.values():
            member.kill()
        self.load.close()
        self.connections.close()


@pytest.fixture
def world(live_cluster: EmbeddedCluster, request: pytest.FixtureRequest) -> Iterator[World]:
    world = World(live_cluster, str(request.node.name).removeprefix("test_"))
    try:
        yield world
    finally:
        world.close()


def repeated(step: Callable[[], object]) -> None:
    """A step that a dead member or broker broke off is repeated, as its message says."""
    give_up_at = time.monotonic() + 60
    while True:
        try:
            step()
            return
        except MigrationError:
            if time.monotonic() > give_up_at:
                raise


def verified(migration: OffsetMigration) -> None:
    """MigrationError while the stores do not agree: a machine may be too busy to commit in time."""
    if problems := migration.verify(WATCHING).problems:
        raise MigrationError("; ".join(problems))


def finished(migration: OffsetMigration) -> None:
    """The same until the members commit to Kafka alone."""
    if problems := migration.finish(WATCHING).problems:
        raise MigrationError("; ".join(problems))


def test_members_switch_without_a_restart(world: World) -> None:
    """Each step is done when both members follow it; no step repeats a message, no message is
    skipped, and no committed offset goes back. The second member's join may repeat the first one's
    current message (guarantee 4 of docs/consumer.md)."""
    world.join("a")
    world.join("b")
    world.settle()
    repeated_by_joining = world.history.repetitions
    assert repeated_by_joining <= 1
    with (
        watched_stores(world.connections, world.group, world.partitions, world.history),
        world.migration() as migration,
    ):
        assert migration.plan().is_allowed
        assert world.storages() == {OffsetStorage.ZOOKEEPER}
        migration.start()
        assert world.storages() == {OffsetStorage.DUAL}
        repeated(lambda: verified(migration))
        repeated(lambda: finished(migration))
        assert world.storages() == {OffsetStorage.KAFKA}
        migration.rollback()
        assert world.storages() == {OffsetStorage.ZOOKEEPER}
        world.read_all()
        assert world.history.repetitions == repeated_by_joining
        world.stop()


def test_the_whole_migration_under_kills(world: World) -> None:
    """Members and the coordinator's broker are killed at every step: only messages between two
    commits are repeated."""
    world.session_timeout_ms = 3000
    world.join("a")
    world.join("b")
    world.settle()

    def kill_and_replace(name: str, new: str) -> None:
        world.kill(name)
        world.join(new)

    def kill_a_broker() -> None:
        """When its replicas are in sync again: with two of two dead, nothing could go on."""
        store, two = world.connections.store, len(world.cluster.brokers)
        offsets = [TopicPartition(OFFSETS_TOPIC, n) for n in range(4)]
        states = world.partitions + offsets
        until(
            lambda: all(len(s.isr) == two for s in store.leader_and_isr(states).values()),
            "all replicas in sync",
        )
        broker = world.cluster.leader_of(OFFSETS_TOPIC, 0)
        world.cluster.kill(broker)
        broker.start()

    with (
        watched_stores(world.connections, world.group, world.partitions, world.history),
        world.migration() as migration,
    ):
        repeated(migration.start)
        kill_and_replace("a", "c")
        kill_a_broker()
        world.settle()

        repeated(lambda: verified(migration))
        kill_and_replace("b", "d")
        repeated(lambda: migration.finish(WATCHING))
        kill_and_replace("c", "e")
        kill_a_broker()
        repeated(migration.rollback)
        kill_and_replace("d", "f")
        world.settle()
        entry = migration.journal()
        assert entry is not None
        assert entry.state is State.ROLLED_BACK
        world.read_all()
        world.stop()
    # A member may have handed out what came since its last commit; an interval brings so much,
    # and a group that was held up by a session timeout reads what has gathered in one go.
    held_up_s = 10 + INTERVAL_MS / 1000
    assert world.history.repetitions <= world.kills * RATE * held_up_s


@pytest.mark.timeout(300)  # it starts thirty processes
def test_the_tool_is_killed_at_every_write(world: World) -> None:
    """After kill -9 before and after each write of each step the step is repeated: it ends as if
    undisturbed, under load, without skipping a message or lowering an offset."""
    world.join("a")
    world.join("b")
    world.settle()
    repeated_by_joining = world.history.repetitions
    kills = 0
    with watched_stores(world.connections, world.group, world.partitions, world.history):
        for step in STEPS:
            for number in range(1, 40):
                done = subprocess.run(
                    [
                        *(sys.executable, "-m", "tests.migration.killed_tool"),
                        *(world.cluster.zookeeper.connect_string, world.group, step, str(number)),
                    ],
                    cwd=ROOT,
                    capture_output=True,
                    text=True,
                    timeout=120,
                    check=False,
                )
                if done.returncode == 0:
                    break
                assert done.returncode == -signal.SIGKILL, done.stderr
                kills += 1
            assert done.returncode == 0, f"{step} never came to its end"
        with world.migration() as migration:
            entry = migration.journal()
            assert entry is not None
            assert entry.state is State.ROLLED_BACK
        assert world.storages() == {OffsetStorage.ZOOKEEPER}
        world.read_all()
        assert world.history.repetitions == repeated_by_joining
        world.stop()
    assert kills >= 8
