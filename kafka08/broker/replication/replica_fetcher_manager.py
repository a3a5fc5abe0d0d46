"""ReplicaFetcherManager: assigns partitions to replica fetchers.

There is one fetcher per leader and fetcher id. A partition's id is abs(31 * hash(topic) +
partition) modulo num.replica.fetchers, so that several connections share a leader's partitions. A
fetcher that has as many as one request may name is followed by another one: its id plus
num.replica.fetchers. Source: kafka.server.AbstractFetcherManager 0.8.2.2.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sized
from itertools import count
from typing import Final, NamedTuple, Protocol

from kafka08.broker.replica.partition import Partition
from kafka08.broker.replication.replica_fetcher import ReplicaFetcher
from kafka08.broker.settings.config import BrokerConfig
from kafka08.hashing import fetcher_of
from kafka08.protocol.fetch import FetchRequest
from kafka08.runtime import BrokerRuntime, Greenlet
from kafka08.structs import Broker, TopicPartition

logger = logging.getLogger(__name__)

PARTITIONS_MAX: Final = FetchRequest.ITEMS_MAX // 2
"""Of a fetcher: in its requests each may need a topic of its own, and a broker of ours refuses one
with more items."""
STOP_S: Final = 5.0
"""How long to wait for a stopped fetcher to end."""


class Followers(Protocol):
    """The fetchers, as the ReplicaManager uses them. No method switches."""

    def follow(self, partitions: Iterable[tuple[Partition, Broker]]) -> None:
        """Fetch each partition, which is not followed, from its leader, from its HW on."""

    def stop_following(self, topic_partitions: Collection[TopicPartition]) -> None:
        """Append nothing to these from now on; ignores partitions that are not followed."""

    def follows(self, topic_partition: TopicPartition, leader: Broker) -> bool:
        """Whether a partition is fetched from this leader, at this address."""

    def moved(self, live: Mapping[int, Broker]) -> list[tuple[TopicPartition, Broker]]:
        """The partitions whose leader is among these brokers, at another address than they are
        fetched from, each with that."""

    def end_idle(self) -> None:
        """Stop fetchers that have no partitions."""


class Source(NamedTuple):
    """A fetcher's leader and id."""

    leader: Broker
    fetcher_id: int


class ReplicaFetcherManager:
    """All fetchers of one broker; implements `Followers`.

    make_fetcher   makes the one of a leader and a fetcher id
    """

    def __init__(
        self,
        config: BrokerConfig,
        runtime: BrokerRuntime,
        make_fetcher: Callable[[Broker, int], ReplicaFetcher],
    ) -> None:
        self._config = config
        self._runtime = runtime
        self._make_fetcher = make_fetcher
        self._fetchers: dict[Source, tuple[ReplicaFetcher, Greenlet]] = {}
        self._closing = False

    def follow(self, partitions: Iterable[tuple[Partition, Broker]]) -> None:
        if self._closing:
            return
        by_source: dict[Source, list[Partition]] = {}
        for partition, leader in partitions:
            source = self._source_with_room(partition.topic_partition, leader, by_source)
            by_source.setdefault(source, []).append(partition)
        for source, added in by_source.items():
            self._fetcher(source).add(added)
            logger.info(
                "[ReplicaFetcherManager on broker %d] Added fetcher for partitions %s to %s",
                self._config.broker_id,
                ",".join(str(partition.topic_partition) for partition in added),
                source.leader,
            )

    def stop_following(self, topic_partitions: Collection[TopicPartition]) -> None:
        for fetcher, _ in self._fetchers.values():
            fetcher.remove(topic_partitions)

    def follows(self, topic_partition: TopicPartition, leader: Broker) -> bool:
        return any(
            source.leader == leader and topic_partition in fetcher
            for source, (fetcher, _) in self._fetchers.items()
        )

    def moved(self, live: Mapping[int, Broker]) -> list[tuple[TopicPartition, Broker]]:
        return [
            (topic_partition, leader)
            for source, (fetcher, _) in self._fetchers.items()
            if (leader := live.get(source.leader.id, source.leader)) != source.leader
            for topic_partition in fetcher.lags()
        ]

    def lags(self) -> Iterator[tuple[str, TopicPartition, int]]:
        """(fetcher, partition, lag in messages) for every followed partition."""
        for fetcher, _ in self._fetchers.values():
            for tp, lag in fetcher.lags().items():
                yield fetcher.name, tp, lag

    def end_idle(self) -> None:
        for source, (fetcher, _) in list(self._fetchers.items()):
            if not len(fetcher):
                fetcher.stop()
                del self._fetchers[source]

    def begin_shutdown(self) -> None:
        """Follow no new partitions: this broker is about to stop, and fetching would return it to
        ISRs that it has just left. Followed partitions continue."""
        self._closing = True

    def shutdown(self) -> None:
        """Stop all fetchers for good; waits STOP_S for each, then kills it. Switches."""
        self.begin_shutdown()
        ending = list(self._fetchers.values())
        self._fetchers.clear()
        for fetcher, _ in ending:
            fetcher.stop()
        for _, task in ending:
            task.join(STOP_S)
            task.kill()

    def _source_with_room(
        self, tp: TopicPartition, leader: Broker, more: Mapping[Source, Sized]
    ) -> Source:
        """The fetcher for a partition that none has; `more` is about to be added."""
        fetchers = self._config.num_replica_fetchers
        for fetcher_id in count(fetcher_of(tp, fetchers), fetchers):
            source = Source(leader, fetcher_id)
            found = self._fetchers.get(source)
            if (len(found[0]) if found else 0) + len(more.get(source, ())) < PARTITIONS_MAX:
                return source
        raise AssertionError("ids do not end")

    def _fetcher(self, source: Source) -> ReplicaFetcher:
        if source not in self._fetchers:
            fetcher = self._make_fetcher(*source)
            self._fetchers[source] = fetcher, self._runtime.spawn(fetcher.run, name=fetcher.name)
        return self._fetchers[source][0]
