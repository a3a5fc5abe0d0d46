"""The fetch threads of a consumer, and its leader finder.

Source: kafka.consumer.ConsumerFetcherManager, kafka.server.AbstractFetcherManager 0.8.2.2.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from functools import partial
from math import inf
from typing import Final

from kafka08.client.metadata import ClusterMetadata
from kafka08.consumer.fetching.brokers import FetchedBrokers
from kafka08.consumer.fetching.fetch_metrics import FetchMetrics
from kafka08.consumer.fetching.fetch_settings import FetchOptions
from kafka08.consumer.fetching.fetcher import PartitionFetcher
from kafka08.consumer.fetching.owned_partition import OwnedPartition
from kafka08.errors import ApiError, KafkaError, LeaderNotAvailable, NoBrokersAvailable
from kafka08.hashing import fetcher_of
from kafka08.network.connection import Connection
from kafka08.runtime import ClientRuntime, Task
from kafka08.structs import NO_LEADER_EPOCH, Broker

logger = logging.getLogger(__name__)

FetcherKey = tuple[Broker, int]
IDLE_CHECK_S: Final = 1.0
STALE_S: Final = 30.0
"""How long metadata that name an earlier leader than one that is known are not used."""


class FetcherManager:
    """Assigns each partition to a thread that fetches from its leader, or from the follower that
    the leader has named as the nearest; reassigns it when the leader moves, until it is revoked.
    One thread per broker, or num.consumer.fetchers of them.

    connect_to   creates the connection of one thread, not opened yet
    """

    def __init__(
        self,
        consumer_id: str,
        config: FetchOptions,
        brokers: FetchedBrokers,
        runtime: ClientRuntime,
        connect_to: Callable[[Broker], Connection],
    ) -> None:
        self._consumer_id = consumer_id
        self._config = config
        self._brokers = brokers
        self._runtime = runtime
        self._connect_to = connect_to
        self._condition = runtime.condition()
        self._leaderless: list[OwnedPartition] = []
        self._fetchers: dict[FetcherKey, PartitionFetcher] = {}
        self._finder: Task | None = None
        self._stopping = False
        self.metrics = FetchMetrics(runtime)
        """The metrics of all fetchers together."""

    def add(self, partitions: Collection[OwnedPartition]) -> None:
        """Start to fetch these, also partitions that lost their leader. Never waits."""
        if not partitions:
            return
        with self._condition:
            if self._stopping:
                return
            self._leaderless.extend(partitions)
            if self._finder is None:
                name = f"{self._consumer_id}-leader-finder-thread"
                self._finder = self._runtime.spawn(self._run, name=name)
            self._condition.notify_all()

    def begin(self, partitions: Collection[OwnedPartition]) -> None:
        """Like `add`, but at once if the leader is known. Never waits, if the brokers are given by
        their addresses."""
        metadata = self._brokers.client().metadata
        found: dict[OwnedPartition, Broker] = {}
        for partition in partitions:
            try:
                found[partition] = self._broker(metadata, partition)
            except ApiError as error:
                logger.debug("[%s] %s: %s", self._consumer_id, partition.topic_partition, error)
        try:
            self._assign(found)
        except (
            RuntimeError
        ) as error:  # the system has no thread left: the leader finder tries again
            logger.warning("[%s] Cannot start to fetch yet: %s", self._consumer_id, error)
            found = {}
        self.add([p for p in partitions if p not in found])

    def notify(self) -> None:
        """A stream has room again, or partitions were revoked: check again."""
        for fetcher in self._all():
            fetcher.notify()

    def stop(self) -> None:
        """Ask all threads to end. Never waits."""
        with self._condition:
            self._stopping = True
            self._condition.notify_all()
        for fetcher in self._all():
            fetcher.stop()

    def join(self, timeout_s: float) -> None:
        """Wait until the threads have ended, at most `timeout_s` in all."""
        give_up_at = self._runtime.monotonic() + timeout_s
        for fetcher in self._all():
            if not fetcher.join(max(0.0, give_up_at - self._runtime.monotonic())):
                logger.warning(
                    "[%s] shutdown: a fetch thread did not end within %g s. It ends after its "
                    "request",
                    self._consumer_id,
                    timeout_s,
                )
        if self._finder is not None:
            self._finder.join(max(0.0, give_up_at - self._runtime.monotonic()))

    def _all(self) -> list[PartitionFetcher]:
        with self._condition:
            return list(self._fetchers.values())

    def _run(self) -> None:
        """Find leaders while partitions lack one, with a pause after each attempt."""
        while True:
            with self._condition:
                while not self._stopping and not self._leaderless:
                    self._condition.wait(IDLE_CHECK_S)
                if self._stopping:
                    return
                wanted = [p for p in self._leaderless if not p.revoked]
                self._leaderless = []
            try:
                found = self._find_leaders(wanted)
                self._assign(found)
            except KafkaError as error:
                if not self._stopping:
                    self._log_failure(wanted, error)
                found = {}
            except Exception:
                # The root of a thread: without it no partition would find its leader again.
                logger.exception("[%s] Uncaught error in the search for leaders", self._consumer_id)
                found = {}
            with self._condition:
                self._leaderless.extend(p for p in wanted if p not in found)
                if not self._stopping:
                    self._condition.wait_for(
                        lambda: self._stopping, self._config.refresh_leader_backoff_ms / 1000
                    )

    def _find_leaders(self, wanted: Collection[OwnedPartition]) -> dict[OwnedPartition, Broker]:
        """partition → broker to fetch from; those without a leader are left out. KafkaError."""
        if not wanted:
            return {}
        client = self._brokers.client()
        try:
            metadata = client.refresh({p.topic_partition.topic for p in wanted})
        except NoBrokersAvailable:
            self._brokers.renew(client)
            raise
        found = {}
        for partition in wanted:
            try:
                found[partition] = self._broker(metadata, partition)
            except ApiError as error:
                partition.outage.failed(error, self._runtime.monotonic())
                logger.debug("[%s] %s: %s", self._consumer_id, partition.topic_partition, error)
        return found

    def _broker(self, metadata: ClusterMetadata, partition: OwnedPartition) -> Broker:
        """The broker to fetch from. UnknownTopicOrPartition, LeaderNotAvailable: not known yet."""
        tp = partition.topic_partition
        epoch, now = metadata.leader_epoch(tp), self._runtime.monotonic()
        newest = max(partition.leader_epoch, partition.fetch_epoch)
        is_stale = NO_LEADER_EPOCH < epoch < newest
        partition.stale_since = min(partition.stale_since, now) if is_stale else inf
        # After a while the topic is another one of that name, whose epochs began again.
        if is_stale and now - partition.stale_since < STALE_S:
            raise LeaderNotAvailable(f"{tp}: leader epoch {epoch} in metadata, {newest} was seen")
        partition.led_in(epoch)
        follower = metadata.brokers.get(partition.replica)
        if follower is not None and not partition.unchecked:  # a leader has to confirm its position
            return follower
        partition.fetch_from_leader()
        return metadata.leader(tp)

    def _log_failure(self, wanted: Collection[OwnedPartition], error: KafkaError) -> None:
        now = self._runtime.monotonic()
        news = [partition.outage.failed(error, now) for partition in wanted]
        level = logging.WARNING if any(news) else logging.DEBUG
        logger.log(level, "[%s] Failed to find leader: %s", self._consumer_id, error)

    def _assign(self, found: dict[OwnedPartition, Broker]) -> None:
        """Give each partition to its leader's thread; stop threads without partitions. Leaves out a
        partition that was revoked during the search: its thread may have the new claim of the same
        partition already, and has room for one of the two."""
        by_fetcher: dict[FetcherKey, list[OwnedPartition]] = {}
        with self._condition:
            if self._stopping:
                return
            for partition, broker in found.items():
                if partition.revoked:
                    continue
                number = fetcher_of(partition.topic_partition, self._config.num_consumer_fetchers)
                by_fetcher.setdefault((broker, number), []).append(partition)
            for key in [key for key, fetcher in self._fetchers.items() if fetcher.is_idle]:
                if key not in by_fetcher:
                    self._fetchers.pop(key).stop()
            for key, partitions in by_fetcher.items():
                fetcher = self._fetchers.get(key) or self._start_fetcher(key)
                fetcher.add(partitions)

    def _start_fetcher(self, key: FetcherKey) -> PartitionFetcher:
        broker, number = key
        name = f"ConsumerFetcherThread-{self._consumer_id}-{number}-{broker.id}"
        fetcher = PartitionFetcher(
            name,
            self._connect_to(broker),
            self._config,
            self.add,
            self._runtime,
            partial(self._brokers.led_by, broker.id),
        )
        fetcher.metrics = self.metrics
        fetcher.start()
        self._fetchers[key] = fetcher
        return fetcher
