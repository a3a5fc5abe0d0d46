"""ReplicaFetcherManager: which fetcher copies a partition."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from kafka08.broker.replication.replica_fetcher_manager import ReplicaFetcherManager
from kafka08.structs import Broker, TopicPartition
from tests.broker.fake_runtime import FakeRuntime, FakeTask
from tests.broker.world import World

FORMER, PRESENT = Broker(2, "127.0.0.1", 19092), Broker(2, "127.0.0.2", 19092)
TP = TopicPartition("t", 0)


class IdleRuntime(FakeRuntime):
    """Its greenlets do not begin."""

    def spawn(self, call: Callable[..., object], *args: object, name: str) -> FakeTask:
        self.spawned.append(name)
        return FakeTask()


def test_a_partition_is_followed_at_one_address_of_its_leader(tmp_path: Path) -> None:
    """A fetcher at another address of the same broker does not count, nor do other partitions."""
    world, runtime = World(tmp_path, num_replica_fetchers=2), IdleRuntime()
    world.lead("t", partitions=2)
    manager = ReplicaFetcherManager(world.config, runtime, world.log_manager, world.context.store)
    assert not manager.follows(TP, FORMER)
    manager.follow([(world.partition("t"), FORMER)])
    assert [True, False] == [manager.follows(TP, one) for one in (FORMER, PRESENT)]
    manager.stop_following([TP])
    manager.follow([(world.partition("t"), PRESENT), (world.partition("t", 1), FORMER)])
    manager.end_idle()
    assert [] == manager.moved({}) == manager.moved({3: Broker(3, "127.0.0.3", 19092)})
    assert [(TopicPartition("t", 1), PRESENT)] == manager.moved({2: PRESENT})
    assert [(TP, FORMER)] == manager.moved({2: FORMER})
    assert [False, True] == [manager.follows(TP, one) for one in (FORMER, PRESENT)]
