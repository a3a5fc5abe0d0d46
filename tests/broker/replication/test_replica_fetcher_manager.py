"""ReplicaFetcherManager: which fetcher copies a partition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from kafka08.broker.replication import replica_fetcher_manager
from kafka08.broker.replication.replica_fetcher import ReplicaFetcher
from kafka08.broker.replication.replica_fetcher_manager import (
    PARTITIONS_MAX,
    ReplicaFetcherManager,
)
from kafka08.protocol.codec import decode_request, encode_request
from kafka08.protocol.fetch import FetchPartition, FetchRequest, FetchTopic
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


def manager_of(world: World, runtime: IdleRuntime) -> ReplicaFetcherManager:
    make = partial(
        ReplicaFetcher,
        world.config,
        runtime,
        world.log_manager,
        world.context.store,
        lambda: None,
        lambda: None,
    )
    return ReplicaFetcherManager(world.config, runtime, make)


def test_a_partition_is_followed_at_one_address_of_its_leader(tmp_path: Path) -> None:
    """A fetcher at another address of the same broker does not count, nor do other partitions."""
    world, runtime = World(tmp_path, num_replica_fetchers=2), IdleRuntime()
    world.lead("t", partitions=2)
    manager = manager_of(world, runtime)
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


def test_a_fetcher_that_is_full_is_followed_by_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request that names more is refused by a leader of ours, with each partition. Partitions
    come at once or one after the other; each is followed once, also when room was made."""
    monkeypatch.setattr(replica_fetcher_manager, "PARTITIONS_MAX", 3)
    world, runtime = World(tmp_path, num_replica_fetchers=2), IdleRuntime()
    world.lead("t", partitions=16)
    manager = manager_of(world, runtime)
    partitions = [(world.partition("t", number), FORMER) for number in range(16)]
    manager.follow(partitions[:10])
    for one in partitions[10:]:
        manager.follow([one])

    def followed() -> dict[str, int]:
        found = [(name, tp) for name, tp, _ in manager.lags()]
        assert sorted({tp for _, tp in found}) == sorted(tp for _, tp in found)
        return Counter(name.split("-")[1] for name, _ in found)

    assert {"0": 3, "1": 3, "2": 3, "3": 3, "4": 2, "5": 2} == followed()
    manager.stop_following([partition.topic_partition for partition, _ in partitions[:4]])
    manager.follow(partitions[:4])
    assert {"0": 3, "1": 3, "2": 3, "3": 3, "4": 2, "5": 2} == followed()
    assert all(manager.follows(partition.topic_partition, FORMER) for partition, _ in partitions)


def test_the_largest_request_of_a_fetcher_is_served() -> None:
    """One with a topic for each partition, on a broker of ours."""
    topics = [FetchTopic(f"t{n}", [FetchPartition(0, 0, 1)]) for n in range(PARTITIONS_MAX)]
    frame = encode_request(FetchRequest(1, 0, 0, topics), 0, "x")
    assert PARTITIONS_MAX == len(decode_request(frame[4:])[1].topics)
