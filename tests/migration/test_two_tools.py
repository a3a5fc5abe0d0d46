"""Two tools that start the migration of one group: the late copy of one must not undo what members
have committed since the other one was done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kafka08.client.coordinators import Coordinators
from kafka08.errors import MigrationError, SessionLost
from kafka08.migration import State
from kafka08.structs import OFFSETS_TOPIC, TopicPartition
from kafka08.zk import paths
from kafka08.zk.client import ZkClient
from kafka08.zk.group_store import GroupStore
from kafka08.zk.operations import Create, Exists
from tests.consumer.store_cluster import StoreCluster
from tests.migration.test_fleet import on_system_clock
from tests.migration.test_offset_migration import connected

TP = TopicPartition("t", 0)


@pytest.fixture
def cluster(zk: ZkClient) -> StoreCluster:
    """A stopped group `g` with offset 10 in ZooKeeper."""
    cluster = StoreCluster()
    cluster.create_topic(zk, OFFSETS_TOPIC, 1)
    cluster.create_topic(zk, "t", 1)
    GroupStore(zk).commit_offsets("g", {TP: 10})
    return cluster


def last_transaction(zk: ZkClient) -> int:
    """The number of ZooKeeper's last transaction: that of a znode made now."""
    [path] = zk.pipeline([Create("/probe-", sequence=True)])
    [stat] = zk.pipeline([Exists(path)])
    number: int = stat.created_zxid
    return number


def before_the_commit(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Call `act` once, when a tool has read both stores and is about to commit."""
    commit = Coordinators.commit
    acts = [act]

    def late(self: Coordinators, *args: Any) -> Any:
        if acts:
            acts.pop()()
        return commit(self, *args)

    monkeypatch.setattr(Coordinators, "commit", late)


def test_a_second_tool_does_not_copy(
    zk: ZkClient, cluster: StoreCluster, zk_connect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits for the time in which a killed tool's lock disappears, raises with the lock's path,
    and has written nothing, since a refused Create is a transaction too; the first one finishes and
    leaves no znode."""
    monkeypatch.setattr("kafka08.admin.connections.ZkClient", on_system_clock)
    with connected(cluster, zk_connect) as first, connected(cluster, zk_connect) as second:

        def start_again() -> None:
            before = last_transaction(zk)
            with pytest.raises(MigrationError, match=r"another tool copies .*migrations/g/copy"):
                second.start()
            assert last_transaction(zk) == before + 1

        before_the_commit(monkeypatch, start_again)
        first.start()
        entry = first.journal()
        assert entry is not None
        assert entry.state is State.DUAL
        assert {TP: 10} == cluster.committed
        assert not zk.exists(paths.migration_copy("g"))
        second.start()  # repeats it


def test_nothing_is_copied_once_the_session_is_in_doubt(
    zk: ZkClient, cluster: StoreCluster, zk_connect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another tool may have finished by then, and members may have continued."""
    with connected(cluster, zk_connect) as migration:
        age = migration.connections.zk.granted_timeout_ms / 1000

        def grow_old() -> None:
            heard = migration.connections.zk.clock.monotonic() - age
            monkeypatch.setattr(ZkClient, "last_contact", heard)

        before_the_commit(monkeypatch, grow_old)
        with pytest.raises(SessionLost):
            migration.start()
        assert {} == cluster.committed
        monkeypatch.undo()
        migration.start()
        assert {TP: 10} == cluster.committed
