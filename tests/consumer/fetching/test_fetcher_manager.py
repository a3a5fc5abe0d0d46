"""The search for leaders continues after any failure."""

from __future__ import annotations

from collections.abc import Callable, Collection
from math import inf
from typing import Any, Self

import pytest

from kafka08.consumer.fetching import fetcher_manager
from kafka08.consumer.fetching.fetcher import PartitionFetcher
from kafka08.consumer.fetching.fetcher_manager import STALE_S, FetcherManager
from kafka08.consumer.fetching.owned_partition import OwnedPartition
from kafka08.consumer.zookeeper.config import ConsumerConfig
from kafka08.consumer.zookeeper.member_stream import MemberStream
from kafka08.protocol.fetch import NO_REPLICA
from kafka08.runtime.threads import THREADS, ThreadRuntime
from kafka08.structs import NO_LEADER_EPOCH, Broker, TopicPartition
from tests.consumer.streams import AllIsWell, partition_of
from tests.mock_clock import MockClock
from tests.waiting import until


class OneBroker:
    """Brokers, client and metadata in one object. Broker 1 leads everything."""

    def client(self) -> Self:
        return self

    @property
    def metadata(self) -> Self:
        return self

    def refresh(self, topics: Collection[str]) -> Self:
        return self

    def leader(self, tp: TopicPartition) -> Broker:
        return Broker(1, "b1", 9092)

    epoch = NO_LEADER_EPOCH

    def leader_epoch(self, tp: TopicPartition) -> int:
        return self.epoch

    @property
    def brokers(self) -> dict[int, Broker]:
        return {2: Broker(2, "b2", 9092)}

    def led_by(self, _: int, asked: Collection[TopicPartition]) -> Collection[TopicPartition]:
        return asked


class NoConnection:
    """The connection of a fetcher that never runs."""

    def abort(self) -> None:
        """Nothing is under way."""


class FakeFetcher:
    """A fetch thread that may fail to start."""

    def __init__(self, can_start: bool) -> None:
        self._can_start = can_start
        self.given: list[OwnedPartition] = []

    def start(self) -> None:
        if not self._can_start:
            raise RuntimeError("can't start new thread")

    def add(self, partitions: Collection[OwnedPartition]) -> None:
        self.given += partitions

    def stop(self) -> None:
        """It never ran, so there is nothing to stop."""

    def join(self, _: float) -> bool:
        return True


class SlowBroker(OneBroker):
    """Runs a function of the test while the search for leaders waits for a response."""

    def __init__(self) -> None:
        self.meanwhile: Callable[[], object] = int

    def refresh(self, topics: Collection[str]) -> Self:
        meanwhile, self.meanwhile = self.meanwhile, int
        meanwhile()
        return self


def test_a_search_does_not_restore_a_revoked_partition(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A partition that is revoked during a search for leaders stays revoked. After a
    KafkaConsumer's seek, the end of the search used to replace the partition by its revoked
    predecessor, and nothing fetched it again."""
    made: list[PartitionFetcher] = []

    class Unstarted(PartitionFetcher):
        def start(self) -> None:
            made.append(self)

    monkeypatch.setattr(fetcher_manager, "PartitionFetcher", Unstarted)
    config = ConsumerConfig(group_id="g", zookeeper_connect="z1:2181", refresh_leader_backoff_ms=1)
    brokers: Any = SlowBroker()
    connection: Any = NoConnection()
    manager = FetcherManager("g_c", config, brokers, THREADS, lambda broker: connection)
    stream = MemberStream(supervisor=AllIsWell(), runtime=THREADS)
    old, new, other = partition_of(stream), partition_of(stream, offset=7), partition_of(stream, 1)

    def seek() -> None:
        stream.revoke([old])
        manager.begin([new])

    brokers.meanwhile = seek
    manager.add([old, other])
    try:
        until(lambda: bool(made) and other in made[0]._current(), "the end of the search")
        assert set(made[0]._current()) == {new, other}
    finally:
        manager.stop()
        manager.join(60)


@pytest.mark.parametrize("begin", [FetcherManager.add, FetcherManager.begin])
def test_a_thread_that_cannot_start_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
    begin: Callable[[FetcherManager, Collection[OwnedPartition]], None],
) -> None:
    """A failed start of a thread is retried. A machine that was short of threads for a moment used
    to end the search, and these partitions were never fetched again."""
    made: list[FakeFetcher] = []

    def make(*_: object) -> FakeFetcher:
        made.append(FakeFetcher(can_start=bool(made)))
        return made[-1]

    monkeypatch.setattr(fetcher_manager, "PartitionFetcher", make)
    config = ConsumerConfig(group_id="g", zookeeper_connect="z1:2181", refresh_leader_backoff_ms=1)
    brokers: Any = OneBroker()
    manager = FetcherManager("g_c", config, brokers, THREADS, lambda broker: brokers)
    partition = partition_of(MemberStream(supervisor=AllIsWell(), runtime=THREADS))
    begin(manager, [partition])
    try:
        until(lambda: [f.given for f in made] == [[], [partition]], "its fetcher")
    finally:
        manager.stop()
        manager.join(60)


class Search:
    """What a search for leaders finds, at the time of `clock`."""

    def __init__(self) -> None:
        self.clock = MockClock()
        self.brokers = OneBroker()
        runtime = ThreadRuntime(clock=self.clock)
        config = ConsumerConfig(group_id="g", zookeeper_connect="z1:2181")
        brokers: Any = self.brokers
        self._manager = FetcherManager("g_c", config, brokers, runtime, never)
        stream = MemberStream(supervisor=AllIsWell(), runtime=THREADS)
        self.partition = partition_of(stream)

    def find(self, epoch: int) -> Broker | None:
        """The broker to fetch the partition from, if its leader has this epoch in metadata."""
        self.brokers.epoch = epoch
        return self._manager._find_leaders([self.partition]).get(self.partition)


def never(_: Broker) -> Any:
    raise AssertionError("nothing is fetched")


def test_metadata_of_an_earlier_leader_are_not_used_for_a_while() -> None:
    """A broker may not know the last election. Epochs that stay lower are those of another topic of
    that name, in which the position is checked."""
    search = Search()
    search.partition.fetch_epoch = 4
    for seconds, is_found in [(0, False), (STALE_S - 1, False), (2, True), (1, True)]:
        search.clock.advance(seconds)
        assert (search.find(3) is not None) is is_found
    assert search.partition.unchecked
    assert search.find(5) is not None
    search.partition.fetch_epoch = 6
    assert search.find(5) is None, "the wait begins again"


def test_only_a_leader_confirms_a_position() -> None:
    """A follower that was named as the nearest is left when its leader's epoch changes."""
    search = Search()
    search.partition.fetch_epoch = 4
    search.partition.fetch_from(2, inf)
    assert search.find(4) == Broker(2, "b2", 9092)
    assert search.find(5) == Broker(1, "b1", 9092)
    assert search.partition.replica == NO_REPLICA
