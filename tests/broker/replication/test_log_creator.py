"""LogCreator: it waits for configurations, and creates nothing once the broker stops."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from kafka08.broker.replication.log_creator import LogCreator
from kafka08.errors import Closed, SessionLost
from kafka08.protocol.leader_and_isr import LeaderAndIsrRequest, PartitionStateInfo
from kafka08.protocol.metadata import BrokerEndpoint
from kafka08.structs import TopicPartition
from tests.broker.world import FakeStore, World

if TYPE_CHECKING:
    from kafka08.zk.store import ClusterStore

TP = TopicPartition("t", 0)


class LosingStore(FakeStore):
    """Has lost its session for the first `failures` reads, and calls `meanwhile` in each."""

    def __init__(self, failures: int, meanwhile: Callable[[], object] = lambda: None) -> None:
        super().__init__()
        self.configs = {"t": {"retention.ms": "7"}}
        self.failures = failures
        self.meanwhile = meanwhile

    def topic_configs(self, topics: Iterable[str]) -> dict[str, dict[str, str]]:
        self.meanwhile()
        if self.failures:
            self.failures -= 1
            raise SessionLost("lost")
        return super().topic_configs(topics)


def creator_of(world: World, store: FakeStore) -> LogCreator:
    return LogCreator(1, world.runtime, world.log_manager, cast("ClusterStore", store))


def test_configurations_are_read_until_zookeeper_is_back(tmp_path: Path) -> None:
    """The controller sends a state once: a lost session costs time, not the topic's overrides."""
    world = World(tmp_path)
    creator = creator_of(world, LosingStore(3))
    creator.configure(["t", "u"])
    assert 7 == creator.get_or_create(TP).config.retention_ms
    assert world.log_manager.config_of("t") is not world.log_manager.config_of("u")


def test_a_change_that_arrives_meanwhile_is_kept(tmp_path: Path) -> None:
    """It is newer than what was read."""
    world = World(tmp_path)

    def change() -> None:
        world.log_manager.update_topic_config("t", {"retention.ms": "8"})

    creator_of(world, LosingStore(0, change)).configure(["t"])
    assert 8 == world.log_manager.config_of("t").retention_ms


def test_a_stop_ends_the_wait_for_zookeeper(tmp_path: Path) -> None:
    """A broker stops also while ZooKeeper is away, and applies nothing then."""
    world = World(tmp_path)
    store = LosingStore(1_000_000)
    creator = creator_of(world, store)
    store.meanwhile = creator.stop
    with pytest.raises(Closed, match="broker 1 is stopping and creates no logs"):
        creator.configure(["t"])


def test_no_log_is_made_after_a_stop(tmp_path: Path) -> None:
    """Not even if the broker stops while the directory is made: nothing would close the log."""
    world = World(tmp_path)
    creator = creator_of(world, FakeStore())
    creator.stop()
    with pytest.raises(Closed):
        creator.get_or_create(TP)
    assert world.log_manager.get(TP) is None


def test_a_replica_manager_that_stops_waits_for_no_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its LogCreator stops with it, while ZooKeeper is away."""
    world = World(tmp_path)
    store = LosingStore(100, world.replica_manager.shutdown)
    monkeypatch.setattr(world.store, "topic_configs", store.topic_configs)
    state = PartitionStateInfo("t", 0, 5, 1, 0, [1], 0, [1])
    leaders = [BrokerEndpoint(1, "127.0.0.1", 19091)]
    with pytest.raises(Closed, match="creates no logs"):
        world.replica_manager.become_leader_or_follower(LeaderAndIsrRequest(9, 5, [state], leaders))
    assert 99 == store.failures
