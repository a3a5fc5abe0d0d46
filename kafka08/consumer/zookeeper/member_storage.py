"""The store to which a live member commits, while a migration may move its group.

A member commits as its configuration says, unless the group's migration orders something else
(kafka08/zk/migration_protocol.py). Then it copies the committed offsets of its partitions to the
new store, commits there from that moment on, and confirms the order. Without a migration its
configuration counts again. It logs a difference between the two, since other implementations in the
group follow their own configuration.

    ordered           copied                 starts from   commits to
    zookeeper → dual  ZooKeeper → Kafka      the larger    Kafka, then ZooKeeper
    dual → kafka      nothing                Kafka         Kafka
    kafka → dual      Kafka → ZooKeeper      the larger    Kafka, then ZooKeeper
    dual → zookeeper  nothing                ZooKeeper     ZooKeeper

Members in adjacent rows can own the same partition in turn and skip nothing. So the migration
orders the next row only when all members have confirmed. Copying never lowers an offset, and
commits no position: messages that the program has not committed stay uncommitted."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping

from kafka08.consumer.zookeeper.offset_store import (
    DualOffsetStore,
    KafkaOffsetStore,
    Offsets,
    OffsetStore,
    ZooKeeperOffsetStore,
)
from kafka08.errors import ApiError, ClientError, NodeExists, NoNode, ProtocolError
from kafka08.structs import TopicPartition
from kafka08.zk import paths
from kafka08.zk.client import ZkClient
from kafka08.zk.migration_protocol import OffsetStorage, Order, decode_order, encode_confirmation
from kafka08.zk.operations import ANY_VERSION, Check, Create, Set

logger = logging.getLogger(__name__)


class MemberStorage:
    """The offset store of one member. `follow` and `begin_session` are called by the rebalancer's
    thread, while no commit is in progress.

    on_order   called, in any thread, when there may be a new migration order
    """

    def __init__(
        self,
        zk: ZkClient,
        group: str,
        consumer_id: str,
        configured: OffsetStorage,
        *,
        zookeeper: ZooKeeperOffsetStore,
        kafka: KafkaOffsetStore,
        on_order: Callable[[], None],
    ) -> None:
        self._zk = zk
        self._group = group
        self._consumer_id = consumer_id
        self._configured = configured
        self._zookeeper = zookeeper
        self._kafka = kafka
        self._stores: dict[OffsetStorage, OffsetStore] = {
            OffsetStorage.ZOOKEEPER: zookeeper,
            OffsetStorage.DUAL: DualOffsetStore(kafka, zookeeper),
            OffsetStorage.KAFKA: kafka,
        }
        self._on_order = on_order
        self._storage = configured
        self._confirmed: Order | None = None
        self._unread = True
        self._order: Order | None = None

    @property
    def storage(self) -> OffsetStorage:
        """The store to which commits go now."""
        return self._storage

    @property
    def is_behind(self) -> bool:
        """Whether there may be an unconfirmed order."""
        return self._unread or self._order not in (None, self._confirmed)

    def fetch(self, partitions: Collection[TopicPartition]) -> Offsets:
        return self._stores[self._storage].fetch(partitions)

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        self._stores[self._storage].commit(offsets)

    def forget(self, partitions: Collection[TopicPartition]) -> None:
        """The member has released these."""
        self._zookeeper.forget(partitions)

    def begin_session(self) -> None:
        """Called when the member has registered and owns nothing yet. The migration lists the
        members after it has written an order, so from now on it waits for this member."""
        self._unread, self._confirmed = True, None
        self.follow(())

    def follow(self, owned: Collection[TopicPartition]) -> None:
        """Execute the current order, and confirm it. If a broker does not accept the copied
        offsets, the member keeps its store and the order stays unconfirmed. Raises
        ZooKeeperError."""
        self._read()
        order = self._order
        if order is None or order == self._confirmed:
            return
        if order.storage is not self._storage:
            try:
                self._carry_over(order.storage, owned)
            except (ApiError, ClientError, ProtocolError) as error:
                logger.warning(
                    "[%s] cannot commit to %s yet: %s",
                    self._consumer_id,
                    order.storage.value,
                    error,
                )
                return
            self._switch(order)
        self._confirm(order)

    def _read(self) -> None:
        if not self._unread:
            return
        self._unread = False  # before the watch is set: it may fire at once
        try:
            node = self._zk.watch_data(paths.migration(self._group), self._changed)
            self._order = decode_order(None if node is None else node.data)
        except BaseException:
            self._unread = True
            raise

    def _changed(self, _: str) -> None:
        self._unread = True
        self._on_order()

    def _carry_over(self, storage: OffsetStorage, owned: Collection[TopicPartition]) -> None:
        if not owned:
            return
        in_zookeeper, in_kafka = self._zookeeper.fetch(owned), self._kafka.fetch_once(owned)
        if storage.in_kafka and not self._storage.in_kafka:
            self._kafka.commit({tp: o for tp, o in in_zookeeper.items() if o > in_kafka[tp]})
        if storage.in_zookeeper and not self._storage.in_zookeeper:
            self._zookeeper.commit({tp: o for tp, o in in_kafka.items() if o > in_zookeeper[tp]})

    def _switch(self, order: Order) -> None:
        old, self._storage = self._storage, order.storage
        logger.info(
            "[%s] step %d of the migration of %s: offsets go to %s, not %s as before",
            self._consumer_id,
            order.step,
            self._group,
            order.storage.value,
            old.value,
        )
        if order.storage is not self._configured:
            wanted = ", ".join(f"{key}={value}" for key, value in order.storage.properties.items())
            logger.warning("[%s] change its configuration to: %s", self._consumer_id, wanted)

    def _confirm(self, order: Order) -> None:
        """One transaction that also checks the member's registration, so that only members of the
        group confirm."""
        path = paths.migration_confirmation(self._group, self._consumer_id)
        text = encode_confirmation(order)
        registered = paths.consumer_id(self._group, self._consumer_id)
        try:
            there = self._zk.exists(path)
            write = Set(path, text) if there else Create(path, text, ephemeral=True)
            self._zk.multi([Check(registered, ANY_VERSION), write])
        except (NoNode, NodeExists) as error:
            # The migration was removed, or an earlier session's confirmation is about to expire.
            logger.info("[%s] order not confirmed yet: %s", self._consumer_id, error)
            return
        self._confirmed = order
