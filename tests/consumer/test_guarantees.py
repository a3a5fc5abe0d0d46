"""Guarantees of docs/consumer.md that need only ZooKeeper. The name of each test has its
guarantee's number. For others see test_groups.py, test_crowd.py, tests/interop and
tests/integration."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Any

import pytest

from kafka08.client import ClusterClient
from kafka08.consumer import ConsumerConnector, ConsumerState
from kafka08.consumer.zookeeper.offset_store import KafkaOffsetStore, Offsets, ZooKeeperOffsetStore
from kafka08.embedded.embedded_zookeeper import EmbeddedZooKeeper
from kafka08.errors import ConsumerRebalanceFailed, ConsumerTimeout, KafkaError
from kafka08.network.connection import Connection
from kafka08.structs import TopicPartition
from kafka08.zk import paths
from kafka08.zk.client import ZkClient
from kafka08.zk.group_store import GroupStore
from tests.consumer.groups import MakeMember, PaperCluster, owned, settled
from tests.waiting import until

SHUTDOWN_S = 12.0
"""The bound of a shutdown here: ZooKeeper's timeouts (2 s each), and room for a busy machine."""


def join_in_background(connector: ConsumerConnector, topic: str) -> threading.Thread:
    joining = threading.Thread(
        target=connector.create_message_streams, args=({topic: 1},), daemon=True
    )
    joining.start()
    return joining


def test_guarantee_2_a_member_change_during_a_rebalance_is_not_missed(
    cluster: PaperCluster,
    member: MakeMember,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another member joins while this one has read the group and claimed partitions, but not yet
    read offsets. Both end with half of the partitions, without waiting for a backoff."""
    cluster.create_topic("tt", 4)
    entered, go_on = threading.Event(), threading.Event()
    fetch = ZooKeeperOffsetStore.fetch

    def fetch_slowly(
        store: ZooKeeperOffsetStore, partitions: Collection[TopicPartition]
    ) -> Offsets:
        if not entered.is_set():
            entered.set()
            go_on.wait(60)
        return fetch(store, partitions)

    monkeypatch.setattr(ZooKeeperOffsetStore, "fetch", fetch_slowly)
    a = member("a", rebalance_backoff_ms=60_000)
    joining = join_in_background(a, "tt")
    assert entered.wait(60)
    assert len(cluster.owners("tt")) == 4, "it has claimed what it saw"
    b = member("b")
    waiting = join_in_background(b, "tt")
    until(lambda: cluster.zk.exists(paths.consumer_id("g", "g_b")), "the second registration")
    go_on.set()
    until(lambda: len(owned(a)) == len(owned(b)) == 2, "two each")
    cluster.wait_for_owners("tt", {0: "g_a-0", 1: "g_a-0", 2: "g_b-0", 3: "g_b-0"})
    for thread in (joining, waiting):
        thread.join(60)


def test_a_member_prints_how_it_is_doing(cluster: PaperCluster, member: MakeMember) -> None:
    """repr() has the name in ZooKeeper, the state, and the number of partitions."""
    cluster.create_topic("tt", 2)
    a = member("a")
    assert repr(a) == "<ConsumerConnector g_a: new, 0 partitions>"
    a.create_message_streams({"tt": 1})
    assert repr(a) == "<ConsumerConnector g_a: settled, 2 partitions>"
    a.shutdown()
    assert repr(a).startswith("<ConsumerConnector g_a: closed")


def test_a_commit_and_the_offsets_of_a_claim_take_turns(
    cluster: PaperCluster,
    member: MakeMember,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An offset store serves one thread at a time: a commit waits while the rebalancer fetches
    offsets. (Both used to use the store at once.)"""
    cluster.create_topic("tt", 1)
    GroupStore(cluster.store.zk).commit_offsets("g", {TopicPartition("tt", 0): 5})
    a = member("a", auto_commit_enable=False)
    join_in_background(a, "tt").join(60)
    until(lambda: len(owned(a)) == 1, "the first partition")
    entered, go_on, committed = threading.Event(), threading.Event(), threading.Event()

    def fetch_slowly(_: ZooKeeperOffsetStore, partitions: Collection[TopicPartition]) -> Offsets:
        entered.set()
        assert go_on.wait(60)
        return dict.fromkeys(partitions, 0)

    monkeypatch.setattr(ZooKeeperOffsetStore, "fetch", fetch_slowly)
    monkeypatch.setattr(ZooKeeperOffsetStore, "commit", lambda *_: committed.set())
    cluster.set_partitions("tt", 2)
    assert entered.wait(60)
    committing = threading.Thread(target=a.commit_offsets, daemon=True)
    committing.start()
    overlapped = committed.wait(0.2)
    go_on.set()
    committing.join(60)
    assert not overlapped
    assert committed.is_set()


def test_guarantee_2_a_failed_rebalance_leaves_nothing_claimed(
    cluster: PaperCluster,
    member: MakeMember,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If the offsets cannot be read after the claim, the claim is released before the next try."""
    cluster.create_topic("tt", 2)

    def fail(*_: object) -> Offsets:
        raise KafkaError("the coordinator is on holiday")

    monkeypatch.setattr(ZooKeeperOffsetStore, "fetch", fail)
    a = member("a", rebalance_backoff_ms=50, rebalance_max_retries=1)
    join_in_background(a, "tt").join(60)
    until(lambda: a.state is ConsumerState.STALLED, "a stall")
    until(lambda: cluster.owners("tt") == {}, "no owner between two tries")
    assert "on holiday" in str(a.stall_cause)


def test_guarantee_3_each_stall_is_raised_once_to_each_stream(
    cluster: PaperCluster, member: MakeMember
) -> None:
    """Each of two streams raises a stall once and nothing more while it lasts. After the member has
    settled, the next stall is raised again."""
    cluster.create_topic("tt", 2)
    a = member("a", rebalance_backoff_ms=50, rebalance_max_retries=2)
    taken = paths.owner("g", "tt", 0)
    cluster.zk.create(taken, "somebody-0")
    streams = a.create_message_streams({"tt": 2})["tt"]
    for round_ in range(2):
        until(lambda: a.state is ConsumerState.STALLED, "a stall")
        for stream in streams:
            with pytest.raises(ConsumerRebalanceFailed, match="belongs to somebody-0"):
                next(stream)
            for _ in range(3):
                with pytest.raises(ConsumerTimeout):
                    next(stream)
        cluster.zk.delete(taken)
        until(lambda: settled(a) and len(owned(a)) == 2, "the end of the stall")
        if round_ == 0:
            # Somebody takes the znode away: the member notices at its next rebalance.
            cluster.zk.delete(taken)
            cluster.zk.create(taken, "somebody-0")
            a._member._ownership.drop()  # type: ignore[union-attr]
            a._member._rebalancer._session_id = None  # type: ignore[union-attr]
            cluster.set_partitions("tt", 2)


@pytest.mark.parametrize("state", ["SETTLED", "STALLED"])
def test_guarantee_6_shutdown_in_a_signal_handler(
    cluster: PaperCluster, zk_connect: str, state: str
) -> None:
    """SIGTERM while the main thread waits for a message, or while the group cannot settle, ends the
    iteration and the process, and no znode of the member remains."""
    cluster.create_topic("tt", 2)
    if state == "STALLED":
        cluster.zk.create(paths.owner("g", "tt", 0), "somebody-0")
    with subprocess.Popen(
        [sys.executable, "-m", "tests.consumer.signalled_member", zk_connect, "tt"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline().strip() == state
            started = time.monotonic()
            process.send_signal(signal.SIGTERM)
            assert process.stdout.readline().strip() == "left"
            assert process.wait(SHUTDOWN_S) == 0
        finally:
            process.kill()
    assert time.monotonic() - started < SHUTDOWN_S
    assert cluster.zk.children(paths.consumer_ids("g")) == []
    assert "g_a-0" not in cluster.owners("tt").values()


def test_guarantee_6_shutdown_is_bounded_from_any_state() -> None:
    """shutdown() ends within its bound, and with it a thread that iterates: for a new member, a
    settled one, one in a rebalance that cannot end, and one without ZooKeeper."""
    with EmbeddedZooKeeper() as server:
        connect = server.connect_string
        with ZkClient(connect) as zk:
            cluster = PaperCluster(zk, connect)
            cluster.create_topic("free", 1)
            cluster.create_topic("taken", 1)
            zk.create(paths.owner("g", "taken", 0), "somebody-0")
            keys = {"zookeeper_session_timeout_ms": 2000, "consumer_timeout_ms": -1}
            names = ("new", "settled", "rebalancing", "lost")
            members = {name: cluster.member(name, **keys) for name in names}
            threads = []
            for name in ("settled", "lost"):
                [stream] = members[name].create_message_streams({"free": 1})["free"]
                threads.append(threading.Thread(target=list, args=(stream,), daemon=True))
            threads.append(join_in_background(members["rebalancing"], "taken"))
            for thread in threads[:2]:
                thread.start()
            for name in ("new", "settled", "rebalancing"):
                assert seconds_of(members[name].shutdown) < SHUTDOWN_S, name
        server.stop()
        until(lambda: members["lost"].state is ConsumerState.SUSPENDED, "the loss")
        assert seconds_of(members["lost"].shutdown) < SHUTDOWN_S
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()


@pytest.mark.parametrize("place", ["streams", "rebalancer"])
def test_guarantee_6_shutdown_while_the_member_is_made(
    cluster: PaperCluster, member: MakeMember, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """A shutdown during `create_message_streams`, as by a signal handler, ends its streams and its
    threads, also those that are made after it has looked for them. The rebalancer tried for ever to
    join the group, and a reader waited without end."""
    cluster.create_topic("tt", 1)
    a = member("a", consumer_timeout_ms=5000)

    class Streams(dict[Any, Any]):
        def update(self, *args: Any, **keys: Any) -> None:
            a.shutdown()
            super().update(*args, **keys)

    if place == "streams":
        a._member._streams = Streams()
    else:
        make = a._member._make_rebalancer

        def make_late(subscription: Any) -> Any:
            a.shutdown()
            return make(subscription)

        monkeypatch.setattr(a._member, "_make_rebalancer", make_late)
    [stream] = a.create_message_streams({"tt": 1})["tt"]
    assert [] == list(stream)
    assert a._member._rebalancer is not None
    assert a._member._rebalancer.join(10)
    assert cluster.zk.children_or_empty(paths.consumer_ids("g")) == []


@pytest.mark.parametrize("busy", [False, True])
def test_guarantee_6_shutdown_is_bounded_when_brokers_are_dead(
    cluster: PaperCluster,
    member: MakeMember,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    busy: bool,
) -> None:
    """The final commit searches for a coordinator for offsets.channel.socket.timeout.ms in all, not
    for a hundred tries of that time each. This also holds while another thread commits."""
    cluster.create_topic("tt", 2)
    monkeypatch.setattr(KafkaOffsetStore, "fetch", lambda store, parts: dict.fromkeys(parts, 7))
    a = member(
        "a",
        offsets_storage="kafka",
        dual_commit_enabled=False,
        offsets_channel_socket_timeout_ms=300,
        offsets_channel_backoff_ms=100,
    )
    a.create_message_streams({"tt": 1})
    other = threading.Thread(target=suppressed(a.commit_offsets), daemon=True)
    if busy:
        other.start()
        until(lambda: a._member._ownership._holder is not None, "its commit")  # type: ignore[union-attr]
    assert seconds_of(a.shutdown) < SHUTDOWN_S / 2
    assert "not committed at shutdown" in caplog.text


@pytest.mark.parametrize("place", ["pool", "brokers"])
def test_guarantee_6_shutdown_in_the_middle_of_a_commit(
    cluster: PaperCluster,
    member: MakeMember,
    monkeypatch: pytest.MonkeyPatch,
    place: str,
) -> None:
    """A signal handler that runs while its own thread opens a connection, or makes the client, does
    not wait for the locks of that thread."""
    cluster.create_topic("tt", 1)
    monkeypatch.setattr(KafkaOffsetStore, "fetch", lambda store, parts: dict.fromkeys(parts, 7))
    a = member("a", offsets_storage="kafka", offsets_channel_backoff_ms=100)
    a.create_message_streams({"tt": 1})

    def interrupted(make: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any, **keys: Any) -> Any:
            if threading.current_thread() is committer:
                a.shutdown()
            return make(*args, **keys)

        return wrapped

    committer = threading.Thread(target=suppressed(a.commit_offsets), daemon=True)
    if place == "pool":
        monkeypatch.setattr("kafka08.client.cluster.Connection", interrupted(Connection))
    else:
        make = interrupted(ClusterClient)
        monkeypatch.setattr("kafka08.consumer.zookeeper.member.ClusterClient", make)
    committer.start()
    committer.join(SHUTDOWN_S)
    assert not committer.is_alive()
    assert a.state is ConsumerState.CLOSED


def suppressed(action: Callable[[], None]) -> Callable[[], None]:
    """`action`, with KafkaErrors ignored."""

    def call() -> None:
        with suppress(KafkaError):
            action()

    return call


def seconds_of(action: Callable[[], None]) -> float:
    started = time.monotonic()
    action()
    return time.monotonic() - started
