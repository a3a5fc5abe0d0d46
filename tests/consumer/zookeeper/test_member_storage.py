"""A member's storage follows a migration's orders: it carries over the offsets that it owns, lowers
none, and acknowledges."""

from __future__ import annotations

import pytest

from kafka08.consumer.zookeeper.member_storage import MemberStorage
from kafka08.consumer.zookeeper.offset_store import KafkaOffsetStore, Offsets, ZooKeeperOffsetStore
from kafka08.errors import OffsetsLoadInProgress, SessionLost, ZooKeeperError
from kafka08.structs import TopicPartition
from kafka08.zk import paths
from kafka08.zk.client import ZkClient
from kafka08.zk.group_store import GroupStore
from kafka08.zk.migration_protocol import OffsetStorage, Order, decode_order
from tests.consumer.store_cluster import StoreCluster

TPS = [TopicPartition("t", number) for number in range(3)]
ORDER = '{"version":1,"step":%d,"storage":"%s"}'


class Member:
    """Member `g_a` of group g, configured for ZooKeeper, with a coordinator in memory."""

    def __init__(self, zk: ZkClient) -> None:
        self.zk = zk
        self.cluster = StoreCluster()
        self.orders_seen = 0
        id_path = paths.consumer_id("g", "g_a")
        zk.create(id_path, "{}", ephemeral=True)
        self.storage = MemberStorage(
            zk,
            "g",
            "g_a",
            OffsetStorage.ZOOKEEPER,
            zookeeper=ZooKeeperOffsetStore(zk, "g", id_path),
            kafka=KafkaOffsetStore(
                self.cluster, "g", clock=self.cluster.clock, backoff_ms=1, timeout_ms=0
            ),
            on_order=self._on_order,
        )

    def _on_order(self) -> None:
        self.orders_seen += 1

    def order(self, step: int, storage: OffsetStorage) -> None:
        """Writes the order into the migration's journal."""
        self.zk.put(paths.migration("g"), ORDER % (step, storage.value))
        self.zk.ensure(paths.migration_members("g"))
        # The watch is as good as fired: its thread need not be waited for.
        self.storage._changed("")

    def in_zookeeper(self) -> Offsets:
        return GroupStore(self.zk).offsets("g", TPS)

    def confirmed(self) -> Order | None:
        node = self.zk.get_or_none(paths.migration_confirmation("g", "g_a"))
        return decode_order(None if node is None else node.data)


@pytest.fixture
def member(zk: ZkClient) -> Member:
    member = Member(zk)
    member.storage.begin_session()
    return member


def test_without_orders_the_configuration_counts(member: Member) -> None:
    """Without an order the configuration decides, and the member acknowledges nothing."""
    member.storage.commit({TPS[0]: 5})
    assert (member.in_zookeeper(), member.cluster.committed) == ({TPS[0]: 5}, {})
    assert (member.confirmed(), member.storage.is_behind) == (None, False)


def test_there_and_back(member: Member) -> None:
    """Before it acknowledges a step, the member has copied the offsets of its partitions to where
    the next step reads them."""
    member.storage.commit({TPS[0]: 5, TPS[1]: 6})
    member.order(1, OffsetStorage.DUAL)
    assert member.storage.is_behind
    member.storage.follow(TPS)
    assert member.cluster.committed == {TPS[0]: 5, TPS[1]: 6}
    assert member.confirmed() == Order(1, OffsetStorage.DUAL)
    member.order(2, OffsetStorage.KAFKA)
    member.storage.follow(TPS)
    member.storage.commit({TPS[0]: 50, TPS[2]: 7})
    assert member.in_zookeeper() == {TPS[0]: 5, TPS[1]: 6}
    member.order(3, OffsetStorage.DUAL)
    member.storage.follow(TPS)
    assert member.in_zookeeper() == {TPS[0]: 50, TPS[1]: 6, TPS[2]: 7}
    member.order(4, OffsetStorage.ZOOKEEPER)
    member.storage.follow(TPS)
    member.storage.commit({TPS[0]: 60})
    assert member.in_zookeeper()[TPS[0]] == 60
    assert member.cluster.committed[TPS[0]] == 50
    assert member.confirmed() == Order(4, OffsetStorage.ZOOKEEPER)


def test_carrying_over_lowers_nothing(member: Member) -> None:
    """A larger offset in Kafka stays."""
    member.storage.commit({TPS[0]: 5})
    member.cluster.committed[TPS[0]] = 9
    member.order(1, OffsetStorage.DUAL)
    member.storage.follow(TPS)
    assert member.cluster.committed[TPS[0]] == 9


def test_a_coordinator_that_is_away_leaves_it_behind(member: Member) -> None:
    """Without a coordinator the member continues as before and acknowledges nothing. It follows the
    order when it gets it again."""
    member.storage.commit({TPS[0]: 5})
    member.cluster.refuse(TPS[0], OffsetsLoadInProgress.code)
    member.order(1, OffsetStorage.DUAL)
    member.storage.follow(TPS)
    assert (member.storage.storage, member.confirmed()) == (OffsetStorage.ZOOKEEPER, None)
    assert member.storage.is_behind
    member.storage.follow(TPS)
    assert member.confirmed() == Order(1, OffsetStorage.DUAL)


def test_a_new_session_reads_and_acknowledges_again(member: Member) -> None:
    """A migration waits for registered members, so a member must know the order before it claims
    partitions."""
    member.order(1, OffsetStorage.DUAL)
    member.storage.follow(())
    member.zk.delete(paths.migration_confirmation("g", "g_a"))
    member.storage.begin_session()
    assert member.confirmed() == Order(1, OffsetStorage.DUAL)


def test_an_unregistered_member_does_not_acknowledge(member: Member) -> None:
    """A former member that acknowledged the order would let the migration continue without the
    present one."""
    member.zk.delete(paths.consumer_id("g", "g_a"))
    member.order(1, OffsetStorage.DUAL)
    member.storage.follow(())
    assert member.confirmed() is None


def test_an_order_that_cannot_be_read_is_an_error(member: Member) -> None:
    """An order that cannot be parsed is an error: with the wrong store a member could skip
    messages. A journal that was deleted changes nothing."""
    member.zk.create(paths.migration("g"), "nonsense")
    member.storage._changed("")
    with pytest.raises(ZooKeeperError, match="cannot be read"):
        member.storage.follow(TPS)
    member.zk.delete(paths.migration("g"))
    member.storage.follow(TPS)
    assert member.storage.storage is OffsetStorage.ZOOKEEPER


def test_an_order_that_was_not_read_is_read_again(
    member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lost connection while the order is read is retried. It used to count as "no order": the
    member followed its configuration, and the migration waited for its acknowledgement in vain."""
    member.order(1, OffsetStorage.DUAL)

    def lose(*_: object) -> None:
        raise SessionLost("no response")

    with monkeypatch.context() as lost:
        lost.setattr(member.zk, "watch_data", lose)
        with pytest.raises(SessionLost):
            member.storage.follow(())
    assert member.storage.is_behind
    member.storage.follow(())
    assert member.confirmed() == Order(1, OffsetStorage.DUAL)
