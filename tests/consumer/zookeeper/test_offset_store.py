"""Offset stores: the rules of 0.8.2.2 for which offset is written where, and which member may
write."""

from __future__ import annotations

import pytest

from kafka08.consumer.zookeeper.offset_store import (
    DualOffsetStore,
    KafkaOffsetStore,
    ZooKeeperOffsetStore,
)
from kafka08.errors import (
    ApiError,
    ConsumerCoordinatorNotAvailable,
    NotCoordinatorForConsumer,
    OffsetMetadataTooLarge,
    OffsetsLoadInProgress,
    RequestTimedOut,
    SessionLost,
    UnknownTopicOrPartition,
)
from kafka08.protocol.offset_commit import OffsetCommitRequest
from kafka08.protocol.types import Request, Response
from kafka08.structs import TopicPartition
from kafka08.zk import paths
from kafka08.zk.client import ZkClient
from tests.consumer.store_cluster import HOST, PORT, StoreCluster
from tests.zk.in_process import InProcessWorld

A, B = TopicPartition("t", 0), TopicPartition("u", 3)
ID_PATH = paths.consumer_id("g", "g_a")


@pytest.fixture
def cluster() -> StoreCluster:
    return StoreCluster()


@pytest.fixture
def kafka(cluster: StoreCluster) -> KafkaOffsetStore:
    return KafkaOffsetStore(cluster, "g", clock=cluster.clock, backoff_ms=1000)


@pytest.fixture
def znodes(zk: ZkClient) -> ZooKeeperOffsetStore:
    """The store of a registered member."""
    zk.create(ID_PATH, "{}", ephemeral=True)
    return ZooKeeperOffsetStore(zk, "g", ID_PATH)


def in_zookeeper(zk: ZkClient, tp: TopicPartition) -> tuple[str | None, int] | None:
    """Text and version of an offset's znode."""
    node = zk.get_or_none(paths.offset("g", *tp))
    return None if node is None else (node.data, node.version)


def test_zookeeper_writes_changed_offsets_alone(zk: ZkClient, znodes: ZooKeeperOffsetStore) -> None:
    """New znodes are created and changed offsets are set. An offset that has not moved since the
    last write, or since the start, is not written."""
    zk.create(paths.offset("g", *B), "7")
    assert znodes.fetch([A, B]) == {A: -1, B: 7}
    znodes.commit({A: 5, B: 7})
    assert (in_zookeeper(zk, A), in_zookeeper(zk, B)) == (("5", 0), ("7", 0))
    znodes.commit({A: 6, B: 7})
    znodes.commit({A: 6, B: 7})
    assert (in_zookeeper(zk, A), in_zookeeper(zk, B)) == (("6", 1), ("7", 0))


def test_zookeeper_never_writes_no_offset(zk: ZkClient, znodes: ZooKeeperOffsetStore) -> None:
    """A partition without a position has nothing to commit."""
    znodes.commit({A: -1})
    assert in_zookeeper(zk, A) is None


def test_a_former_member_cannot_commit(zk: ZkClient, znodes: ZooKeeperOffsetStore) -> None:
    """Without the member's id znode the whole commit fails, for old and new offset znodes."""
    znodes.commit({A: 5})
    zk.delete(ID_PATH)
    with pytest.raises(SessionLost):
        znodes.commit({A: 6, B: 1})
    assert (in_zookeeper(zk, A), in_zookeeper(zk, B)) == (("5", 0), None)


def test_znodes_may_come_and_go_meanwhile(zk: ZkClient, znodes: ZooKeeperOffsetStore) -> None:
    """A commit succeeds while others delete or create the znodes of offsets."""
    znodes.commit({A: 5})
    zk.delete_recursive(paths.offsets("g"))
    zk.create(paths.offset("g", *B), "1")
    znodes.commit({A: 6, B: 2})
    assert (in_zookeeper(zk, A), in_zookeeper(zk, B)) == (("6", 0), ("2", 1))


def test_zookeeper_takes_more_offsets_than_fit_into_a_request() -> None:
    """A commit of a member with thousands of partitions is several transactions, each fenced."""
    world = InProcessWorld()
    offsets = {TopicPartition("page-views-by-country-and-browser", n): n for n in range(10_000)}
    with ZkClient("model:2181", adapter=world.connect, clock=world) as zk:
        zk.create(ID_PATH, "{}", ephemeral=True)
        ZooKeeperOffsetStore(zk, "readers", ID_PATH).commit(offsets)
        store = ZooKeeperOffsetStore(zk, "readers", ID_PATH, Session(left=1))
        assert store.fetch(offsets) == offsets
        with pytest.raises(SessionLost, match="over"):
            store.commit({tp: offset + 1 for tp, offset in offsets.items()})


def test_kafka_commits_everything_every_time(
    cluster: StoreCluster, kafka: KafkaOffsetStore
) -> None:
    """Every position is committed, also one that has not moved, so that it does not expire. The
    broker sets time and metadata. A partition without position is not committed."""
    kafka.commit({A: 5, B: -1})
    kafka.commit({A: 5, B: 2})
    assert cluster.committed == {A: 5, B: 2}
    first, second = cluster.asked
    assert isinstance(first, OffsetCommitRequest)
    assert isinstance(second, OffsetCommitRequest)
    assert [t.topic for t in first.topics] == ["t"]
    assert [t.topic for t in second.topics] == ["t", "u"]
    [partition] = first.topics[0].partitions
    assert (partition.timestamp_ms, partition.metadata) == (-1, "")


class Session:
    """A fence that allows `left` writes and then fails as for a lost session."""

    def __init__(self, left: int) -> None:
        self.left = left

    def __call__(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise SessionLost("over")


def test_guarantee_1_a_search_for_the_coordinator_ends_with_the_session(
    cluster: StoreCluster,
) -> None:
    """The search for a coordinator ends with the session. Otherwise it would continue for a hundred
    tries, while others own the partitions already."""
    cluster.coordinator_code = ConsumerCoordinatorNotAvailable.code
    store = KafkaOffsetStore(
        cluster, "g", clock=cluster.clock, backoff_ms=1000, fence=Session(left=2)
    )
    with pytest.raises(SessionLost):
        store.commit({A: 5})
    assert len(cluster.clock.slept) == 2


def test_guarantee_1_the_session_is_looked_at_before_the_request(cluster: StoreCluster) -> None:
    """If the session has ended when the coordinator is found and connected, nothing is sent."""
    store = KafkaOffsetStore(
        cluster, "g", clock=cluster.clock, backoff_ms=1000, fence=Session(left=1)
    )
    store.commit({A: 5})
    with pytest.raises(SessionLost):
        store.commit({A: 6})
    assert cluster.committed == {A: 5}


def test_guarantee_1_the_session_is_looked_at_between_the_stores(
    zk: ZkClient, cluster: StoreCluster, kafka: KafkaOffsetStore
) -> None:
    """If the session ends while the coordinator answers, ZooKeeper is not written."""
    zk.create(ID_PATH, "{}", ephemeral=True)
    znodes = ZooKeeperOffsetStore(zk, "g", ID_PATH, Session(left=1))
    dual = DualOffsetStore(kafka, znodes)
    zk.create(paths.offset("g", *A), "3")
    dual.fetch([A])
    dual.commit({A: 5})
    with pytest.raises(SessionLost):
        dual.commit({A: 6})
    assert cluster.committed == {A: 6}
    assert in_zookeeper(zk, A) == ("5", 1)


def test_kafka_refusals_are_raised(cluster: StoreCluster, kafka: KafkaOffsetStore) -> None:
    """A refused partition raises its own error, and the others are stored."""
    cluster.refuse(A, OffsetMetadataTooLarge.code)
    with pytest.raises(OffsetMetadataTooLarge, match=r"\[t,0\]"):
        kafka.commit({A: 5, B: 2})
    assert cluster.committed == {B: 2}


@pytest.mark.parametrize("error", [NotCoordinatorForConsumer, RequestTimedOut])
def test_a_moved_coordinator_is_looked_up_again(
    cluster: StoreCluster,
    kafka: KafkaOffsetStore,
    monkeypatch: pytest.MonkeyPatch,
    error: type[ApiError],
) -> None:
    """Errors 16 and 7 (no replica had it in time) fail this commit. The next one looks it up
    again."""
    client = cluster.client()
    monkeypatch.setattr(cluster, "client", lambda: client)
    cluster.refuse(A, error.code)
    with pytest.raises(error):
        kafka.commit({A: 5})
    kafka.commit({A: 5})
    assert (cluster.committed, cluster.searches) == ({A: 5}, 2)


@pytest.mark.parametrize("error", [NotCoordinatorForConsumer, OffsetsLoadInProgress])
def test_a_fetch_waits_for_the_coordinator(
    cluster: StoreCluster, kafka: KafkaOffsetStore, error: type[OffsetsLoadInProgress]
) -> None:
    """Codes 14 and 16 are retried after offsets.channel.backoff.ms."""
    cluster.committed[A] = 9
    cluster.refuse(A, error.code, error.code)
    assert kafka.fetch([A, B]) == {A: 9, B: -1}
    assert cluster.clock.slept == [1.0, 1.0]


def test_a_fetch_gives_up_at_last(cluster: StoreCluster) -> None:
    """The error is raised after the timeout, and at once when the fetch is interrupted."""
    store = KafkaOffsetStore(cluster, "g", clock=cluster.clock, backoff_ms=1000, timeout_ms=3000)
    cluster.refuse(A, *[OffsetsLoadInProgress.code] * 20)
    with pytest.raises(OffsetsLoadInProgress):
        store.fetch([A])
    assert len(cluster.clock.slept) == 3
    hurried = KafkaOffsetStore(
        cluster, "g", clock=cluster.clock, backoff_ms=1, is_interrupted=lambda: True
    )
    with pytest.raises(OffsetsLoadInProgress):
        hurried.fetch([A])


def test_an_interrupted_fetch_looks_for_no_coordinator(cluster: StoreCluster) -> None:
    """An interrupted fetch does not search for a coordinator: the search may take longer than a
    shutdown waits for a rebalance."""
    cluster.coordinator_code = ConsumerCoordinatorNotAvailable.code
    slept = cluster.clock.slept
    store = KafkaOffsetStore(
        cluster, "g", clock=cluster.clock, backoff_ms=1, is_interrupted=lambda: len(slept) == 2
    )
    with pytest.raises(ConsumerCoordinatorNotAvailable):
        store.fetch([A])
    assert len(slept) == 2


def test_a_commit_gives_up_the_search_for_the_coordinator(
    cluster: StoreCluster, kafka: KafkaOffsetStore
) -> None:
    """The search of a commit has an end in time. Its hundred tries took 50 minutes with brokers
    that did not respond, and a member that had to release partitions kept them from the others."""
    began = cluster.clock.monotonic()

    def respond_late(request: Request) -> Response:
        cluster.clock.advance(9.0)
        return cluster.respond(request)

    cluster.coordinator_code = ConsumerCoordinatorNotAvailable.code
    cluster.network.broker(HOST, PORT, respond_late)
    with pytest.raises(ConsumerCoordinatorNotAvailable):
        kafka.commit({A: 1})
    assert cluster.clock.monotonic() - began < 20.0


def test_other_errors_of_a_fetch_mean_nothing_committed(
    cluster: StoreCluster, kafka: KafkaOffsetStore
) -> None:
    """UnknownTopicOrPartition (3) means that nothing is committed, as in 0.8.2.2."""
    cluster.refuse(A, UnknownTopicOrPartition.code)
    assert kafka.fetch([A]) == {A: -1}


def test_a_partition_that_is_known_to_exist_is_asked_for_again(cluster: StoreCluster) -> None:
    """For an existing partition code 3 is retried, because a coordinator that has just started
    knows no topic yet. As "nothing committed" it would make a member start at the beginning, or,
    with `largest`, skip messages silently."""
    store = KafkaOffsetStore(cluster, "g", clock=cluster.clock, backoff_ms=1000, known=True)
    cluster.committed[A] = 7
    cluster.refuse(A, UnknownTopicOrPartition.code)
    assert store.fetch([A]) == {A: 7}
    assert len(cluster.clock.slept) == 1


@pytest.mark.parametrize(
    ("zookeeper_offset", "kafka_offset", "start"),
    [(4, 2, 4), (1, 3, 3), (None, 3, 3), (4, None, 4), (None, None, -1)],
)
def test_dual_starts_from_the_larger(
    zk: ZkClient,
    cluster: StoreCluster,
    kafka: KafkaOffsetStore,
    znodes: ZooKeeperOffsetStore,
    zookeeper_offset: int | None,
    kafka_offset: int | None,
    start: int,
) -> None:
    """The larger offset counts, as a JVM consumer does. It also counts as written to ZooKeeper,
    where it is written only when the member moves on."""
    if zookeeper_offset is not None:
        zk.create(paths.offset("g", *A), str(zookeeper_offset))
    if kafka_offset is not None:
        cluster.committed[A] = kafka_offset
    before = in_zookeeper(zk, A)
    dual = DualOffsetStore(kafka, znodes)
    assert dual.fetch([A]) == {A: start}
    dual.commit({A: start})
    assert in_zookeeper(zk, A) == before
    dual.commit({A: 10})
    assert (in_zookeeper(zk, A) or ("", 0))[0] == "10"
    assert cluster.committed == {A: 10}


def test_dual_writes_to_zookeeper_after_kafka(
    zk: ZkClient, cluster: StoreCluster, kafka: KafkaOffsetStore, znodes: ZooKeeperOffsetStore
) -> None:
    """With dual commit Kafka comes first. A partition that it refused is not written to
    ZooKeeper."""
    cluster.refuse(A, OffsetMetadataTooLarge.code)
    with pytest.raises(OffsetMetadataTooLarge):
        DualOffsetStore(kafka, znodes).commit({A: 5, B: 2})
    assert (in_zookeeper(zk, A), in_zookeeper(zk, B)) == (None, ("2", 0))
