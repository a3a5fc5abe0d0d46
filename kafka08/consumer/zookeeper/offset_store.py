"""The stores of a group's offsets: ZooKeeper, the offsets topic, or both.

    offsets.storage  dual.commit.enabled   commit                        start
    zookeeper        (any)                 znodes that changed           znode
    kafka            true                  Kafka, then the znodes that   the larger of the two
                                           changed, if Kafka took them
    kafka            false                 Kafka                         Kafka

"Changed" means: different from what this member wrote or started from. So a member that starts from
Kafka's larger offset does not update ZooKeeper before it reads on, as in 0.8.2.2. An offset is the
next one to read. NO_OFFSET means that nothing is committed, and is never committed itself (0.8.2.2
writes -1 to Kafka for a partition without a position; readers treat both alike).

Source: kafka.consumer.ZookeeperConsumerConnector (commitOffsets, fetchOffsets) 0.8.2.2.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from typing import Protocol, TypeAlias

from kafka08.client import ClusterClient
from kafka08.client.cluster import LOST_COORDINATOR
from kafka08.client.committed import committed_in_kafka, refused_commits
from kafka08.client.requests import commit_request, committed_request
from kafka08.client.retry import is_retriable
from kafka08.clock import Clock
from kafka08.consumer.fetching.brokers import Brokers
from kafka08.errors import (
    ApiError,
    ClientError,
    KafkaError,
    NoBrokersAvailable,
    NodeExists,
    NoNode,
    NotCoordinatorForConsumer,
    ProtocolError,
    SessionLost,
    UnknownTopicOrPartition,
)
from kafka08.protocol.types import Request, Response
from kafka08.structs import NO_OFFSET, OffsetAndMetadata, TopicPartition
from kafka08.zk import nodes, paths
from kafka08.zk.bulk import portions
from kafka08.zk.client import ZkClient
from kafka08.zk.group_store import GroupStore
from kafka08.zk.operations import ANY_VERSION, Check, Create, Exists, Set

logger = logging.getLogger(__name__)

Offsets: TypeAlias = dict[TopicPartition, int]
COMMIT_TRIES = 3
"""The most attempts of a transaction whose znodes come or go meanwhile."""


def no_fence() -> None:
    """No-op fence for committers outside the group."""


class OffsetStore(Protocol):
    """The committed offsets of a group, for one of its members. One thread at a time."""

    def fetch(self, partitions: Collection[TopicPartition]) -> Offsets:
        """The committed offset of each partition; NO_OFFSET where there is none."""

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Store them, in one attempt. After an error some may be stored."""


class ZooKeeperOffsetStore:
    """One znode per partition. A commit is one transaction, or several for more than WHOLE_MAX
    partitions. Each fails as a whole unless the member's id znode `id_path` exists: a former member
    cannot commit. Before each transaction it calls `fence`, which raises SessionLost if the
    member's session may be over."""

    def __init__(
        self, zk: ZkClient, group: str, id_path: str, fence: Callable[[], None] = no_fence
    ) -> None:
        self._zk = zk
        self._group = group
        self._id_path = id_path
        self._fence = fence
        self._checkpointed: Offsets = {}
        self._existing: set[TopicPartition] = set()

    def fetch(self, partitions: Collection[TopicPartition]) -> Offsets:
        found = GroupStore(self._zk).offsets(self._group, partitions)
        self._existing.update(found)
        offsets = {tp: found.get(tp, NO_OFFSET) for tp in partitions}
        self.start_from(offsets)
        return offsets

    def start_from(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Treat these positions as written, wherever they come from."""
        self._checkpointed.update(offsets)

    def forget(self, partitions: Collection[TopicPartition]) -> None:
        """Keep nothing about these: the member has released them, perhaps for good."""
        self._existing.difference_update(partitions)
        for tp in partitions:
            self._checkpointed.pop(tp, None)

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Raises SessionLost if the id znode is gone or the outcome is unknown."""
        moved = {
            tp: offset
            for tp, offset in sorted(offsets.items())
            if offset != NO_OFFSET and self._checkpointed.get(tp) != offset
        }
        if not moved:
            return
        for tries_left in range(COMMIT_TRIES - 1, -1, -1):
            try:
                self._write(moved)
                break
            except (NoNode, NodeExists):
                # Either the registration is gone, or `_existing` is out of date.
                if not self._zk.exists(self._id_path):
                    raise SessionLost(f"{self._id_path} is gone; nothing was committed") from None
                if not tries_left:
                    raise
                self._prepare(moved)
        self._existing.update(moved)
        self._checkpointed.update(moved)

    def _write(self, offsets: Offsets) -> None:
        writes = [
            (Set if tp in self._existing else Create)(
                paths.offset(self._group, *tp), nodes.encode_offset(offset)
            )
            for tp, offset in offsets.items()
        ]
        for portion in portions(writes):
            # Before each: the session may end between two transactions.
            self._fence()
            self._zk.multi([Check(self._id_path, ANY_VERSION), *portion])

    def _prepare(self, partitions: Collection[TopicPartition]) -> None:
        """Check which znodes exist, and create the parents of the others."""
        for topic in sorted({tp.topic for tp in partitions}):
            self._zk.ensure(paths.offsets(self._group, topic))
        listed = list(partitions)
        stats = self._zk.pipeline([Exists(paths.offset(self._group, *tp)) for tp in listed])
        self._existing.difference_update(listed)
        self._existing.update(tp for tp, stat in zip(listed, stats, strict=True) if stat)


class KafkaOffsetStore:
    """The offsets topic, by version 1 of OffsetCommit and OffsetFetch to the group's coordinator.

    A fetch is retried for `timeout_ms`, every `backoff_ms` (0.8.2.2: for ever), with its search for
    the coordinator. Both stop early once `is_interrupted()`. For the existing partitions
    `known` the response "unknown partition" is an error: a broker that has just started sends it
    before it has metadata, and 0.8.2.2 takes it for "nothing committed" and silently starts over.

    0.8.2.2 cannot fence commits: any client that knows the group's name may commit. So `fence`,
    which raises SessionLost if the member's session may be over, is called once the connection to
    the coordinator is open, directly before the request is written. It also ends the search for
    the coordinator.
    """

    def __init__(
        self,
        brokers: Brokers,
        group: str,
        *,
        clock: Clock,
        backoff_ms: int,
        timeout_ms: int = 10_000,
        is_interrupted: Callable[[], bool] = lambda: False,
        known: bool = False,
        fence: Callable[[], None] = no_fence,
    ) -> None:
        self._brokers = brokers
        self._group = group
        self._clock = clock
        self._backoff_ms = backoff_ms
        self._timeout_ms = timeout_ms
        self._is_interrupted = is_interrupted
        self._known = known
        self._fence = fence

    def fetch(self, partitions: Collection[TopicPartition]) -> Offsets:
        give_up_at = self._clock.monotonic() + self._timeout_ms / 1000
        while True:
            try:
                return self.fetch_once(partitions, give_up_at)
            except (ClientError, ProtocolError, ApiError) as error:
                if self._is_interrupted() or self._clock.monotonic() >= give_up_at:
                    raise
                logger.warning("Error while fetching offsets of %s: %s", self._group, error)
            self._clock.sleep(self._backoff_ms / 1000)

    def fetch_once(
        self, partitions: Collection[TopicPartition], give_up_at: float = float("inf")
    ) -> Offsets:
        """Raises what `committed_in_kafka` raises, and ClientError or ProtocolError. The search for
        the coordinator ends at `give_up_at` (monotonic seconds), too."""

        def is_interrupted() -> bool:
            return self._is_interrupted() or self._clock.monotonic() >= give_up_at

        if not partitions:
            return {}
        request = committed_request(self._group, sorted(partitions), "kafka")
        response = self._ask(request, is_interrupted=is_interrupted)
        try:
            return committed_in_kafka(response, self._group, partitions, known=self._known)
        except (NotCoordinatorForConsumer, UnknownTopicOrPartition):
            self._forget_coordinator()
            raise

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        for error in self.commit_each(offsets).values():
            raise error

    def commit_each(self, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, ApiError]:
        """The partitions whose commit was refused, each with its error. Raises ClientError or
        ProtocolError without a response."""
        known = {
            tp: OffsetAndMetadata(offset)
            for tp, offset in sorted(offsets.items())
            if offset != NO_OFFSET
        }
        if not known:
            return {}
        response = self._ask(commit_request(self._group, known, "kafka"), fence=self._fence)
        refused = refused_commits(response, self._group)
        if any(isinstance(error, LOST_COORDINATOR) for error in refused.values()):
            self._forget_coordinator()
        return refused

    def _ask(
        self,
        request: Request,
        *,
        fence: Callable[[], None] = no_fence,
        is_interrupted: Callable[[], bool] = lambda: False,
    ) -> Response:
        def passes(error: KafkaError) -> bool:
            fence()
            return is_retriable(error) and not is_interrupted()

        client = self._brokers.client()
        try:
            coordinator = client.coordinator(self._group, passes=passes)
            with client.connection(coordinator) as connection:
                fence()
                return connection.send(request)
        except (ClientError, ProtocolError, ApiError) as error:
            self._give_up_on(client, error)
            raise

    def _give_up_on(self, client: ClusterClient, error: KafkaError) -> None:
        client.forget_coordinator(self._group)
        if isinstance(error, NoBrokersAvailable):
            self._brokers.renew(client)

    def _forget_coordinator(self) -> None:
        self._brokers.client().forget_coordinator(self._group)


class DualOffsetStore:
    """Both stores, for a group that moves from ZooKeeper to Kafka. Commits to Kafka first, then
    to ZooKeeper the partitions that Kafka accepted; starts from the larger of the two offsets."""

    def __init__(self, kafka: KafkaOffsetStore, zookeeper: ZooKeeperOffsetStore) -> None:
        self._kafka = kafka
        self._zookeeper = zookeeper

    def fetch(self, partitions: Collection[TopicPartition]) -> Offsets:
        in_kafka = self._kafka.fetch(partitions)
        in_zookeeper = self._zookeeper.fetch(partitions)
        newest = {tp: max(in_kafka[tp], in_zookeeper[tp]) for tp in partitions}
        self._zookeeper.start_from(newest)
        return newest

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        refused = self._kafka.commit_each(offsets)
        self._zookeeper.commit({tp: o for tp, o in offsets.items() if tp not in refused})
        for error in refused.values():
            raise error
