"""ZooKeeperMember: what a ConsumerConnector consists of, its threads and connections.

None of its parts refers to the connector. So a connector that a program drops is collected, and
ends its member.
Source: kafka.consumer.ZookeeperConsumerConnector 0.8.2.2.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias, TypeVar

from kafka08.client import ClusterClient, RetryPolicy
from kafka08.consumer.fetching.fetcher import response_bytes_max
from kafka08.consumer.fetching.fetcher_manager import FetcherManager
from kafka08.consumer.fetching.owned_partition import OwnedPartition
from kafka08.consumer.fetching.stream import Decoder
from kafka08.consumer.subscription import (
    Subscription,
)
from kafka08.consumer.zookeeper.assignors import Assignment
from kafka08.consumer.zookeeper.config import ConsumerConfig
from kafka08.consumer.zookeeper.member_storage import MemberStorage
from kafka08.consumer.zookeeper.member_stream import MemberStream
from kafka08.consumer.zookeeper.offset_store import KafkaOffsetStore, Offsets, ZooKeeperOffsetStore
from kafka08.consumer.zookeeper.ownership import Ownership
from kafka08.consumer.zookeeper.rebalancer import OnChange, RebalanceEvent, Rebalancer
from kafka08.consumer.zookeeper.registry import GroupRegistry
from kafka08.consumer.zookeeper.session import SessionGate
from kafka08.consumer.zookeeper.status import ConsumerStatus
from kafka08.consumer.zookeeper.unread_streams import StreamKey, UnreadStreams
from kafka08.consumer.zookeeper.zookeeper_brokers import BrokersFromZooKeeper
from kafka08.errors import (
    Closed,
    KafkaError,
    MessageStreamsExist,
)
from kafka08.lifecycle import ProcessBound
from kafka08.network.connection import Connection
from kafka08.runtime import Buffers, ClientRuntime
from kafka08.structs import Broker, TopicPartition
from kafka08.zk.client import ZkClient
from kafka08.zk.migration_protocol import OffsetStorage
from kafka08.zk.session import SessionEvent

logger = logging.getLogger(__name__)

K = TypeVar("K")
V = TypeVar("V")
Streams: TypeAlias = Mapping[StreamKey, MemberStream]

JOIN_TIMEOUT_S: Final = 5.0
"""How long a shutdown waits for the rebalancer, and then for the fetchers."""


_open: dict[str, ClientRuntime] = {}
"""The ids of the members of this process that are not shut down, each with its runtime."""


class ZooKeeperMember(ProcessBound):
    """One member of the group `group.id`. ConsumerConnector says what its methods do.

    status   its state, and why it has stalled
    """

    def __init__(self, config: ConsumerConfig, timestamps: bool, runtime: ClientRuntime) -> None:
        self.config = config
        self._timestamps = timestamps
        self.consumer_id = f"{config.group_id}_{config.consumer_id or _new_id(runtime)}"
        self._runtime = runtime
        self._zk = ZkClient(
            config.zookeeper_connect,
            session_timeout_ms=config.zookeeper_session_timeout_ms,
            connection_timeout_ms=config.zookeeper_connection_timeout_ms,
            adapter=runtime.zookeeper,
            name=self.consumer_id,
            clock=runtime,
        )
        self._gate = SessionGate(self._zk, runtime)
        self.status = ConsumerStatus(self.consumer_id, self._gate, runtime)
        self._leaders = BrokersFromZooKeeper(
            self._zk,
            lambda addresses: self._client(addresses, config.socket_timeout_ms),
            runtime,
        )
        self._coordinators = BrokersFromZooKeeper(
            self._zk,
            lambda addresses: self._client(addresses, config.offsets_channel_socket_timeout_ms),
            runtime,
        )
        self._fetchers = FetcherManager(
            self.consumer_id, config, self._leaders, runtime, self._fetch_connection
        )
        self._streams: dict[StreamKey, MemberStream] = {}
        self._unread: UnreadStreams | None = None
        self._storage: MemberStorage | None = None
        self._ownership: Ownership | None = None
        self._rebalancer: Rebalancer | None = None
        self._on_assigned: OnChange = lambda _: None
        self._on_revoked: OnChange = lambda _: None
        self._lock = runtime.lock()
        self._closing = runtime.event()
        self._zk.start()
        _open[self.consumer_id] = runtime

    @property
    def is_closing(self) -> bool:
        """Whether its shutdown has begun."""
        return self._closing.is_set()

    @property
    def storage(self) -> OffsetStorage | None:
        return None if self._storage is None else self._storage.storage

    def metrics(self) -> dict[str, dict[str, float]]:
        lags = {} if self._ownership is None else self._ownership.lags()
        return self._fetchers.metrics.values(lags)

    @property
    def assignment(self) -> Assignment:
        return {} if self._ownership is None else self._ownership.assignment

    def thread_of(self, tp: TopicPartition) -> str | None:
        return None if self._ownership is None else self._ownership.thread_of(tp)

    def set_callbacks(self, on_assigned: OnChange | None, on_revoked: OnChange | None) -> None:
        with self._lock:
            if self._rebalancer is not None:
                raise MessageStreamsExist(f"{self.consumer_id} has its streams already")
            self._on_assigned = on_assigned or self._on_assigned
            self._on_revoked = on_revoked or self._on_revoked

    def commit(self, offsets: Mapping[TopicPartition, int] | None) -> None:
        if self._closing.is_set():
            raise Closed(f"{self.consumer_id} was shut down")
        if self._ownership is not None:
            self._ownership.commit(
                offsets,
                retries=self.config.offsets_commit_max_retries,
                backoff_ms=self.config.offsets_channel_backoff_ms,
            )
        elif offsets:
            raise ValueError("this member owns no partition before it has streams")

    def shutdown(self) -> None:
        if self._closing.is_set():
            return
        self._closing.set()
        _open.pop(self.consumer_id, None)
        logger.info("[%s] ZKConsumerConnector shutting down", self.consumer_id)
        try:
            self._stop()
        finally:  # also if Ctrl-C ends a wait: the session would keep the partitions from the group
            self.status.closed()
            self._leaders.close()
            self._coordinators.close()
            self._zk.close()
        self._fetchers.join(JOIN_TIMEOUT_S)
        logger.info("[%s] ZKConsumerConnector shutdown completed", self.consumer_id)

    def _stop(self) -> None:
        """End the streams and the threads, and commit."""
        if self._unread is not None:
            self._unread.look_last()
        self._fetchers.stop()
        for stream in list(self._streams.values()):
            stream.close()
        if self._rebalancer is not None:
            self._rebalancer.post(RebalanceEvent.STOP)
            if not self._rebalancer.join(JOIN_TIMEOUT_S):
                logger.warning(
                    "[%s] shutdown: the rebalance in progress did not end within %d s. Its threads "
                    "end by themselves",
                    self.consumer_id,
                    JOIN_TIMEOUT_S,
                )
        if self._ownership is not None and self.config.auto_commit_enable:
            self._commit_finally(self._ownership)

    def join_group(self, subscription: Subscription, streams: Streams) -> None:
        with self._lock:
            if self._closing.is_set():
                raise Closed(f"{self.consumer_id} was shut down")
            if self._rebalancer is not None:
                raise MessageStreamsExist(f"{self.consumer_id} has its streams already")
            self._streams.update(streams)
            self._rebalancer = self._make_rebalancer(subscription)
        self._zk.add_session_listener(self._on_session_event)
        try:
            self._start(self._rebalancer, streams)
        except BaseException:  # no thread is left, say: what has begun would own partitions
            self.shutdown()
            raise
        self._rebalancer.wait_for_first()

    def _start(self, rebalancer: Rebalancer, streams: Streams) -> None:
        rebalancer.start()
        if self._closing.is_set():  # a shutdown that began meanwhile has not seen all of them
            for stream in streams.values():
                stream.close()
            rebalancer.post(RebalanceEvent.STOP)
        if self.config.auto_commit_enable:
            name = f"{self.consumer_id}-autocommit"
            self._runtime.spawn(self._auto_commit, name=name)
        if len(streams) > 1:
            self._unread = UnreadStreams(self.consumer_id, streams, lambda: self.assignment)
            self._unread.start(self._runtime, self._closing)

    def _make_rebalancer(self, subscription: Subscription) -> Rebalancer:
        registry = GroupRegistry(
            self._zk,
            self.config.group_id,
            self.consumer_id,
            exclude_internal_topics=self.config.exclude_internal_topics,
            runtime=self._runtime,
            stopping=self._closing,
            note=self.config.migration_note,
            on_change=lambda: self._post(RebalanceEvent.CHANGE),
            on_release=lambda: self._post(RebalanceEvent.RELEASE),
        )
        store = self._member_storage(registry.id_path)
        self._storage = store
        self._ownership = Ownership(store, self._gate, list(self._streams.values()), self._runtime)
        return Rebalancer(
            self.consumer_id,
            self.config,
            subscription,
            registry=registry,
            ownership=self._ownership,
            store=store,
            gate=self._gate,
            status=self.status,
            runtime=self._runtime,
            make_partitions=self._make_partitions,
            fetch=self._fetchers.add,
            on_stall=self._wake_streams,
            others_here=self._others_here,
            on_revoked=self._on_revoked,
            on_assigned=self._on_assigned,
        )

    def _abandon(self) -> None:
        _open.pop(self.consumer_id, None)

    def _others_here(self) -> list[str]:
        """The ids of this process's other members, of any group, that are not shut down."""
        return [
            consumer_id
            for consumer_id, runtime in list(_open.items())
            if consumer_id != self.consumer_id and runtime is self._runtime
        ]

    def _member_storage(self, id_path: str) -> MemberStorage:
        config = self.config
        return MemberStorage(
            self._zk,
            config.group_id,
            self.consumer_id,
            OffsetStorage.of(config.offsets_storage, config.dual_commit_enabled),
            zookeeper=ZooKeeperOffsetStore(self._zk, config.group_id, id_path, self._gate.check),
            kafka=self._kafka_store(),
            on_order=lambda: self._post(RebalanceEvent.CHANGE),
        )

    def _kafka_store(self) -> KafkaOffsetStore:
        config = self.config
        return KafkaOffsetStore(
            self._coordinators,
            config.group_id,
            clock=self._runtime,
            backoff_ms=config.offsets_channel_backoff_ms,
            timeout_ms=config.rebalance_max_retries * config.rebalance_backoff_ms,
            is_interrupted=lambda: self._rebalancer is None or self._rebalancer.is_interrupted,
            known=True,
            fence=self._gate.check,
        )

    def stream(self, key_decoder: Decoder | None, value_decoder: Decoder | None) -> MemberStream:
        return MemberStream(
            supervisor=self.status,
            runtime=self._runtime,
            timeout_ms=self.config.consumer_timeout_ms,
            capacity=self.config.queued_max_message_chunks,
            fetch_bytes=self.config.fetch_message_max_bytes,
            key_decoder=key_decoder,
            value_decoder=value_decoder,
            on_room=self._fetchers.notify,
            timestamps=self._timestamps,
        )

    def _make_partitions(self, wanted: Assignment, offsets: Offsets) -> list[OwnedPartition]:
        return [
            OwnedPartition(
                tp,
                thread_id=thread,
                sink=self._stream_of(tp, thread),
                offset=offsets[tp],
                fetch_bytes=self.config.fetch_message_max_bytes,
            )
            for tp, thread in wanted.items()
        ]

    def _stream_of(self, tp: TopicPartition, thread: str) -> MemberStream:
        by_topic = self._streams.get((tp.topic, thread))
        return by_topic if by_topic is not None else self._streams[None, thread]

    def _client(self, addresses: Sequence[tuple[str, int]], timeout_ms: int) -> ClusterClient:
        return ClusterClient(
            addresses,
            client_id=self.config.client_id,
            timeout_ms=timeout_ms,
            retry_policy=RetryPolicy(backoff_ms=self.config.refresh_leader_backoff_ms),
            runtime=self._runtime,
        )

    def _fetch_connection(self, broker: Broker) -> Connection:
        return Connection(
            broker.host,
            broker.port,
            client_id=self.config.client_id,
            timeout_ms=self.config.socket_timeout_ms,
            buffers=Buffers(receive=self.config.socket_receive_buffer_bytes),
            max_response_bytes=response_bytes_max(self.config),
            negotiates=self._timestamps,
            accepts_0_8=True,
            runtime=self._runtime,
        )

    def _on_session_event(self, event: SessionEvent) -> None:
        """Runs in kazoo's thread, so nothing here waits."""
        if event is SessionEvent.SUSPENDED:
            # Nothing is released yet: the session may go on.
            for stream in self._streams.values():
                stream.pause()
        else:
            self._post(RebalanceEvent.CHANGE)

    def _post(self, event: RebalanceEvent) -> None:
        if self._rebalancer is not None:
            self._rebalancer.post(event)

    def _wake_streams(self) -> None:
        for stream in self._streams.values():
            stream.wake()

    def _auto_commit(self) -> None:
        """Commit periodically. After a failure the next commit is the retry, as in 0.8.2.2."""
        assert self._ownership is not None
        while not self._closing.wait(self.config.auto_commit_interval_ms / 1000):
            try:
                self._ownership.commit()
            except KafkaError as error:
                logger.warning(
                    "[%s] automatic commit failed: %s. The next one is due in %d ms",
                    self.consumer_id,
                    error,
                    self.config.auto_commit_interval_ms,
                )
            except Exception:
                # The root of a thread: if it ended, commits would end with it.
                logger.exception("[%s] automatic commit failed because of a bug", self.consumer_id)

    def _commit_finally(self, ownership: Ownership) -> None:
        """One commit with its retries. Finding the coordinator and another thread's commit before
        it count towards offsets.channel.socket.timeout.ms."""
        timeout_ms = self.config.offsets_channel_socket_timeout_ms
        end = self._runtime.call_later(timeout_ms / 1000, self._coordinators.close)
        try:
            ownership.commit(
                retries=self.config.offsets_commit_max_retries,
                backoff_ms=self.config.offsets_channel_backoff_ms,
            )
        except Closed:
            logger.warning(
                "[%s] offsets were not committed at shutdown: no coordinator accepted them within "
                "%d ms (offsets.channel.socket.timeout.ms). Messages since the last commit will be "
                "read again",
                self.consumer_id,
                timeout_ms,
            )
        except KafkaError as error:
            logger.warning(
                "[%s] offsets were not committed at shutdown: %s. Messages since the last commit "
                "will be read again",
                self.consumer_id,
                error,
            )
        finally:
            end.cancel()


def _new_id(runtime: ClientRuntime) -> str:
    """`<host>-<ms>-<8 hex digits>`, as 0.8.2.2 makes it."""
    return f"{runtime.host_name()}-{runtime.time_ms()}-{runtime.random.getrandbits(32):08x}"
